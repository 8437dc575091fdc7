//! The clients that are answered if client certificates are required.

use std::fs;
use std::time::Duration;

use hyper::StatusCode;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt;
use webhook_certs::ClientAuthorities;

use crate::harness::{Running, client_config, connect_with, options, read_to_end, start};
use crate::serving::until;

/// A CA that signs client certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    fn client(&self) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let leaf = params.signed_by(&key, &self.0).unwrap();
        (leaf.into(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }
}

/// Whether a client with this certificate is answered.
async fn answered(
    server: &Running,
    shown: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> bool {
    let config = client_config(&server.ca_pem, shown);
    // With TLS 1.3 the client's handshake ends before the server has checked its certificate.
    let Ok(mut stream) = connect_with(server.webhook, config, None).await else {
        return false;
    };
    let request = b"POST /mutate HTTP/1.1\r\nhost: guard\r\ncontent-type: application/json\r\n\
        content-length: 2\r\nconnection: close\r\n\r\n{}";
    if stream.write_all(request).await.is_err() {
        return false;
    }
    read_to_end(&mut stream).await.starts_with("HTTP/1.1 200 ")
}

#[tokio::test]
async fn only_clients_of_the_authority_are_answered() {
    let (first, second, stranger) = (Authority::new(), Authority::new(), Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.pem");
    fs::write(&path, first.0.pem()).unwrap();
    let opened = ClientAuthorities::open(path.clone(), Duration::from_millis(10));
    let (authorities, follow) = opened.unwrap();
    let mut options = options();
    options.clients = Some(authorities);
    let server = start(options).await;
    let follower = tokio::spawn(follow);

    assert!(answered(&server, Some(first.client())).await);
    assert!(!answered(&server, Some(stranger.client())).await);
    assert!(!answered(&server, None).await);
    let failures = "multi_attach_guard_tls_handshake_failures_total";
    server.until_metric(failures, 2.0).await;
    let (status, text) = server.admin_get("/readyz").await;
    assert_eq!(status, StatusCode::OK, "the server may ask itself: {text}");
    assert_eq!(server.metric(failures).await, 2.0);

    fs::write(&path, second.0.pem()).unwrap();
    until("the new authority counts", async || answered(&server, Some(second.client())).await)
        .await;
    assert!(!answered(&server, Some(first.client())).await);
    follower.abort();
}
