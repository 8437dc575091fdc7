//! TLS on the webhook port, and a probe of its handshake.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::server::ResolvesServerCert;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::health::Readiness;
use super::listener::socket_for;

/// The configuration of TLS 1.2 and 1.3, HTTP/2 preferred. The API server speaks HTTP/1.1 to a
/// Service, so that its connections spread over the replicas, and HTTP/2 to a `url` on its own
/// machine (`hookClientConfig` in apiserver/pkg/util/webhook/client.go). Without `clients`, clients
/// need no certificate.
pub(super) fn server_config(
    certificates: Arc<dyn ResolvesServerCert>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<ServerConfig, Error> {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    let mut config = match clients {
        Some(clients) => config.with_client_cert_verifier(clients),
        None => config.with_no_client_auth(),
    }
    .with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The time that the port may take to answer the probe's handshake.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// The message about a port that did not answer within [`PROBE_TIMEOUT`].
const LATE: &str = "The webhook port did not answer a TLS handshake within a second.";

/// The time for which a result is kept, so that no client of the admin port can keep the server
/// busy with handshakes with itself.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// The time after which a port that has worked and no longer answers counts as broken. Until then
/// it counts as busy: a replica that becomes not ready as soon as it is busy leaves its load to the
/// others, which then become not ready too.
const BUSY: Duration = Duration::from_secs(10);

/// The address from which this process connects to itself.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnHandshake(Arc<std::sync::Mutex<Option<SocketAddr>>>);

impl OwnHandshake {
    /// Whether a connection from `peer` is that of the readiness probe.
    pub(super) fn is_from(&self, peer: SocketAddr) -> bool {
        // An IPv6 socket reports an IPv4 address as `::ffff:a.b.c.d`.
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) == Some(peer)
    }

    fn set(&self, address: Option<SocketAddr>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = address;
    }
}

/// Performs a TLS handshake with the webhook port, as the API server would.
pub(super) struct HandshakeProbe {
    connector: TlsConnector,
    port: SocketAddr,
    own: OwnHandshake,
    last: Mutex<Last>,
}

/// The result of the last handshake.
#[derive(Debug, Default)]
struct Last {
    result: Option<(Instant, Readiness)>,
    /// The time at which the port last answered.
    good: Option<Instant>,
}

impl HandshakeProbe {
    /// A probe of the port bound at `bound`.
    pub(super) fn new(bound: SocketAddr, own: OwnHandshake) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let verifier = AnyCertificate(provider.signature_verification_algorithms);
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            port: reachable(bound),
            own,
            last: Mutex::default(),
        })
    }

    /// The condition `tls`.
    pub(super) async fn condition(&self) -> Readiness {
        let mut last = self.last.lock().await;
        if let Some((at, condition)) = &last.result
            && at.elapsed() < PROBE_EVERY
        {
            return condition.clone();
        }
        let handshake = timeout(PROBE_TIMEOUT, self.handshake()).await;
        self.own.set(None);
        if let Ok(Ok(())) = handshake {
            last.good = Some(Instant::now());
        }
        let was_good = last.good.is_some_and(|at| at.elapsed() < BUSY);
        let condition = match handshake {
            Ok(Ok(())) => Readiness::ready("tls", "The webhook port answers TLS handshakes."),
            Ok(Err(error)) => Readiness::not_ready(
                "tls",
                format!("The webhook port failed a TLS handshake: {error}."),
            ),
            Err(_) if was_good => Readiness::degraded("tls", LATE),
            Err(_) => Readiness::not_ready("tls", LATE),
        };
        last.result = Some((Instant::now(), condition.clone()));
        condition
    }

    async fn handshake(&self) -> std::io::Result<()> {
        let from = SocketAddr::new(self.port.ip(), 0);
        let socket = socket_for(from)?;
        // The socket is bound first, so that the listener knows the address before the connection
        // arrives.
        socket.bind(from)?;
        self.own.set(Some(socket.local_addr()?));
        let stream = socket.connect(self.port).await?;
        let name = ServerName::IpAddress(self.port.ip().into());
        self.connector.connect(name, stream).await.map(drop)
    }
}

/// The address at which this process reaches a port that it has bound. If that is every address,
/// IPv4 is used: a machine may allow the binding although its IPv6 is switched off.
fn reachable(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        ip if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}

/// Accepts every certificate whose key the server holds: whether it is trusted depends
/// on the caBundle, which only the API server has.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_handshake_is_known_by_ipv4_through_a_socket_of_ipv6() {
        let own = OwnHandshake::default();
        own.set(Some(([127, 0, 0, 1], 7).into()));
        for (peer, expected) in
            [("127.0.0.1:7", true), ("[::ffff:127.0.0.1]:7", true), ("127.0.0.1:8", false)]
        {
            assert_eq!(own.is_from(peer.parse().unwrap()), expected, "{peer}");
        }
    }

    #[test]
    fn bound_address_is_reachable() {
        let cases = [
            ("0.0.0.0:8443", "127.0.0.1:8443"),
            ("[::]:8443", "127.0.0.1:8443"),
            ("127.0.0.2:8443", "127.0.0.2:8443"),
            ("[2001:db8::1]:8443", "[2001:db8::1]:8443"),
        ];
        for (bound, expected) in cases {
            let bound: SocketAddr = bound.parse().unwrap();
            assert_eq!(reachable(bound).to_string(), expected, "{bound}");
        }
    }
}
