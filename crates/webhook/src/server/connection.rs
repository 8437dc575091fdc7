//! One connection: TLS handshake, then requests until its client or a deadline ends it.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::HttpBody;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustls::{Error as TlsError, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::{Service, ServiceBuilder};

use super::connections::{Activity, Connection, ConnectionGuard, Connections};
use super::drain::DrainedBody;
use super::limits::Limits;
use super::memory::MemoryLimit;
use super::metrics::{ConnectionMetrics, Metrics};
use super::review::Reviewer;
use super::routes::{Reviews, router};
use super::tls::OwnHandshake;

/// Received and not yet read bytes that one HTTP/1.1 connection may hold,
/// headers included.
const HTTP1_BUFFER: usize = 64 * 1024;

/// Streams open at once on one HTTP/2 connection, the fewest that RFC 9113 recommends. Go's
/// client opens a further connection for more.
const STREAMS: u32 = 100;

/// Received and not yet read bytes that one HTTP/2 stream may hold. An API server is a
/// millisecond away at most, so this still lets tens of megabytes a second through.
const STREAM_WINDOW: u32 = 32 * 1024;

/// The same for one HTTP/2 connection: none of its streams keeps another from being read.
const CONNECTION_WINDOW: u32 = STREAMS * STREAM_WINDOW;

/// Bytes read from a connection at once: a TLS record and its header (RFC 8446, 5.2).
/// rustls by itself reads 4 KiB, and so takes three reads for a review of 10 KiB.
const READ: usize = 16 * 1024 + 256 + 5;

/// Bytes in the headers of one HTTP/2 request, each counted with 32 more (RFC 9113, 6.5.2).
/// Those of an API server have some 500; the map of them must fit into what a request takes
/// of the memory besides its body.
const HTTP2_HEADERS: u32 = 8 * 1024;

/// HTTP/2 pings discover clients that vanished without closing the connection.
const HTTP2_PING_EVERY: Duration = Duration::from_secs(30);

/// A wrong caBundle fails every review, so its log line is kept rare.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// How long an evicted connection has to close.
const EVICTED: Duration = Duration::from_secs(1);

/// The longest that an API server waits for a review (`timeoutSeconds` of a webhook), and so
/// the longest that a connection stays open for what is in flight: it may be a response that
/// the client does not read, and over HTTP/2 a client can begin further requests until it
/// knows that the connection is closing.
const IN_FLIGHT: Duration = Duration::from_secs(30);

/// How often a connection is looked at, at least.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A client that has not read a response for so long is disconnected where memory is short.
const UNREAD: Duration = Duration::from_secs(1);

/// The deadlines of a connection after its handshake.
#[derive(Clone, Debug)]
pub(super) struct Lifetime {
    /// To the first request.
    pub(super) first: Duration,
    /// Without a request, afterwards.
    pub(super) idle: Duration,
    /// To when it closes, however busy.
    pub(super) age: Duration,
    /// From when it closes to its end, but for what is in flight.
    pub(super) grace: Duration,
    /// What pending responses hold, if that is limited.
    pub(super) memory: Option<MemoryLimit>,
}

impl Lifetime {
    pub(super) fn new(limits: &Limits, memory: Option<MemoryLimit>) -> Self {
        Self {
            first: limits.headers,
            idle: limits.idle,
            age: limits.age,
            grace: limits.grace,
            memory,
        }
    }
}

/// What all connections to the webhook port share.
pub(super) struct Https {
    router: Router,
    tls: TlsAcceptor,
    http: Builder<TokioExecutor>,
    own_handshake: OwnHandshake,
    limits: Limits,
    lifetime: Lifetime,
    metrics: ConnectionMetrics,
    warned: Mutex<Option<Instant>>,
}

impl Https {
    pub(super) fn new<R: Reviewer>(
        reviews: Arc<Reviews<R>>,
        tls: ServerConfig,
        own_handshake: OwnHandshake,
        metrics: &Metrics,
    ) -> Self {
        let limits = reviews.limits;
        let memory = reviews.memory.clone();
        Self {
            router: router(reviews),
            tls: TlsAcceptor::from(Arc::new(tls)),
            http: http(),
            own_handshake,
            limits,
            lifetime: Lifetime::new(&limits, Some(memory)),
            metrics: metrics.connections.clone(),
            warned: Mutex::default(),
        }
    }

    /// Serves a connection to its end, if there is room for it.
    pub(super) fn serve(
        self: &Arc<Self>,
        connections: &Arc<Connections>,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let guard = match self.own_handshake.is_from(peer) {
            // Readiness needs no place among the others.
            true => None,
            false => Some(connections.admit(peer.ip())?),
        };
        let shared = Arc::clone(self);
        Some(async move {
            match guard {
                Some(guard) => shared.serve_admitted(guard, stream).await,
                None => {
                    let _ = timeout(shared.limits.handshake, shared.tls.accept(stream)).await;
                }
            }
        })
    }

    async fn serve_admitted(self: Arc<Self>, guard: ConnectionGuard, stream: TcpStream) {
        // Without it the second small write of an answer waits for the
        // client's delayed acknowledgement, 40 ms. A connection that is
        // already gone says so at the handshake.
        let _ = stream.set_nodelay(true);
        let stream = BufReader::with_capacity(READ, stream);
        let accepted = tokio::select! {
            accepted = timeout(self.limits.handshake, self.tls.accept(stream)) => accepted,
            () = guard.connection().closing() => return,
        };
        let stream = match accepted {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return self.handshake_failed(&error),
            Err(_) => return self.handshake_failed(&io::ErrorKind::TimedOut.into()),
        };
        let mut lifetime = self.lifetime.clone();
        let http = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => self.http.clone().http2_only(),
            _ => {
                lifetime.idle = self.limits.headers;
                self.http.clone().http1_only()
            }
        };
        let (connection, limits) = (Arc::clone(guard.connection()), self.limits);
        let service = ServiceBuilder::new()
            .map_request(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(Arc::clone(&connection));
                DrainedBody::wrap(request, limits)
            })
            .service(self.router.clone());
        serve_http(stream, &http, &guard, &lifetime, service).await;
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
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let due = warned.is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if due {
            *warned = Some(Instant::now());
        }
        due
    }
}

/// HTTP/1.1 and HTTP/2 within the limits.
fn http() -> Builder<TokioExecutor> {
    let mut http = Builder::new(TokioExecutor::new());
    http.http1().max_buf_size(HTTP1_BUFFER);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_PING_EVERY)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HTTP2_HEADERS)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_stream_window_size(STREAM_WINDOW);
    http
}

/// Serves a connection to its end, with one timer for all its deadlines.
///
/// Whatever a client can leave undone (headers, the next request, reading a response) leaves
/// the connection without a request that begins or ends, and so idle.
pub(super) async fn serve_http<S, V, B>(
    stream: S,
    http: &Builder<TokioExecutor>,
    guard: &ConnectionGuard,
    lifetime: &Lifetime,
    service: V,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    V: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    V::Future: Send + 'static,
    V::Error: Into<Box<dyn Error + Send + Sync>>,
    B: HttpBody<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let connection = guard.connection();
    let service = TowerToHyperService::new(service);
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut closing = pin!(connection.closing());
    let mut timer = pin!(sleep(lifetime.first.min(LOOK_EVERY)));
    let mut closed_at = None;
    let mut oldest = None;
    loop {
        let next = tokio::select! {
            biased;
            // What is wrong with a connection is its client's affair.
            _ = &mut serving => return,
            () = &mut closing, if closed_at.is_none() => Next::Close,
            () = &mut timer => {
                let activity = connection.activity().clone();
                if is_unread(&activity, &mut oldest) && lifetime.is_memory_short() {
                    guard.displaced();
                    return;
                }
                lifetime.next(connection, &activity, closed_at)
            }
        };
        let now = Instant::now();
        match next {
            Next::Look(at) => timer.as_mut().reset(at.min(now + LOOK_EVERY)),
            Next::Close => {
                serving.as_mut().graceful_shutdown();
                closed_at = Some(now);
                timer.as_mut().reset(now + lifetime.grace.min(LOOK_EVERY));
            }
            Next::Cut => return,
        }
    }
}

/// What to do with a connection next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It stays until then.
    Look(Instant),
    /// It ends once what is in flight has.
    Close,
    /// It ends at once.
    Cut,
}

impl Lifetime {
    fn next(
        &self,
        connection: &Connection,
        activity: &Activity,
        closed_at: Option<Instant>,
    ) -> Next {
        let now = Instant::now();
        let is_idle = activity.in_flight == 0;
        let stuck = activity.last + IN_FLIGHT;
        let (due, then) = match closed_at {
            Some(at) if activity.is_evicted => (at + EVICTED, Next::Cut),
            Some(at) if is_idle => (at.max(activity.last) + self.grace, Next::Cut),
            Some(at) => (stuck.min(at + IN_FLIGHT), Next::Cut),
            None if !is_idle && now >= stuck => (stuck, Next::Cut),
            None => {
                let idle = match (is_idle, activity.has_requests) {
                    (false, _) => stuck,
                    (true, true) => activity.last + self.idle,
                    (true, false) => activity.last + self.first,
                };
                (idle.min(connection.opened() + self.age), Next::Close)
            }
        };
        match due > now {
            true => Next::Look(due),
            false => then,
        }
    }

    fn is_memory_short(&self) -> bool {
        self.memory.as_ref().is_some_and(MemoryLimit::is_short)
    }
}

/// Whether the oldest pending response is old, and was at the last look: in between, this
/// process has had time to send it.
fn is_unread(activity: &Activity, oldest: &mut Option<Instant>) -> bool {
    let old = activity.pending.iter().min().copied();
    let old = old.filter(|since| since.elapsed() >= UNREAD);
    let is_known = old.is_some() && old == *oldest;
    *oldest = old;
    is_known
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::io::AsyncWriteExt as _;
    use tower::service_fn;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    const LIFETIME: Lifetime = Lifetime {
        first: LONG,
        idle: LONG,
        age: LONG,
        grace: Duration::from_secs(1),
        memory: None,
    };

    /// Whether it is closing or not. Over HTTP/2 a client could otherwise keep it open with one
    /// request after the other.
    #[tokio::test(start_paused = true)]
    async fn what_is_in_flight_keeps_a_connection_open_for_half_a_minute() {
        for is_closing in [false, true] {
            let connections = Arc::new(Connections::new(1, 1, None));
            let guard = connections.admit(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
            let (mut client, stream) = tokio::io::duplex(1024);
            let request = b"POST / HTTP/1.1\r\nhost: guard\r\ncontent-length: 0\r\n\r\n";
            client.write_all(request).await.unwrap();
            let http = Builder::new(TokioExecutor::new()).http1_only();
            let connection = Arc::clone(guard.connection());
            let never = service_fn(move |_| {
                let in_flight = connection.begin();
                async move {
                    let _in_flight = in_flight;
                    pending::<Result<Response, Infallible>>().await
                }
            });
            let mut serving = pin!(serve_http(stream, &http, &guard, &LIFETIME, never));
            let begun = timeout(Duration::from_millis(1), &mut serving).await;
            assert!(begun.is_err() && guard.connection().activity().in_flight == 1);
            if is_closing {
                connections.close_all();
            }
            let early = IN_FLIGHT - Duration::from_secs(1);
            let ended = timeout(early, &mut serving).await;
            assert!(ended.is_err(), "too early, closing: {is_closing}");
            let ended = timeout(3 * LIFETIME.grace, &mut serving).await;
            assert!(ended.is_ok(), "too late, closing: {is_closing}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_is_unread_that_was_old_at_two_looks() {
        let now = Instant::now();
        let connections = Arc::new(Connections::new(1, 1, None));
        let guard = connections.admit(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let activity = || guard.connection().activity().clone();
        let [mut first, mut second] = [0, 1].map(|_| guard.connection().begin());
        let mut oldest = None;
        first.ready();
        assert!(!is_unread(&activity(), &mut oldest), "it is young");
        tokio::time::advance(UNREAD).await;
        second.ready();
        assert!(!is_unread(&activity(), &mut oldest), "the first look");
        assert_eq!(oldest, Some(now));
        // Others that are read meanwhile change nothing.
        drop(second);
        assert!(is_unread(&activity(), &mut oldest));
        drop(first);
        assert!(!is_unread(&activity(), &mut oldest));
    }
}
