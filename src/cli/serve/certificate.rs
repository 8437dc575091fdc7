//! The certificate of the webhook port: managed, read from files and followed, or self-signed.

use std::convert::Infallible;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::options::CertificateOptions;
use super::{ServeError, cluster};
use webhook::server::{HealthSource, Metrics, Readiness};
use webhook_certs::{
    Certificates, Lifetimes, ManagedCertificate, Pace, PemFiles, SelfSigned, ServingPair,
};

/// The time between two comparisons of the certificate files with the certificate in use. A kubelet
/// needs up to a minute to change a mounted Secret, so this adds little.
const INTERVAL: Duration = Duration::from_secs(2);

/// The name of the condition on the certificate.
const NAME: &str = "certificate";

/// The first certificate and, if its source may change, a future that follows the source forever.
/// A managed certificate comes later.
pub(super) async fn open(
    options: &CertificateOptions,
    metrics: &Metrics,
) -> Result<(Arc<Certificates>, Option<BoxFuture<'static, Infallible>>), ServeError> {
    let counted = metrics.clone();
    let attempted = move |succeeded| counted.certificate_reloaded(succeeded);
    if options.manage_certs {
        let (client, namespace) = cluster("--manage-certs").await?;
        let certificate = ManagedCertificate {
            namespace,
            further_names: options.dns_name.clone(),
            lifetimes: Lifetimes::default(),
            pace: Pace::default(),
        };
        let certificates = Arc::<Certificates>::default();
        let managed = Arc::clone(&certificates);
        let follow = certificate.follow(client, managed, Timestamp::now, attempted);
        return Ok((certificates, Some(follow.boxed())));
    }
    let (files, pair) = match (&options.tls_cert, &options.tls_key) {
        (Some(certificate), Some(key)) => {
            let (files, pair) = PemFiles::open(certificate.clone(), key.clone())?;
            (Some(files), pair)
        }
        _ => (None, self_signed(options)?),
    };
    metrics.certificate_read.set(Timestamp::now());
    let certificates = Arc::new(Certificates::new(pair));
    let follow = files.map(|files| {
        let followed = Arc::clone(&certificates);
        files.follow(INTERVAL, followed, attempted).boxed()
    });
    Ok((certificates, follow))
}

fn self_signed(options: &CertificateOptions) -> Result<ServingPair, ServeError> {
    let made = SelfSigned::generate(&options.dns_name, Timestamp::now())?;
    if let Some(path) = &options.write_ca {
        fs::write(path, &made.ca_pem)
            .map_err(|source| ServeError::WriteCa { path: path.clone(), source })?;
        tracing::info!(file = %path.display(), "The CA to trust was written.");
    }
    Ok(made.pair)
}

/// Reports the readiness condition on the certificate. Each report also updates the gauges of its
/// expiry.
pub(super) fn health(certificates: &Arc<Certificates>, metrics: &Metrics) -> Arc<HealthSource> {
    let certificates = Arc::clone(certificates);
    let metrics = metrics.clone();
    Arc::new(move || {
        if let Some(pair) = certificates.current() {
            metrics.certificate_expiry.set(pair.not_after());
            if let Some(at) = pair.authority_not_after() {
                metrics.authority_expiry.set(at);
            }
        }
        condition(&certificates, Timestamp::now())
    })
}

/// The readiness condition on the certificate: the API server refuses a certificate before and
/// after its validity. `now` is the time of this machine.
fn condition(certificates: &Certificates, now: Timestamp) -> Readiness {
    if let Some(sentence) = certificates.wrong_clock() {
        return Readiness::not_ready(NAME, sentence);
    }
    let now = certificates.time(now);
    let failure = certificates.failure();
    let Some(pair) = certificates.current() else {
        let why = failure.map_or_else(|| "It is being made.".to_owned(), |error| error.to_string());
        return Readiness::not_ready(NAME, format!("There is no certificate yet. {why}"));
    };
    let (from, until) = (pair.not_before(), pair.not_after());
    match failure {
        _ if pair.is_expired(now) => {
            Readiness::not_ready(NAME, format!("The certificate expired at {until}; renew it."))
        }
        _ if now < from => Readiness::not_ready(
            NAME,
            format!(
                "The certificate is not valid before {from}, and it is {now:.0}. Check the clock \
                 of whoever issued it, and this machine's."
            ),
        ),
        Some(failure) => {
            Readiness::degraded(NAME, format!("{failure} The one in use is good until {until}."))
        }
        None => Readiness::ready(NAME, format!("The certificate is good until {until}.")),
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;

    use super::*;
    use webhook::server::HealthState;

    #[test]
    fn readiness_follows_the_certificate() {
        let now = Timestamp::now();
        let cases = [
            ("fresh", now, HealthState::Ready),
            ("before its time", now - (24 * 3).hours(), HealthState::NotReady),
            ("after its time", now + (24 * 367).hours(), HealthState::NotReady),
        ];
        let made = SelfSigned::generate(&[], now).unwrap();
        let certificates = Certificates::new(made.pair);
        for (case, at, expected) in cases {
            assert_eq!(condition(&certificates, at).state, expected, "{case}");
        }
        let none = condition(&Certificates::default(), now);
        assert_eq!(none.state, HealthState::NotReady);
    }
}
