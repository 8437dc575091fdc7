//! TLS on the webhook port, and asking that port for a handshake.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ResolvesServerCert;
use rustls::{ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::health::Condition;

/// TLS 1.2 and 1.3, HTTP/2 preferred: the API server speaks HTTP/2 over 1.3.
pub(super) fn server_config(
    certificates: Arc<dyn ResolvesServerCert>,
) -> Result<ServerConfig, Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// How long the port may take to answer the probe's handshake.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// An answer stays good for this long, so that anyone who can reach the admin
/// port cannot make the server shake hands with itself without end.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Asks the webhook port for a TLS handshake, as the API server would.
pub(super) struct HandshakeProbe {
    connector: TlsConnector,
    port: SocketAddr,
    last: Mutex<Option<(Instant, Condition)>>,
}

impl HandshakeProbe {
    /// A probe of the port bound at `bound`.
    pub(super) fn new(bound: SocketAddr) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            port: reachable(bound),
            last: Mutex::new(None),
        })
    }

    /// The condition `tls`.
    pub(super) async fn condition(&self) -> Condition {
        let mut last = self.last.lock().await;
        if let Some((at, condition)) = &*last
            && at.elapsed() < PROBE_EVERY
        {
            return condition.clone();
        }
        let condition = match timeout(PROBE_TIMEOUT, self.shake_hands()).await {
            Ok(Ok(())) => Condition::ready(
                "tls",
                format!("The webhook port answers TLS handshakes at {}.", self.port),
            ),
            Ok(Err(error)) => Condition::not_ready(
                "tls",
                format!(
                    "The webhook port at {} failed a TLS handshake: {error}.",
                    self.port
                ),
            ),
            Err(_) => Condition::not_ready(
                "tls",
                format!(
                    "The webhook port at {} did not answer a TLS handshake within {} s.",
                    self.port,
                    PROBE_TIMEOUT.as_secs()
                ),
            ),
        };
        *last = Some((Instant::now(), condition.clone()));
        condition
    }

    async fn shake_hands(&self) -> std::io::Result<()> {
        let stream = TcpStream::connect(self.port).await?;
        let name = ServerName::IpAddress(self.port.ip().into());
        self.connector.connect(name, stream).await.map(drop)
    }
}

/// The address at which this process reaches a port it has bound.
fn reachable(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}

/// Accepts every certificate whose key the server holds: the probe asks
/// whether the port shakes hands, not whether the certificate is trusted,
/// which depends on the caBundle that only the API server has.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

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
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_address_is_reachable() {
        let cases = [
            ("0.0.0.0:8443", "127.0.0.1:8443"),
            ("[::]:8443", "[::1]:8443"),
            ("127.0.0.2:8443", "127.0.0.2:8443"),
            ("[2001:db8::1]:8443", "[2001:db8::1]:8443"),
        ];
        for (bound, expected) in cases {
            let bound: SocketAddr = bound.parse().unwrap();
            assert_eq!(reachable(bound).to_string(), expected, "{bound}");
        }
    }
}
