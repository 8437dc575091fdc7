//! Metrics, in the OpenMetrics text format.
//!
//! A counter exists from the start, so that a rate over it is right from the first event on.
//! Findings are the exception, because they would be thousands. A time does not exist before it is
//! set: 0 would be a time in 1970. Labels come from fixed sets. The name of an object is never one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;

use super::error::RequestError;
use super::health::{HealthState, Readiness};
use crate::admission::{Answer, Decision, Endpoint, Operation};

/// The beginning of every name; the registry adds the underscore.
const PREFIX: &str = "multi_attach_guard";

/// The buckets in seconds. A decision takes microseconds, a live look-up milliseconds, and the API
/// server gives up after at most 30 s.
const DURATION_BUCKETS: [f64; 14] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0,
    10.0,
];

/// A metric with `N` labels, each a name and a value.
type Labelled<M, const N: usize = 1> = Family<[(&'static str, &'static str); N], M>;

/// Declares the metrics, each with the text that explains it in scrapes.
macro_rules! metrics {
    ($($vis:vis $field:ident: $type:ty = $name:literal, $help:literal;)*) => {
        /// Every metric of the process. Clones share their values.
        #[derive(Clone, Debug)]
        pub struct Metrics {
            registry: Arc<Registry>,
            pub(super) durations: Labelled<Histogram>,
            $(#[doc = $help] $vis $field: $type,)*
        }

        impl Metrics {
            fn register(mut registry: Registry, durations: Labelled<Histogram>) -> Self {
                $(let $field = <$type>::default();
                registry.register($name, $help, $field.clone());)*
                Self { registry: Arc::new(registry), durations, $($field,)* }
            }
        }
    };
}

metrics! {
    reviews: Labelled<Counter, 5> = "reviews",
        "Reviews answered, by webhook, kind of object, operation, dry run and decision";
    findings: Labelled<Counter, 6> = "findings",
        "Hazards found in reviews, by rule and action; a review at both webhooks counts at both";
    pub(super) refusals: Labelled<Counter> = "requests_refused",
        "Requests that were not answered as a review, by reason; those with the reasons busy and memory were shed";
    pub(super) in_flight: Gauge = "requests_in_flight",
        "Requests to a webhook that have no answer yet";
    too_complex: Counter = "reviews_given_up",
        "Reviews of objects too complex to judge within the limit, answered as unknown";
    pub(super) panics: Counter = "review_panics",
        "Reviews that ended in a panic, which is a bug in this program";
    pub(super) connections: Gauge = "connections", "Open connections to the webhook port";
    pub(super) connections_refused: Counter = "connections_refused",
        "Connections closed at once because too many were open";
    pub(super) connections_displaced: Counter = "connections_displaced",
        "Quiet connections ended to make room for new ones";
    pub(super) handshake_failures: Counter = "tls_handshake_failures",
        "TLS handshakes that failed; a wrong caBundle shows here";
    condition_ready: Labelled<Gauge> = "condition_ready",
        "1 while the condition lets the server be ready";
    condition_degraded: Labelled<Gauge> = "condition_degraded",
        "1 while the condition is met but something is wrong with it";
    pub log_lines_lost: Counter = "log_lines_lost",
        "Log lines that could not be written, or that nobody read in time";
    policy_reloads: Labelled<Counter> = "policy_reloads",
        "Times the policy file was read again after a change, by result";
    pub policy_read: Time = "policy_last_success_timestamp_seconds",
        "When the policy now in use was read";
    certificate_reloads: Labelled<Counter> = "certificate_reloads",
        "Times the certificate was read again after a change, by result";
    pub certificate_read: Time = "certificate_last_success_timestamp_seconds",
        "When the certificate now in use was read";
    pub certificate_expiry: Time = "certificate_expiry_timestamp_seconds",
        "When the certificate now in use expires";
    pub authority_expiry: Time = "certificate_authority_expiry_timestamp_seconds",
        "When the managed CA that issued the certificate now in use expires";
    pub events: Labelled<Counter> = "events", "Kubernetes Events, by result";
    pub volume_facts_writes: Labelled<Counter> = "volume_facts_writes",
        "Writes of VolumeFacts objects, by result";
    pub volume_facts_restored: Counter = "volume_facts_restored",
        "VolumeFacts objects that somebody else had changed or deleted and that were written again";
    pub volume_facts_too_large: Gauge = "volume_facts_too_large",
        "Namespaces with more than fits into one of the VolumeFacts objects";
    pub view_connected: Gauge = "view_connected",
        "1 while the API server answers, 0 while the cache answers alone";
    pub view_synced: Labelled<Gauge> = "view_synced", "1 once every object of the resource was seen";
    pub view_objects: Labelled<Gauge> = "view_objects", "Objects of the resource held in memory";
    pub view_bytes: Gauge = "view_bytes", "About the bytes of the objects in namespaces that are held in memory";
    pub view_left_out: Gauge = "view_objects_left_out",
        "Objects not held in memory, because they or their namespace take too much of it";
    pub view_last_event: Labelled<Time> = "view_last_event_timestamp_seconds",
        "Time of the API server's last event about the resource";
    pub late_lookups: Labelled<Counter> = "view_late_lookups",
        "Objects looked up at the API server by name, because the cache lacked them or might have been behind, by result";
    pub unconfirmed_denials: Labelled<Counter> = "view_unconfirmed_denials",
        "Denials that the API server did not confirm in time, by result of --stale";
}

impl Metrics {
    /// Registers every metric. `kinds` are the values that
    /// [`Answer::kind`](crate::admission::Answer::kind) may take; their series exist from the
    /// start.
    pub fn new(kinds: &[&'static str]) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register(
            "build",
            "The version that is running",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        let histogram: fn() -> Histogram = || Histogram::new(DURATION_BUCKETS);
        let durations = Family::new_with_constructor(histogram);
        registry.register(
            "request_duration_seconds",
            "Seconds from the end of a request's headers to its answer",
            durations.clone(),
        );
        let metrics = Self::register(registry, durations);
        let results = ["success", "failure"];
        for (counter, values) in [
            (&metrics.policy_reloads, &results[..]),
            (&metrics.certificate_reloads, &results),
            (&metrics.volume_facts_writes, &results),
            (&metrics.unconfirmed_denials, &["warned", "denied"]),
        ] {
            for value in values {
                drop(counter.get_or_create(&[("result", value)]));
            }
        }
        for reason in RequestError::REASONS {
            drop(metrics.refusals.get_or_create(&[("reason", reason)]));
        }
        metrics.create_reviews(kinds);
        metrics
    }

    fn create_reviews(&self, kinds: &[&'static str]) {
        for endpoint in Endpoint::ALL {
            drop(self.durations.get_or_create(&[("endpoint", endpoint.name())]));
            for &kind in kinds {
                for operation in Operation::JUDGED {
                    for decision in Decision::ALL {
                        let labels = review_labels(endpoint, kind, operation, false, decision);
                        drop(self.reviews.get_or_create(&labels));
                    }
                }
            }
        }
    }

    /// Counts an attempt to read the policy file again.
    pub fn policy_reloaded(&self, succeeded: bool) {
        reloaded(&self.policy_reloads, &self.policy_read, succeeded);
    }

    /// Counts an attempt to read the certificate again or to make a new one.
    pub fn certificate_reloaded(&self, succeeded: bool) {
        reloaded(&self.certificate_reloads, &self.certificate_read, succeeded);
    }

    pub(super) fn answered(&self, endpoint: Endpoint, answer: &Answer) {
        let labels =
            review_labels(endpoint, answer.kind, answer.operation, answer.dry_run, answer.decision);
        self.reviews.get_or_create(&labels).inc();
        let [webhook, kind, operation, dry_run, _] = labels;
        for (rule, action) in &answer.findings {
            let finding =
                [webhook, kind, operation, dry_run, ("rule", *rule), ("action", action.name())];
            self.findings.get_or_create(&finding).inc();
        }
        if answer.too_complex {
            self.too_complex.inc();
        }
    }

    /// The text exposition, with the current conditions.
    pub(super) fn encode(&self, conditions: &[Readiness]) -> Result<String, fmt::Error> {
        for Readiness { name, state, .. } in conditions {
            let labels = [("condition", *name)];
            self.condition_ready
                .get_or_create(&labels)
                .set((*state != HealthState::NotReady).into());
            self.condition_degraded
                .get_or_create(&labels)
                .set((*state == HealthState::Degraded).into());
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

fn reloaded(reloads: &Labelled<Counter>, last_success: &Time, succeeded: bool) {
    let result = if succeeded { "success" } else { "failure" };
    reloads.get_or_create(&[("result", result)]).inc();
    if succeeded {
        last_success.set(Timestamp::now());
    }
}

fn review_labels(
    endpoint: Endpoint,
    kind: &'static str,
    operation: Operation,
    dry_run: bool,
    decision: Decision,
) -> [(&'static str, &'static str); 5] {
    [
        ("endpoint", endpoint.name()),
        ("kind", kind),
        ("operation", operation.name()),
        ("dry_run", if dry_run { "true" } else { "false" }),
        ("decision", decision.name()),
    ]
}

/// A time in seconds since 1970, with fractions; absent until it is set.
#[derive(Clone, Debug)]
pub struct Time(Gauge<f64, AtomicU64>);

impl Default for Time {
    fn default() -> Self {
        let gauge = Gauge::default();
        gauge.set(f64::NAN);
        Self(gauge)
    }
}

impl Time {
    /// Sets the time.
    pub fn set(&self, at: Timestamp) {
        self.0.set(at.as_duration().as_secs_f64());
    }
}

impl EncodeMetric for Time {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        if self.0.get().is_nan() { Ok(()) } else { self.0.encode(encoder) }
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl TypedMetric for Time {
    const TYPE: MetricType = MetricType::Gauge;
}

/// One counted item, until this is dropped.
pub(super) struct Held(Gauge);

impl Held {
    pub(super) fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}
