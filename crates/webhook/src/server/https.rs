//! One connection to the webhook port: handshake, then requests.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::{Error as TlsError, ServerConfig};
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::budget::{CONNECTION_WINDOW, STREAM_WINDOW};
use super::connections::{Admitted, Connections};
use super::limits::Limits;
use super::metrics::Metrics;
use super::port::{Lifetime, speak};
use super::review::Reviewer;
use super::tls::OwnHandshake;
use super::webhook::Webhook;

/// Received and not yet read bytes that one HTTP/1.1 connection may hold,
/// headers included.
const HTTP1_BUFFER: usize = 64 * 1024;

/// Bytes read from a connection at once: a TLS record and its header (RFC 8446, 5.2).
/// rustls by itself reads 4 KiB, and so asks three times for a review of 10 KiB.
const READ: usize = 16 * 1024 + 256 + 5;

/// Bytes in the headers of one HTTP/2 request, each counted with 32 more (RFC 9113, 6.5.2).
/// Those of an API server have some 500; what the map of them takes must fit into what a
/// request is charged for beside its body.
const HTTP2_HEADERS: u32 = 8 * 1024;

/// A client that vanished without a word is found out by HTTP/2 pings.
const HTTP2_PING_EVERY: Duration = Duration::from_secs(30);

/// A wrong caBundle fails every review, so its log line is kept rare.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// What all connections to the webhook port share.
pub(super) struct Https<R> {
    webhook: Arc<Webhook<R>>,
    tls: TlsAcceptor,
    own_handshake: OwnHandshake,
    limits: Limits,
    metrics: Metrics,
    warned: Mutex<Option<Instant>>,
}

impl<R: Reviewer> Https<R> {
    pub(super) fn new(
        webhook: Webhook<R>,
        tls: ServerConfig,
        own_handshake: OwnHandshake,
        limits: Limits,
        metrics: Metrics,
    ) -> Self {
        Self {
            webhook: Arc::new(webhook),
            tls: TlsAcceptor::from(Arc::new(tls)),
            own_handshake,
            limits,
            metrics,
            warned: Mutex::default(),
        }
    }

    /// Serves a connection to its end, if there is room for it.
    pub(super) fn serve(
        self: &Arc<Self>,
        connections: &Arc<Connections>,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> Option<impl Future<Output = ()> + Send + use<R>> {
        let is_own = self.own_handshake.is_from(peer);
        let place = match is_own {
            // Readiness has a place of its own, beside all others.
            true => None,
            false => Some(connections.admit(peer.ip())?),
        };
        let shared = Arc::clone(self);
        Some(async move {
            match place {
                Some(place) => shared.serve_at(place, stream).await,
                None => {
                    let _ = timeout(shared.limits.handshake, shared.tls.accept(stream)).await;
                }
            }
        })
    }

    async fn serve_at(self: Arc<Self>, place: Admitted, stream: TcpStream) {
        // Without it the second small write of an answer waits for the
        // client's delayed acknowledgement, 40 ms. A connection that is
        // already gone says so at the handshake.
        let _ = stream.set_nodelay(true);
        let stream = BufReader::with_capacity(READ, stream);
        let shaken = tokio::select! {
            shaken = timeout(self.limits.handshake, self.tls.accept(stream)) => shaken,
            () = place.connection().told_to_leave() => return,
        };
        match shaken {
            Ok(Ok(stream)) => self.speak(&place, stream).await,
            Ok(Err(error)) => self.handshake_failed(&error),
            Err(_) => self.handshake_failed(&io::ErrorKind::TimedOut.into()),
        }
    }

    async fn speak(&self, place: &Admitted, stream: TlsStream<BufReader<TcpStream>>) {
        let mut http = Builder::new(TokioExecutor::new());
        let idle = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => {
                http = http.http2_only();
                http.http2()
                    .timer(TokioTimer::new())
                    .keep_alive_interval(HTTP2_PING_EVERY)
                    .max_header_list_size(HTTP2_HEADERS)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .initial_stream_window_size(STREAM_WINDOW);
                self.limits.idle
            }
            _ => {
                http = http.http1_only();
                http.http1().max_buf_size(HTTP1_BUFFER);
                self.limits.headers
            }
        };
        let lifetime = Lifetime {
            first: self.limits.headers,
            idle,
            age: self.limits.age,
            goodbye: self.limits.goodbye,
        };
        let answer = |asking, request| Arc::clone(&self.webhook).answer(asking, request);
        speak(stream, &http, place, lifetime, answer).await;
    }

    fn handshake_failed(&self, error: &io::Error) {
        self.metrics.handshake_failed();
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
        let Ok(mut warned) = self.warned.lock() else {
            return false;
        };
        let due = warned.is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if due {
            *warned = Some(Instant::now());
        }
        due
    }
}
