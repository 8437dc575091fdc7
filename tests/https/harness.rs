//! A real server with a reviewer whose answer depends on the body, and clients that see what an API
//! server would see.

use std::convert::Infallible;
use std::future::ready;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use engine::policy::Action;
use futures_util::stream::{self, StreamExt};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::StatusCode;
use hyper::body::{Bytes, Frame, Incoming};
use hyper::client::conn::http2;
use hyper::header::CONTENT_TYPE;
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use webhook::admission::{Answer, Decision, Endpoint, MalformedReview, Operation};
use webhook::server::{
    HealthSource, Limits, Metrics, Options, Reviewer, Server, ServerError, Shutdown, Stopped,
};
use webhook_certs::{Certificates, SelfSigned};

use crate::serving::{in_time, trusting, until};

/// An address of this machine that the other clients do not use.
pub(crate) const STRANGER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

/// The server's reaction to a client that must go.
pub(crate) const ENDS: &str = "the server ends the connection";

/// Answers with the name of the webhook and the length of the body. It panics on `"panic"`, reports
/// `"no review"` as malformed, and never answers `"never"`.
struct Echo;

impl Reviewer for Echo {
    async fn review(
        &self,
        endpoint: Endpoint,
        body: &[u8],
        _: Option<IpAddr>,
        _: Instant,
    ) -> Result<Answer, MalformedReview> {
        assert_ne!(body, b"\"panic\"", "as asked");
        if body == b"\"no review\"" {
            return Err(MalformedReview::NoRequest);
        }
        if body == b"\"never\"" {
            std::future::pending::<()>().await;
        }
        let said = format!("{} {}", endpoint.name(), body.len());
        Ok(Answer {
            body: said.into(),
            kind: "Deployment",
            operation: Operation::Create,
            dry_run: false,
            decision: Decision::Allowed,
            findings: vec![("rolling-update-overlap", Action::Warn)],
            too_complex: false,
        })
    }
}

pub(crate) struct Running {
    pub(crate) webhook: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) ca_pem: String,
    pub(crate) shutdown: Shutdown,
    pub(crate) metrics: Metrics,
    pub(crate) stopped: JoinHandle<Result<Stopped, ServerError>>,
}

/// Free loopback ports, and a shutdown without delay.
pub(crate) fn options() -> Options {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut options = Options::new(any, any);
    options.shutdown_delay = Duration::ZERO;
    options
}

pub(crate) async fn start(options: Options) -> Running {
    start_with(options, Vec::new()).await
}

pub(crate) async fn start_limited(limit: impl FnOnce(&mut Limits)) -> Running {
    let mut options = options();
    limit(&mut options.limits);
    start(options).await
}

pub(crate) async fn start_with(options: Options, sources: Vec<Arc<HealthSource>>) -> Running {
    let made = SelfSigned::generate(&[], Timestamp::now()).unwrap();
    let certificates = Arc::new(Certificates::new(made.pair));
    start_as(options, sources, certificates, made.ca_pem).await
}

pub(crate) async fn start_as(
    options: Options,
    sources: Vec<Arc<HealthSource>>,
    certificates: Arc<Certificates>,
    ca_pem: String,
) -> Running {
    let metrics = Metrics::new(&["Deployment"]);
    let server =
        Server::start(&options, certificates, Echo, sources, metrics.clone()).await.unwrap();
    Running {
        webhook: server.listen(),
        admin: server.admin(),
        ca_pem,
        shutdown: server.shutdown(),
        metrics,
        stopped: tokio::spawn(server.run()),
    }
}

impl Running {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.webhook)
    }

    /// Posts JSON.
    pub(crate) async fn post(
        &self,
        client: &reqwest::Client,
        path: &str,
        body: impl Into<reqwest::Body>,
    ) -> reqwest::Response {
        client
            .post(self.url(path))
            .body(body)
            .header(CONTENT_TYPE, "application/json")
            .send()
            .await
            .unwrap()
    }

    /// A client that trusts the server and prefers HTTP/2, as ALPN lets it.
    pub(crate) fn client(&self) -> reqwest::Client {
        self.builder().build().unwrap()
    }

    /// A client that trusts the server and uses HTTP/1.1.
    pub(crate) fn http1_client(&self) -> reqwest::Client {
        self.builder().http1_only().build().unwrap()
    }

    fn builder(&self) -> reqwest::ClientBuilder {
        trusting(self.ca_pem.as_bytes())
    }

    pub(crate) async fn admin_get(&self, path: &str) -> (StatusCode, String) {
        let page = self.client().get(format!("http://{}{path}", self.admin));
        let response = page.send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    /// The value of one series, named as in the exposition.
    pub(crate) async fn metric(&self, series: &str) -> f64 {
        let (_, text) = self.admin_get("/metrics").await;
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))
            .unwrap_or_else(|| panic!("no series {series} in\n{text}"));
        value.parse().unwrap()
    }

    /// Waits until a series has a value.
    pub(crate) async fn until_metric(&self, series: &str, wanted: f64) {
        until(series, async || self.metric(series).await == wanted).await;
    }

    /// A TLS connection that the test drives byte by byte.
    pub(crate) async fn connect(&self) -> TlsStream<TcpStream> {
        connect(self.webhook, &self.ca_pem).await.unwrap()
    }
}

impl Running {
    /// An HTTP/2 connection that the test drives request by request.
    pub(crate) async fn http2(&self) -> Http2 {
        self.try_http2_from(None).await.unwrap()
    }

    /// An HTTP/2 connection from an address of this machine.
    pub(crate) async fn try_http2_from(&self, from: Option<IpAddr>) -> std::io::Result<Http2> {
        self.http2_with(from, &http2::Builder::new(TokioExecutor::new())).await
    }

    /// An HTTP/2 connection from a stranger that takes at most this number of bytes of each answer.
    pub(crate) async fn http2_that_takes(&self, bytes: u32) -> Http2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(bytes);
        self.http2_with(Some(STRANGER), &builder).await.unwrap()
    }

    async fn http2_with(
        &self,
        from: Option<IpAddr>,
        builder: &http2::Builder<TokioExecutor>,
    ) -> std::io::Result<Http2> {
        let stream = connect_with(self.webhook, speaks_http2(&self.ca_pem), from).await?;
        let handshake = builder.handshake(TokioIo::new(stream));
        let (requests, connection) = handshake.await.map_err(std::io::Error::other)?;
        Ok(Http2 { requests, connection: tokio::spawn(connection) })
    }
}

/// An HTTP/2 connection, which answers pings itself.
pub(crate) struct Http2 {
    requests: http2::SendRequest<Sent>,
    connection: JoinHandle<hyper::Result<()>>,
}

impl Http2 {
    /// Posts a body; returns the status and the text of the answer.
    pub(crate) fn post(
        &self,
        path: &str,
        content_type: &str,
        body: Sent,
    ) -> impl Future<Output = hyper::Result<(StatusCode, String)>> + use<> {
        let head = self.head_of(path, content_type, body);
        async move {
            let response = head.await?;
            let status = response.status();
            let text = response.into_body().collect().await?.to_bytes();
            Ok((status, String::from_utf8(text.into()).unwrap()))
        }
    }

    /// Posts a body and reads only the head of the answer.
    pub(crate) fn head_of(
        &self,
        path: &str,
        content_type: &str,
        body: Sent,
    ) -> impl Future<Output = hyper::Result<hyper::Response<Incoming>>> + use<> {
        let mut requests = self.requests.clone();
        let request = hyper::Request::post(format!("https://guard{path}"))
            .header(CONTENT_TYPE, content_type)
            .body(body)
            .unwrap();
        async move { in_time("an answer comes", requests.send_request(request)).await }
    }

    /// Waits until the server ends the connection; an error means that it broke the protocol.
    pub(crate) async fn ended(self) -> hyper::Result<()> {
        in_time(ENDS, self.connection).await.unwrap()
    }
}

/// The body of a request.
pub(crate) type Sent = BoxBody<Bytes, Infallible>;

pub(crate) fn whole(all: Bytes) -> Sent {
    Full::new(all).boxed()
}

/// A body that begins with `part` and never ends.
pub(crate) fn part_of(part: Bytes) -> Sent {
    let part = stream::once(ready(Ok(Frame::data(part))));
    BoxBody::new(StreamBody::new(part.chain(stream::pending())))
}

pub(crate) async fn connect(to: SocketAddr, ca_pem: &str) -> std::io::Result<TlsStream<TcpStream>> {
    connect_with(to, client_config(ca_pem, None), None).await
}

/// The configuration of a client that trusts this CA and shows this certificate.
pub(crate) fn client_config(
    ca_pem: &str,
    certificate: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for ca in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        roots.add(ca.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    match certificate {
        Some((leaf, key)) => config.with_client_auth_cert(vec![leaf], key).unwrap(),
        None => config.with_no_client_auth(),
    }
}

/// The configuration of a client that speaks HTTP/2.
pub(crate) fn speaks_http2(ca_pem: &str) -> ClientConfig {
    let mut config = client_config(ca_pem, None);
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// A TLS connection, from an address of this machine.
pub(crate) async fn connect_with(
    to: SocketAddr,
    config: ClientConfig,
    from: Option<IpAddr>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let socket = TcpSocket::new_v4()?;
    if let Some(from) = from {
        socket.bind(SocketAddr::new(from, 0))?;
    }
    let stream = socket.connect(to).await?;
    let name = ServerName::IpAddress(to.ip().into());
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Sends all of these bytes.
pub(crate) async fn send(stream: &mut TlsStream<TcpStream>, bytes: &[u8]) {
    stream.write_all(bytes).await.unwrap();
    stream.flush().await.unwrap();
}

/// Reads everything up to the end of the connection, which must come.
pub(crate) async fn read_to_end(stream: &mut TlsStream<TcpStream>) -> String {
    let mut text = Vec::new();
    // A connection that was cut without a TLS close_notify has ended too.
    let _ = in_time(ENDS, stream.read_to_end(&mut text)).await;
    String::from_utf8(text).unwrap()
}

/// A JSON string of exactly this many bytes.
pub(crate) fn body(length: usize) -> Bytes {
    let mut body = vec![b'<'; length];
    body[0] = b'"';
    body[length - 1] = b'"';
    body.into()
}
