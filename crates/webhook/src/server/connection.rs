//! Handles an accepted connection until its first request: a place among the others, the TLS
//! handshake, and the deadlines that its stream keeps.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::Extension;
use axum::middleware::AddExtension;
use axum_server::accept::Accept;
use axum_server::{Handle, Server};
use rustls::Error as TlsError;
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::Layer as _;

use super::connections::{Connection, ConnectionGuard, Connections};
use super::metrics::Metrics;
use super::phase::Phase;
use super::stream::GuardedStream;
use super::tls::OwnHandshake;

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

type Accepting<S, V> = Pin<Box<dyn Future<Output = io::Result<Accepted<S, V>>> + Send>>;
type Accepted<S, V> = (GuardedStream<S>, AddExtension<V, Arc<Connection>>);

/// A server of HTTP/1.1 and HTTP/2 within these limits, until `handle` stops it.
pub(super) fn http_server<A>(
    listener: TcpListener,
    acceptor: A,
    handle: Handle<SocketAddr>,
) -> Server<SocketAddr, A> {
    let mut server = Server::from_listener(listener).acceptor(acceptor).handle(handle);
    let http = server.http_builder();
    http.http1().max_buf_size(HTTP1_BUFFER);
    http.http2()
        .max_concurrent_streams(STREAMS)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_header_list_size(HTTP2_HEADERS)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_stream_window_size(STREAM_WINDOW);
    server
}

/// Accepts connections without TLS.
#[derive(Clone)]
pub(super) struct Plain(pub(super) Arc<Connections>);

impl<V: Send + 'static> Accept<TcpStream, V> for Plain {
    type Stream = GuardedStream<TcpStream>;
    type Service = AddExtension<V, Arc<Connection>>;
    type Future = Accepting<TcpStream, V>;

    fn accept(&self, stream: TcpStream, service: V) -> Self::Future {
        let guard = self.0.admit(None);
        let idle = self.0.limits.idle;
        Box::pin(async move {
            let guard = guard.ok_or(io::ErrorKind::ConnectionRefused)?;
            stream.set_nodelay(true)?;
            // Prometheus keeps its connection from one scrape to the next.
            Ok(accepted(stream, guard, idle, service))
        })
    }
}

/// Accepts connections to the webhook port.
#[derive(Clone)]
pub(super) struct Https(pub(super) Arc<Shared>);

/// The state that all connections to the webhook port share.
pub(super) struct Shared {
    pub(super) connections: Arc<Connections>,
    pub(super) tls: TlsAcceptor,
    pub(super) own_handshake: OwnHandshake,
    pub(super) metrics: Metrics,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) warned: Mutex<Option<Instant>>,
}

impl<V: Send + 'static> Accept<TcpStream, V> for Https {
    type Stream = GuardedStream<TlsStream<BufReader<TcpStream>>>;
    type Service = AddExtension<V, Arc<Connection>>;
    type Future = Accepting<TlsStream<BufReader<TcpStream>>, V>;

    fn accept(&self, stream: TcpStream, service: V) -> Self::Future {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            let limits = &shared.connections.limits;
            let peer = stream.peer_addr()?;
            if shared.own_handshake.is_from(peer) {
                // The readiness probe needs no place among the others, and makes no request.
                let _ = timeout(limits.handshake, shared.tls.accept(stream)).await;
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let client = peer.ip().to_canonical();
            let guard =
                shared.connections.admit(Some(client)).ok_or(io::ErrorKind::ConnectionRefused)?;
            let stream = shared.handshake(stream, &guard.connection).await?;
            let idle = match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => limits.idle,
                _ => limits.headers,
            };
            Ok(accepted(stream, guard, idle, service))
        })
    }
}

fn accepted<S, V>(stream: S, guard: ConnectionGuard, idle: Duration, service: V) -> Accepted<S, V> {
    let service = Extension(Arc::clone(&guard.connection)).layer(service);
    (GuardedStream::new(stream, guard, idle), service)
}

impl Shared {
    async fn handshake(
        &self,
        stream: TcpStream,
        connection: &Connection,
    ) -> io::Result<TlsStream<BufReader<TcpStream>>> {
        // Otherwise the second small write of an answer waits for the client's delayed
        // acknowledgement, 40 ms.
        stream.set_nodelay(true)?;
        let stream = BufReader::with_capacity(READ, stream);
        let mut phase = self.phase.clone();
        let limits = &self.connections.limits;
        let accepted = tokio::select! {
            accepted = timeout(limits.handshake, self.tls.accept(stream)) => accepted,
            () = poll_fn(|cx| connection.poll_evicted(cx)) => return Err(io::ErrorKind::ConnectionAborted.into()),
            _ = phase.wait_for(|phase| *phase >= Phase::Closing) => {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        };
        accepted
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .inspect_err(|error| self.handshake_failed(error))
    }

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
