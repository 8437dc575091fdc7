//! Requests to a server, and waiting for its actions, on the runtime of the test.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::machine::patient;

/// The time limit for any wait. No step takes this long; a test that reaches it has failed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A client that trusts this authority.
pub(crate) fn trusting(ca_pem: &[u8]) -> reqwest::ClientBuilder {
    // This fails if an earlier test has installed the provider, which does no harm.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let ca = reqwest::Certificate::from_pem(ca_pem).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([ca]);
    client.timeout(patient(DEADLINE))
}

/// The result of a future that must end within [`DEADLINE`].
///
/// # Panics
///
/// If it does not.
pub(crate) async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    timeout(patient(DEADLINE), future).await.unwrap_or_else(|_| panic!("never happened: {what}"))
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    in_time(what, async {
        while !so().await {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
