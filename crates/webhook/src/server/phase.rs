//! The phases of a shutdown.

use tokio::sync::watch;

/// The progress of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Serving,
    /// The server is no longer ready, but still answers.
    Draining,
    /// The webhook port no longer accepts connections.
    Closing,
    /// The admin port does not either: the webhook port is done, or must end at once.
    Ending,
}

/// Waits for a phase, or for a later one.
pub(super) async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // The sender lives as long as the server, and what waits here ends with it.
    let _ = phase.wait_for(|phase| *phase >= wanted).await;
}
