//! Metrics, in the OpenMetrics text format.
//!
//! Every series exists from the start, so that a rate over it is right from
//! the first event on. Labels come from fixed sets; the name of an object is
//! never one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::health::{Condition, State};
use super::refusal::Refusal;
use super::review::{Decision, Endpoint};

/// What every name starts with; the registry adds the underscore.
const PREFIX: &str = "multi_attach_guard";

/// The kind of a review that could not be read.
pub(super) const UNKNOWN_KIND: &str = "unknown";

/// Seconds. A decision takes microseconds, a live look-up milliseconds, and
/// the API server gives up after at most 30 s.
const DURATION_BUCKETS: [f64; 14] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0,
    10.0,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct EndpointLabels {
    endpoint: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReviewLabels {
    endpoint: &'static str,
    kind: &'static str,
    decision: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResourceLabels {
    resource: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ConditionLabels {
    condition: &'static str,
}

/// Seconds since 1970, with fractions.
type TimeGauge = Gauge<f64, AtomicU64>;

/// Successes, failures and the time of the last success of something that is
/// read again while the server runs.
#[derive(Clone, Debug)]
struct Reloads {
    success: Counter,
    failure: Counter,
    last_success: TimeGauge,
}

impl Reloads {
    fn register(registry: &mut Registry, name: &str, what: &str) -> Self {
        let results = Family::<ResultLabels, Counter>::default();
        let last_success = TimeGauge::default();
        registry.register(
            format!("{name}_reloads"),
            format!("Times {what} was read again after a change, by result"),
            results.clone(),
        );
        registry.register(
            format!("{name}_last_success_timestamp_seconds"),
            format!("When the {name} now in use was read"),
            last_success.clone(),
        );
        Self {
            success: results.get_or_create_owned(&ResultLabels { result: "success" }),
            failure: results.get_or_create_owned(&ResultLabels { result: "failure" }),
            last_success,
        }
    }

    fn record(&self, succeeded: bool, now: Timestamp) {
        if succeeded {
            self.success.inc();
            self.last_success.set(now.as_duration().as_secs_f64());
        } else {
            self.failure.inc();
        }
    }
}

/// The gauges of one resource that a cluster view follows.
#[derive(Clone, Debug)]
pub struct ViewGauges {
    synced: Gauge,
    objects: Gauge,
    last_event: TimeGauge,
}

impl ViewGauges {
    /// Whether the resource was listed in full at least once.
    pub fn set_synced(&self, synced: bool) {
        self.synced.set(i64::from(synced));
    }

    /// How many objects of the resource are held.
    pub fn set_objects(&self, objects: usize) {
        self.objects.set(i64::try_from(objects).unwrap_or(i64::MAX));
    }

    /// When the API server was last heard of about the resource.
    pub fn set_last_event(&self, at: Timestamp) {
        self.last_event.set(at.as_duration().as_secs_f64());
    }
}

/// Every metric of the process. Clones share their values.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    durations: [Histogram; 2],
    reviews: Family<ReviewLabels, Counter>,
    refusals: Family<ReasonLabels, Counter>,
    in_flight: Gauge,
    panics: Counter,
    connections: Gauge,
    connections_refused: Counter,
    handshake_failures: Counter,
    policy: Reloads,
    certificate: Reloads,
    certificate_expiry: TimeGauge,
    view_connected: Gauge,
    view_synced: Family<ResourceLabels, Gauge>,
    view_objects: Family<ResourceLabels, Gauge>,
    view_last_event: Family<ResourceLabels, TimeGauge>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Registers every metric. `kinds` are the values that
    /// [`Reviewed::kind`](super::Reviewed::kind) may take beside `unknown`;
    /// their series exist from the start.
    pub fn new(kinds: &[&'static str]) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register(
            "build",
            "The version that is running",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );

        let durations = Family::<EndpointLabels, Histogram>::new_with_constructor(|| {
            Histogram::new(DURATION_BUCKETS)
        });
        registry.register(
            "request_duration_seconds",
            "Seconds from the end of a request's headers to its answer",
            durations.clone(),
        );
        let reviews = Family::<ReviewLabels, Counter>::default();
        registry.register(
            "reviews",
            "Reviews answered, by webhook, kind of object and decision",
            reviews.clone(),
        );
        let refusals = Family::<ReasonLabels, Counter>::default();
        registry.register(
            "requests_refused",
            "Requests refused before they were read as a review, by reason",
            refusals.clone(),
        );
        let in_flight = Gauge::default();
        registry.register(
            "requests_in_flight",
            "Requests to a webhook that have no answer yet",
            in_flight.clone(),
        );
        let panics = Counter::default();
        registry.register(
            "review_panics",
            "Reviews that ended in a panic, which is a bug in this program",
            panics.clone(),
        );
        let connections = Gauge::default();
        registry.register(
            "connections",
            "Open connections to the webhook port",
            connections.clone(),
        );
        let connections_refused = Counter::default();
        registry.register(
            "connections_refused",
            "Connections closed at once because too many were open",
            connections_refused.clone(),
        );
        let handshake_failures = Counter::default();
        registry.register(
            "tls_handshake_failures",
            "TLS handshakes that failed; a wrong caBundle shows here",
            handshake_failures.clone(),
        );
        let policy = Reloads::register(&mut registry, "policy", "the policy file");
        let certificate = Reloads::register(&mut registry, "certificate", "the certificate");
        let certificate_expiry = TimeGauge::default();
        registry.register(
            "certificate_expiry_timestamp_seconds",
            "When the certificate now in use expires",
            certificate_expiry.clone(),
        );
        let view_connected = Gauge::default();
        registry.register(
            "view_connected",
            "1 while the API server answers, 0 while the cache answers alone",
            view_connected.clone(),
        );
        let view_synced = Family::<ResourceLabels, Gauge>::default();
        registry.register(
            "view_synced",
            "1 once every object of the resource was seen",
            view_synced.clone(),
        );
        let view_objects = Family::<ResourceLabels, Gauge>::default();
        registry.register(
            "view_objects",
            "Objects of the resource held in memory",
            view_objects.clone(),
        );
        let view_last_event = Family::<ResourceLabels, TimeGauge>::default();
        registry.register(
            "view_last_event_timestamp_seconds",
            "When the API server was last heard of about the resource",
            view_last_event.clone(),
        );

        for endpoint in Endpoint::ALL {
            for &kind in kinds.iter().chain(&[UNKNOWN_KIND]) {
                for decision in Decision::ALL {
                    let _ = reviews.get_or_create(&ReviewLabels {
                        endpoint: endpoint.as_str(),
                        kind,
                        decision: decision.as_str(),
                    });
                }
            }
        }
        for refusal in Refusal::ALL {
            let _ = refusals.get_or_create(&ReasonLabels {
                reason: refusal.reason(),
            });
        }

        Self {
            registry: Arc::new(registry),
            durations: Endpoint::ALL.map(|endpoint| {
                durations.get_or_create_owned(&EndpointLabels {
                    endpoint: endpoint.as_str(),
                })
            }),
            reviews,
            refusals,
            in_flight,
            panics,
            connections,
            connections_refused,
            handshake_failures,
            policy,
            certificate,
            certificate_expiry,
            view_connected,
            view_synced,
            view_objects,
            view_last_event,
        }
    }

    /// Records that the policy file was read again at `now`, or could not be.
    pub fn policy_reloaded(&self, succeeded: bool, now: Timestamp) {
        self.policy.record(succeeded, now);
    }

    /// Records that the certificate was read again at `now`, or could not be.
    pub fn certificate_reloaded(&self, succeeded: bool, now: Timestamp) {
        self.certificate.record(succeeded, now);
    }

    /// Sets when the certificate in use expires.
    pub fn set_certificate_expiry(&self, at: Timestamp) {
        self.certificate_expiry.set(at.as_duration().as_secs_f64());
    }

    /// Sets whether the API server answers the cluster view.
    pub fn set_view_connected(&self, connected: bool) {
        self.view_connected.set(i64::from(connected));
    }

    /// The gauges of one resource, such as `persistentvolumeclaims`.
    pub fn view(&self, resource: &'static str) -> ViewGauges {
        let labels = ResourceLabels { resource };
        ViewGauges {
            synced: self.view_synced.get_or_create_owned(&labels),
            objects: self.view_objects.get_or_create_owned(&labels),
            last_event: self.view_last_event.get_or_create_owned(&labels),
        }
    }

    pub(super) fn answered(&self, endpoint: Endpoint, after: Duration) {
        let [mutate, validate] = &self.durations;
        match endpoint {
            Endpoint::Mutate => mutate,
            Endpoint::Validate => validate,
        }
        .observe(after.as_secs_f64());
    }

    pub(super) fn reviewed(&self, endpoint: Endpoint, kind: &'static str, decision: Decision) {
        self.reviews
            .get_or_create(&ReviewLabels {
                endpoint: endpoint.as_str(),
                kind,
                decision: decision.as_str(),
            })
            .inc();
    }

    pub(super) fn refused(&self, refusal: Refusal) {
        self.refusals
            .get_or_create(&ReasonLabels {
                reason: refusal.reason(),
            })
            .inc();
    }

    pub(super) fn panicked(&self) {
        self.panics.inc();
    }

    /// Counts a request as in flight until the guard is dropped.
    pub(super) fn request_started(&self) -> Held {
        Held::new(&self.in_flight)
    }

    /// Counts a connection as open until the guard is dropped.
    pub(super) fn connection_opened(&self) -> Held {
        Held::new(&self.connections)
    }

    pub(super) fn connection_refused(&self) {
        self.connections_refused.inc();
    }

    pub(super) fn handshake_failed(&self) {
        self.handshake_failures.inc();
    }

    /// The text exposition, with the conditions as they are now.
    pub(super) fn encode(&self, conditions: &[Condition]) -> Result<String, fmt::Error> {
        let ready = Family::<ConditionLabels, Gauge>::default();
        let degraded = Family::<ConditionLabels, Gauge>::default();
        let mut now = Registry::with_prefix(PREFIX);
        now.register(
            "condition_ready",
            "1 while the condition lets the server be ready",
            ready.clone(),
        );
        now.register(
            "condition_degraded",
            "1 while the condition is met but something is wrong with it",
            degraded.clone(),
        );
        for condition in conditions {
            let labels = ConditionLabels {
                condition: condition.name,
            };
            ready
                .get_or_create(&labels)
                .set(i64::from(condition.state != State::NotReady));
            degraded
                .get_or_create(&labels)
                .set(i64::from(condition.state == State::Degraded));
        }
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        encode_registry(&mut text, &now)?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

/// One counted thing that is still there.
#[derive(Debug)]
pub(super) struct Held(Gauge);

impl Held {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}
