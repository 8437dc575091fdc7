//! The certificate of the webhook port: made, or read and followed.

use std::convert::Infallible;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::ServeError;
use super::options::CertificateOptions;
use crate::certs::{CertError, Certificates, PemFiles, SelfSigned, ServingPair};
use crate::server::{Metrics, Readiness};

/// How often the certificate files are compared with what is served. A kubelet
/// needs up to a minute to change a mounted Secret, so this adds little.
const INTERVAL: Duration = Duration::from_secs(2);

/// The name of the condition on the certificate.
const NAME: &str = "certificate";

/// The first certificate, and its files if it comes from files.
pub(super) fn certificates(
    options: &CertificateOptions,
) -> Result<(Arc<Certificates>, Option<PemFiles>), ServeError> {
    if let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) {
        let (files, pair) = PemFiles::open(certificate.clone(), key.clone())?;
        return Ok((Arc::new(Certificates::new(pair)), Some(files)));
    }
    let made = SelfSigned::generate(&options.dns_name, Timestamp::now())?;
    if let Some(path) = &options.write_ca {
        fs::write(path, &made.ca_pem).map_err(|source| ServeError::WriteCa {
            path: path.clone(),
            source,
        })?;
        tracing::info!(file = %path.display(), "The CA to trust was written.");
    }
    Ok((Arc::new(Certificates::new(made.pair)), None))
}

/// Follows the files for ever; without files there is nothing to follow.
pub(super) async fn follow(
    files: Option<PemFiles>,
    certificates: &Certificates,
    metrics: &Metrics,
) -> Infallible {
    let Some(files) = files else {
        return std::future::pending().await;
    };
    let attempted = |attempt: Result<&ServingPair, &CertError>| {
        metrics.certificate_reloaded(attempt.is_ok(), Timestamp::now());
        if let Ok(pair) = attempt {
            metrics.set_certificate_expiry(pair.not_after());
        }
    };
    files.follow(INTERVAL, certificates, attempted).await
}

/// What readiness makes of the certificate: the API server refuses one that
/// is out of its time.
pub(super) fn condition(certificates: &Certificates, now: Timestamp) -> Readiness {
    let pair = certificates.current();
    let (from, until) = (pair.not_before(), pair.not_after());
    match certificates.failure() {
        _ if pair.is_expired(now) => Readiness::not_ready(
            NAME,
            format!("The certificate expired at {until}; renew it."),
        ),
        _ if now < from => Readiness::not_ready(
            NAME,
            format!("The certificate is good from {from} on; check this machine's clock."),
        ),
        Some(failure) => Readiness::degraded(
            NAME,
            format!("{failure} The one in use is good until {until}."),
        ),
        None => Readiness::ready(NAME, format!("The certificate is good until {until}.")),
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;

    use super::*;

    #[test]
    fn readiness_follows_the_certificate() {
        let now = Timestamp::now();
        let cases = [
            ("fresh", now, "ready"),
            ("before its time", now - (24 * 3).hours(), "not-ready"),
            ("after its time", now + (24 * 367).hours(), "not-ready"),
        ];
        let made = SelfSigned::generate(&[], now).unwrap();
        let certificates = Certificates::new(made.pair);
        for (case, at, expected) in cases {
            assert_eq!(
                condition(&certificates, at).state.as_str(),
                expected,
                "{case}"
            );
        }
    }
}
