//! What is read again while the server runs: the policy and the certificate.

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::{ResultLabels, Time, create_results, metric, result};

/// Successes, failures and the time of the last success of reading something again.
#[derive(Clone, Debug)]
pub struct ReloadMetrics {
    results: Family<ResultLabels, Counter>,
    last_success: Time,
}

impl ReloadMetrics {
    pub(super) fn register(registry: &mut Registry, name: &str, what: &str) -> Self {
        let reloads = Self {
            results: metric(
                registry,
                &format!("{name}_reloads"),
                &format!("Times {what} was read again after a change, by result"),
            ),
            last_success: metric(
                registry,
                &format!("{name}_last_success_timestamp_seconds"),
                &format!("When the {name} now in use was read"),
            ),
        };
        create_results(&reloads.results);
        reloads
    }

    /// Sets when it was read or made at the start.
    pub fn set_read(&self, at: Timestamp) {
        self.last_success.set(at);
    }

    /// Records that it was read again at `now`, or could not be.
    pub fn reloaded(&self, succeeded: bool, now: Timestamp) {
        self.results.get_or_create(&result(succeeded)).inc();
        if succeeded {
            self.last_success.set(now);
        }
    }
}

/// When the certificate in use expires, and the CA that issued it.
#[derive(Clone, Debug)]
pub struct ExpiryMetrics {
    certificate: Time,
    authority: Time,
}

impl ExpiryMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            certificate: metric(
                registry,
                "certificate_expiry_timestamp_seconds",
                "When the certificate now in use expires",
            ),
            authority: metric(
                registry,
                "certificate_authority_expiry_timestamp_seconds",
                "When the managed CA that issued the certificate now in use expires",
            ),
        }
    }

    /// Sets when the certificate in use expires.
    pub fn set_certificate(&self, at: Timestamp) {
        self.certificate.set(at);
    }

    /// Sets when the managed CA expires that issued the certificate in use.
    pub fn set_authority(&self, at: Timestamp) {
        self.authority.set(at);
    }
}
