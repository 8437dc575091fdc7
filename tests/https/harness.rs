//! A real server with a reviewer that answers by what the body says, and
//! clients that see what an API server would see.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use jiff::Timestamp;
use multi_attach_guard::admission::{Answer, Decision, Endpoint, Malformed, Operation};
use multi_attach_guard::certs::{Certificates, SelfSigned};
use multi_attach_guard::policy::Action;
use multi_attach_guard::server::{
    HealthSource, Metrics, Options, Reviewer, Server, ServerError, Shutdown, Stopped,
};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Nothing here takes this long; a test that waits for it has failed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Says which webhook was called and how long the body was; panics on
/// `"panic"`, and takes `"no review"` for none.
pub(crate) struct Echo;

impl Reviewer for Echo {
    async fn review(
        &self,
        endpoint: Endpoint,
        body: &[u8],
        _: Instant,
    ) -> Result<Answer, Malformed> {
        assert_ne!(body, b"\"panic\"", "as asked");
        if body == b"\"no review\"" {
            return Err(Malformed::NoRequest);
        }
        Ok(Answer {
            body: format!("{} {}", endpoint.name(), body.len()).into(),
            kind: "Deployment",
            operation: Operation::Create,
            dry_run: false,
            decision: Decision::Allowed,
            findings: vec![("rolling-update-overlap", Action::Warn)],
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

pub(crate) async fn start_with(options: Options, sources: Vec<Arc<dyn HealthSource>>) -> Running {
    let made = SelfSigned::generate(&[], Timestamp::now()).unwrap();
    let certificates = Arc::new(Certificates::new(made.pair));
    start_as(options, sources, certificates, made.ca_pem).await
}

pub(crate) async fn start_as(
    options: Options,
    sources: Vec<Arc<dyn HealthSource>>,
    certificates: Arc<Certificates>,
    ca_pem: String,
) -> Running {
    let metrics = Metrics::new(&["Deployment"]);
    let server = Server::start(&options, certificates, Echo, sources, metrics.clone())
        .await
        .unwrap();
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

    /// A client that trusts the server and prefers HTTP/2, as ALPN lets it.
    pub(crate) fn client(&self) -> reqwest::Client {
        self.builder().build().unwrap()
    }

    /// The same, without HTTP/2.
    pub(crate) fn http1_client(&self) -> reqwest::Client {
        self.builder().http1_only().build().unwrap()
    }

    fn builder(&self) -> reqwest::ClientBuilder {
        // Fails when an earlier test installed it, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ca = reqwest::Certificate::from_pem(self.ca_pem.as_bytes()).unwrap();
        reqwest::Client::builder()
            .tls_certs_only([ca])
            .timeout(DEADLINE)
    }

    pub(crate) async fn admin_get(&self, path: &str) -> (StatusCode, String) {
        let response = reqwest_plain()
            .get(format!("http://{}{path}", self.admin))
            .send()
            .await
            .unwrap();
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

fn reqwest_plain() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .tls_certs_only([])
        .timeout(DEADLINE)
        .build()
        .unwrap()
}

pub(crate) async fn connect(to: SocketAddr, ca_pem: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for ca in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        roots.add(ca.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(to).await?;
    let name = ServerName::IpAddress(to.ip().into());
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// Sends bytes, all of them.
pub(crate) async fn send(stream: &mut TlsStream<TcpStream>, bytes: &[u8]) {
    stream.write_all(bytes).await.unwrap();
    stream.flush().await.unwrap();
}

/// Everything up to the end of the connection, which must come.
pub(crate) async fn read_to_end(stream: &mut TlsStream<TcpStream>) -> String {
    let mut text = Vec::new();
    // A connection that was cut without a TLS goodbye has ended as well.
    let _ = timeout(DEADLINE, stream.read_to_end(&mut text))
        .await
        .expect("the server ends the connection");
    String::from_utf8(text).unwrap()
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    timeout(DEADLINE, async {
        while !so().await {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("never happened: {what}"));
}

/// A JSON string of exactly this many bytes.
pub(crate) fn body(length: usize) -> Bytes {
    let mut body = vec![b'<'; length];
    body[0] = b'"';
    body[length - 1] = b'"';
    body.into()
}
