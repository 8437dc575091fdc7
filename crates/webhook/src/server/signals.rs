//! The signals that stop the server: SIGTERM and SIGINT, or Ctrl-C on Windows.

use std::convert::Infallible;
use std::io;

/// A future that calls `received` with the name of each signal. Signals count from the moment this
/// returns.
#[cfg(unix)]
pub(super) fn on_each_signal(
    received: impl Fn(&'static str) + Send,
) -> io::Result<impl Future<Output = Infallible> + Send> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        loop {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            received(name);
        }
    })
}

/// A future that calls `received` for each Ctrl-C. It counts from the moment this returns.
#[cfg(windows)]
pub(super) fn on_each_signal(
    received: impl Fn(&'static str) + Send,
) -> io::Result<impl Future<Output = Infallible> + Send> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        loop {
            interrupt.recv().await;
            received("Ctrl-C");
        }
    })
}
