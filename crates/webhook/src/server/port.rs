//! A port: accepts connections up to a limit, and serves each of them.
//!
//! At the limit, the connection that has been idle longest is cut for a new one.

use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::Extension;
use axum::middleware::from_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustls::Error as TlsError;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsAcceptor;
use tower::Layer as _;

use super::connection::{Connection, in_flight};
use super::limits::Limits;
use super::metrics::{Held, Metrics};
use super::phase::{Phase, reached};

/// The number of received and unread bytes that one HTTP/1.1 connection may hold, headers included.
const HTTP1_BUFFER: usize = 64 * 1024;

/// The number of open streams on one HTTP/2 connection, the smallest that RFC 9113 recommends. Go's
/// client opens another connection for more.
const STREAMS: u32 = 100;

/// The number of received and unread bytes that one HTTP/2 stream may hold. An API server is a
/// millisecond away at most, so this still lets tens of megabytes a second through.
const STREAM_WINDOW: u32 = 32 * 1024;

/// The same number for one HTTP/2 connection: none of its streams keeps another from being read.
const CONNECTION_WINDOW: u32 = STREAMS * STREAM_WINDOW;

/// The number of HTTP/2 streams that a client has reset and that are not yet forgotten. A client
/// with more loses its connection.
const PENDING_RESETS: usize = 20;

/// The number of bytes read from a connection at once: a TLS record and its header (RFC 8446, 5.2).
/// rustls by itself reads 4 KiB, and so takes three reads for a review of 10 KiB.
const READ: usize = 16 * 1024 + 256 + 5;

/// The number of bytes in the headers of one HTTP/2 request, each header counted with 32 more (RFC
/// 9113, 6.5.2). An API server sends some 500. The map of the headers must fit into the memory that
/// a request takes besides its body.
const HTTP2_HEADERS: u32 = 8 * 1024;

/// The time between two log lines about a refused certificate: a wrong caBundle fails every review.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// The pause after an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// A port, and what all its connections share.
pub(super) struct Port {
    limits: Limits,
    /// `None` for the admin port.
    https: Option<Https>,
    http: Builder<TokioExecutor>,
    router: Router,
    phase: watch::Receiver<Phase>,
    /// The phase in which the port closes.
    until: Phase,
}

/// What belongs to the webhook port alone.
pub(super) struct Https {
    pub(super) tls: TlsAcceptor,
    pub(super) metrics: Metrics,
    pub(super) warned: Mutex<Option<Instant>>,
}

impl Port {
    pub(super) fn new(
        limits: Limits,
        https: Option<Https>,
        router: Router,
        phase: watch::Receiver<Phase>,
        until: Phase,
    ) -> Self {
        let mut http = Builder::new(TokioExecutor::new());
        http.http1().max_buf_size(HTTP1_BUFFER);
        http.http2()
            .max_concurrent_streams(STREAMS)
            .max_pending_accept_reset_streams(PENDING_RESETS)
            .max_header_list_size(HTTP2_HEADERS)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_stream_window_size(STREAM_WINDOW);
        let http = if https.is_some() { http } else { http.http1_only() };
        Self { limits, https, http, router: router.layer(from_fn(in_flight)), phase, until }
    }

    /// Accepts and serves connections until the port closes, then waits for the requests in flight.
    pub(super) async fn serve(self, listener: TcpListener) {
        let port = Arc::new(self);
        let mut tasks = JoinSet::new();
        let mut open = Vec::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = port.closes() => break,
            };
            let Ok((stream, client)) = accepted else {
                sleep(PAUSE).await;
                continue;
            };
            while tasks.try_join_next().is_some() {}
            open.retain(|(_, task): &(_, AbortHandle)| !task.is_finished());
            if !port.has_room(&mut open) {
                continue;
            }
            let connection = Arc::new(Connection::new(client.ip(), port.limits));
            let served = Arc::clone(&port).serve_until_overdue(stream, Arc::clone(&connection));
            open.push((connection, tasks.spawn(served)));
        }
        drop(listener);
        while tasks.join_next().await.is_some() {}
    }

    async fn closes(&self) {
        reached(&mut self.phase.clone(), self.until).await;
    }

    /// Whether another connection may be opened, if need be in place of an idle one.
    fn has_room(&self, open: &mut Vec<(Arc<Connection>, AbortHandle)>) -> bool {
        if open.len() < self.limits.connections {
            return true;
        }
        let idle = (0..open.len()).filter_map(|at| Some((open[at].0.idle_since()?, at)));
        let evicted = idle.min().map(|(_, at)| open.swap_remove(at).1.abort());
        if let Some(Https { metrics, .. }) = &self.https {
            match evicted {
                Some(()) => metrics.connections_displaced.inc(),
                None => metrics.connections_refused.inc(),
            };
        }
        evicted.is_some()
    }

    async fn serve_until_overdue(self: Arc<Self>, stream: TcpStream, connection: Arc<Connection>) {
        tokio::select! {
            // An error is the client's: it has left, or broken the protocol.
            _ = self.serve_stream(stream, &connection) => {}
            () = connection.overdue() => {}
        }
    }

    async fn serve_stream(
        &self,
        stream: TcpStream,
        connection: &Arc<Connection>,
    ) -> io::Result<()> {
        // Otherwise the second small write of an answer waits for the client's delayed
        // acknowledgement, 40 ms.
        stream.set_nodelay(true)?;
        let Some(https) = &self.https else {
            self.serve_http(stream, connection).await;
            return Ok(());
        };
        let _counted = Held::new(&https.metrics.connections);
        let accepted = tokio::select! {
            accepted = https.tls.accept(BufReader::with_capacity(READ, stream)) => accepted,
            () = self.closes() => return Ok(()),
        };
        let encrypted = accepted.inspect_err(|error| https.handshake_failed(error))?;
        self.serve_http(encrypted, connection).await;
        Ok(())
    }

    async fn serve_http<S>(&self, stream: S, connection: &Arc<Connection>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        connection.ready();
        let service = Extension(Arc::clone(connection)).layer(self.router.clone());
        let service = TowerToHyperService::new(service);
        let mut serving = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            _ = &mut serving => return,
            () = self.closes() => serving.as_mut().graceful_shutdown(),
        }
        let _ = serving.await;
    }
}

impl Https {
    fn handshake_failed(&self, error: &io::Error) {
        self.metrics.handshake_failures.inc();
        let cause = error.get_ref().and_then(|e| e.downcast_ref::<TlsError>());
        match cause {
            Some(TlsError::AlertReceived(alert)) if self.may_warn() => tracing::warn!(
                ?alert,
                "A client refused this server's certificate. If it was the API server, set the \
                 caBundle of the webhook configuration to the CA that signed the certificate."
            ),
            _ => tracing::debug!(%error, "A TLS handshake failed."),
        }
    }

    fn may_warn(&self) -> bool {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let due = warned.is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if due {
            *warned = Some(Instant::now());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::Ipv4Addr;

    use axum::http::Version;

    use super::super::connection::InFlight;
    use super::*;

    const LIMIT: usize = 3;

    fn port() -> Port {
        let (_, phase) = watch::channel(Phase::Serving);
        let limits = Limits { connections: LIMIT, ..Limits::default() };
        Port::new(limits, None, Router::new(), phase, Phase::Closing)
    }

    /// As many connections as may be open, each a moment younger than the one before it.
    async fn full() -> Vec<(Arc<Connection>, AbortHandle)> {
        let mut open = Vec::new();
        for _ in 0..LIMIT {
            let connection = Connection::new(Ipv4Addr::LOCALHOST.into(), Limits::default());
            open.push((Arc::new(connection), tokio::spawn(pending::<()>()).abort_handle()));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        open
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_was_idle_longest_makes_room() {
        let mut open = full().await;
        let [first, second, third] = [0, 1, 2].map(|at: usize| Arc::clone(&open[at].0));
        let in_flight = InFlight::new(Arc::clone(&first), Version::HTTP_2);
        drop(InFlight::new(Arc::clone(&second), Version::HTTP_2));
        let port = port();
        for evicted in [third, second] {
            assert!(port.has_room(&mut open));
            assert!(!open.iter().any(|(connection, _)| Arc::ptr_eq(connection, &evicted)));
            open.push((Arc::clone(&first), tokio::spawn(pending::<()>()).abort_handle()));
        }
        assert!(!port.has_room(&mut open));
        drop(in_flight);
        assert!(port.has_room(&mut open));
    }
}
