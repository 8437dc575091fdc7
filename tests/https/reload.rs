//! The certificate of a running server changes as Kubernetes changes a mounted Secret: with a new
//! directory, to which a symlink is switched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;
use webhook_certs::{Certificates, PemFiles};

use crate::harness::{Running, connect, options, start_as};
use crate::serving::until;

const SOON: Duration = Duration::from_millis(10);

/// A self-signed certificate and its key, both in PEM.
struct Issued {
    certificate: String,
    key: String,
}

fn issue() -> Issued {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    Issued { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

/// Writes a version of the Secret and switches `..data` to it.
fn publish(volume: &Path, version: &str, certificate: &str, key: &str) {
    let directory = volume.join(version);
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("tls.crt"), certificate).unwrap();
    fs::write(directory.join("tls.key"), key).unwrap();
    let next = volume.join("..data_tmp");
    symlink(version, &next).unwrap();
    fs::rename(next, volume.join("..data")).unwrap();
}

async fn serves(server: &Running, issued: &Issued) -> bool {
    connect(server.webhook, &issued.certificate).await.is_ok()
}

#[tokio::test]
async fn a_swapped_secret_is_served_and_a_bad_one_is_not() {
    let volume = TempDir::new().unwrap();
    for file in ["tls.crt", "tls.key"] {
        symlink(Path::new("..data").join(file), volume.path().join(file)).unwrap();
    }
    let [first, second, third] = [issue(), issue(), issue()];
    publish(volume.path(), "..1", &first.certificate, &first.key);
    let [chain_file, key_file] = ["tls.crt", "tls.key"].map(|name| volume.path().join(name));
    let (files, pair) = PemFiles::open(chain_file, key_file).unwrap();
    let certificates = Arc::new(Certificates::new(pair));
    let server =
        start_as(options(), Vec::new(), Arc::clone(&certificates), first.certificate.clone()).await;
    let metrics = server.metrics.clone();
    let followed = Arc::clone(&certificates);
    let follower = tokio::spawn(async move {
        let attempted = |is_valid| metrics.certificate_reloaded(is_valid);
        files.follow(SOON, followed, attempted).await;
    });

    assert!(serves(&server, &first).await);
    // During all changes, every handshake gets a valid certificate.
    let trusted = [&first, &second, &third].map(|issued| issued.certificate.as_str()).concat();
    let webhook = server.webhook;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let asking = tokio::spawn(async move {
        let mut handshakes = 0;
        while !*stopped.borrow() {
            connect(webhook, &trusted).await.unwrap();
            handshakes += 1;
        }
        handshakes
    });
    let client = server.client();
    let review = async || server.post(&client, "/mutate", "{}").await.status();
    assert_eq!(review().await, StatusCode::OK);

    publish(volume.path(), "..2", &second.certificate, &second.key);
    until("the new certificate is served", async || serves(&server, &second).await).await;
    assert!(!serves(&server, &first).await);
    assert_eq!(review().await, StatusCode::OK, "an open connection stays");

    for (version, certificate, key, sentence) in [
        ("..3", &*second.certificate, &*first.key, "does not belong"),
        ("..4", "", &second.key, "holds no certificate"),
        ("..5", &second.certificate, "", "holds no private key"),
        ("..6", "-----BEGIN CERTIFICATE-----\nAAAA", &second.key, "is not valid PEM"),
    ] {
        publish(volume.path(), version, certificate, key);
        until(sentence, async || {
            let failure = certificates.failure();
            failure.is_some_and(|failure| failure.contains(sentence))
        })
        .await;
        assert!(serves(&server, &second).await, "{sentence}");
    }

    publish(volume.path(), "..7", &third.certificate, &third.key);
    until("a good pair heals it", async || serves(&server, &third).await).await;
    assert_eq!(certificates.failure(), None);
    let count =
        |result| format!("multi_attach_guard_certificate_reloads_total{{result=\"{result}\"}}");
    assert_eq!(server.metric(&count("success")).await, 2.0);
    assert_eq!(server.metric(&count("failure")).await, 4.0);
    stop.send(true).unwrap();
    assert!(asking.await.unwrap() > 0);
    follower.abort();
}
