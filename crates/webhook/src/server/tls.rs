//! TLS on the webhook port.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::server::ResolvesServerCert;
use rustls::server::danger::ClientCertVerifier;
use rustls::{Error, ServerConfig};

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
