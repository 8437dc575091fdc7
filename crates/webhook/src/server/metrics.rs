//! Metrics, in the OpenMetrics text format.
//!
//! A counter exists from the start, so that a rate over it is right from the
//! first event on; only findings do not, which would be thousands. A time does
//! not exist before it has come: 0 would be a time in 1970. Labels come from
//! fixed sets. The name of an object is never one, but for nodes from which nothing is
//! heard: they are few, and gone when they are well.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Metric, Registry};

use super::error::RequestError;
use super::health::{HealthState, Readiness};

use crate::admission::{Answer, Decision, Endpoint, Operation};

/// What every name starts with; the registry adds the underscore.
const PREFIX: &str = "multi_attach_guard";

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
    operation: &'static str,
    dry_run: &'static str,
    decision: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FindingLabels {
    endpoint: &'static str,
    kind: &'static str,
    operation: &'static str,
    dry_run: &'static str,
    rule: &'static str,
    action: &'static str,
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
struct NodeLabels {
    node: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ConditionLabels {
    condition: &'static str,
}

/// A time in seconds since 1970, with fractions; absent until it is set.
#[derive(Clone, Debug)]
struct Time(Gauge<f64, AtomicU64>);

impl Default for Time {
    fn default() -> Self {
        let gauge = Gauge::default();
        gauge.set(f64::NAN);
        Self(gauge)
    }
}

impl Time {
    fn set(&self, at: Timestamp) {
        self.0.set(at.as_duration().as_secs_f64());
    }
}

impl EncodeMetric for Time {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        match self.0.get().is_nan() {
            true => Ok(()),
            false => self.0.encode(encoder),
        }
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl TypedMetric for Time {
    const TYPE: MetricType = MetricType::Gauge;
}

/// Makes a metric and registers it.
fn metric<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

#[derive(Clone)]
struct Durations;

impl MetricConstructor<Histogram> for Durations {
    fn new_metric(&self) -> Histogram {
        Histogram::new(DURATION_BUCKETS)
    }
}

/// Successes, failures and the time of the last success of something that is
/// read again while the server runs.
#[derive(Clone, Debug)]
struct Reloads {
    results: Family<ResultLabels, Counter>,
    last_success: Time,
}

impl Reloads {
    fn register(registry: &mut Registry, name: &str, what: &str) -> Self {
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
        for succeeded in [true, false] {
            drop(reloads.results.get_or_create(&result(succeeded)));
        }
        reloads
    }

    fn record(&self, succeeded: bool, now: Timestamp) {
        self.results.get_or_create(&result(succeeded)).inc();
        if succeeded {
            self.last_success.set(now);
        }
    }
}

/// A count as a gauge takes it.
fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

const fn result(succeeded: bool) -> ResultLabels {
    ResultLabels {
        result: if succeeded { "success" } else { "failure" },
    }
}

/// The gauges of one resource that a cluster view follows.
#[derive(Clone, Debug)]
pub struct ViewGauges {
    synced: Gauge,
    objects: Gauge,
    last_event: Time,
}

impl ViewGauges {
    /// Whether the resource was listed in full at least once.
    pub fn set_synced(&self, synced: bool) {
        self.synced.set(i64::from(synced));
    }

    /// How many objects of the resource are held.
    pub fn set_objects(&self, objects: usize) {
        self.objects.set(whole(objects));
    }

    /// When the API server was last heard of about the resource.
    pub fn set_last_event(&self, at: Timestamp) {
        self.last_event.set(at);
    }
}

/// A node from which nothing is heard while volumes are attached to it.
#[derive(Clone, Debug)]
pub struct SilentNode<'a> {
    /// Its name.
    pub name: &'a str,
    /// How many volumes it holds.
    pub volumes: usize,
    /// How many pods wait for them.
    pub waiting: usize,
    /// When its Lease was last renewed; `None` where it has none.
    pub last_renewed: Option<Timestamp>,
}

/// Every metric of the process. Clones share their values.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    durations: Family<EndpointLabels, Histogram, Durations>,
    reviews: Family<ReviewLabels, Counter>,
    findings: Family<FindingLabels, Counter>,
    refusals: Family<ReasonLabels, Counter>,
    in_flight: Gauge,
    too_complex: Counter,
    panics: Counter,
    log_lines_lost: Counter,
    connections: Gauge,
    connections_refused: Counter,
    connections_displaced: Counter,
    handshake_failures: Counter,
    policy: Reloads,
    certificate: Reloads,
    certificate_expiry: Time,
    certificate_authority_expiry: Time,
    events: Family<ResultLabels, Counter>,
    fence_advice: Family<ResultLabels, Counter>,
    silent_nodes: Gauge,
    silent_node_volumes: Family<NodeLabels, Gauge>,
    silent_node_waiting_pods: Family<NodeLabels, Gauge>,
    silent_node_last_renewal: Family<NodeLabels, Time>,
    view_connected: Gauge,
    view_synced: Family<ResourceLabels, Gauge>,
    view_objects: Family<ResourceLabels, Gauge>,
    view_last_event: Family<ResourceLabels, Time>,
    view_late_lookups: Family<ResultLabels, Counter>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Registers every metric. `kinds` are the values that [`Answer::kind`]
    /// may take; their series exist from the start.
    pub fn new(kinds: &[&'static str]) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let all = &mut registry;
        all.register(
            "build",
            "The version that is running",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        let durations = Family::new_with_constructor(Durations);
        all.register(
            "request_duration_seconds",
            "Seconds from the end of a request's headers to its answer",
            durations.clone(),
        );
        let mut metrics = Self {
            durations,
            reviews: metric(
                all,
                "reviews",
                "Reviews answered, by webhook, kind of object, operation, dry run and decision",
            ),
            findings: metric(
                all,
                "findings",
                "Hazards found in reviews, by rule and what was done about them; a review at both \
                 webhooks counts at both",
            ),
            refusals: metric(
                all,
                "requests_refused",
                "Requests that were not answered as a review, by reason; those with the reasons \
                 busy and memory were shed",
            ),
            in_flight: metric(
                all,
                "requests_in_flight",
                "Requests to a webhook that have no answer yet",
            ),
            too_complex: metric(
                all,
                "reviews_given_up",
                "Reviews of objects too complex to judge within the limit, answered as unknown",
            ),
            panics: metric(
                all,
                "review_panics",
                "Reviews that ended in a panic, which is a bug in this program",
            ),
            log_lines_lost: metric(
                all,
                "log_lines_lost",
                "Log lines that could not be written, or that nobody read in time",
            ),
            connections: metric(all, "connections", "Open connections to the webhook port"),
            connections_refused: metric(
                all,
                "connections_refused",
                "Connections closed at once because too many were open",
            ),
            connections_displaced: metric(
                all,
                "connections_displaced",
                "Quiet connections ended to make room for new ones",
            ),
            handshake_failures: metric(
                all,
                "tls_handshake_failures",
                "TLS handshakes that failed; a wrong caBundle shows here",
            ),
            policy: Reloads::register(all, "policy", "the policy file"),
            certificate: Reloads::register(all, "certificate", "the certificate"),
            certificate_expiry: metric(
                all,
                "certificate_expiry_timestamp_seconds",
                "When the certificate now in use expires",
            ),
            certificate_authority_expiry: metric(
                all,
                "certificate_authority_expiry_timestamp_seconds",
                "When the managed authority that issued the certificate now in use expires",
            ),
            events: metric(
                all,
                "events",
                "What was to be told in an Event, by what became of it",
            ),
            fence_advice: metric(
                all,
                "fence_advice_looks",
                "Times --fence-advice looked for silent nodes with volumes, by result",
            ),
            silent_nodes: metric(
                all,
                "silent_nodes",
                "Nodes from which nothing is heard while volumes are attached to them that no \
                 other node can have meanwhile; 0 without --fence-advice",
            ),
            silent_node_volumes: metric(
                all,
                "silent_node_volumes",
                "Volumes attached to a node from which nothing is heard",
            ),
            silent_node_waiting_pods: metric(
                all,
                "silent_node_waiting_pods",
                "Pods that wait for volumes of a node from which nothing is heard",
            ),
            silent_node_last_renewal: metric(
                all,
                "silent_node_last_renewal_timestamp_seconds",
                "When a silent node last renewed its Lease",
            ),
            view_connected: metric(
                all,
                "view_connected",
                "1 while the API server answers, 0 while the cache answers alone",
            ),
            view_synced: metric(
                all,
                "view_synced",
                "1 once every object of the resource was seen",
            ),
            view_objects: metric(
                all,
                "view_objects",
                "Objects of the resource held in memory",
            ),
            view_last_event: metric(
                all,
                "view_last_event_timestamp_seconds",
                "When the API server was last heard of about the resource",
            ),
            view_late_lookups: metric(
                all,
                "view_late_lookups",
                "Objects asked of the API server by name, because the cache lacked them or might \
                 have been behind, by result",
            ),
            registry: Arc::default(),
        };
        metrics.registry = Arc::new(registry);
        metrics.create_series(kinds);
        metrics
    }

    fn create_series(&self, kinds: &[&'static str]) {
        for endpoint in Endpoint::ALL.map(Endpoint::name) {
            drop(self.durations.get_or_create(&EndpointLabels { endpoint }));
            for &kind in kinds {
                for operation in Operation::JUDGED.map(Operation::name) {
                    for decision in Decision::ALL.map(Decision::name) {
                        drop(self.reviews.get_or_create(&ReviewLabels {
                            endpoint,
                            kind,
                            operation,
                            dry_run: yes_or_no(false),
                            decision,
                        }));
                    }
                }
            }
        }
        for succeeded in [true, false] {
            drop(self.fence_advice.get_or_create(&result(succeeded)));
        }
        for reason in RequestError::REASONS {
            drop(self.refusals.get_or_create(&ReasonLabels { reason }));
        }
    }

    /// Counts a line of the log that was lost.
    pub fn log_line_lost(&self) {
        self.log_lines_lost.inc();
    }

    /// Sets when the policy file was read at the start.
    pub fn set_policy_read(&self, at: Timestamp) {
        self.policy.last_success.set(at);
    }

    /// Records that the policy file was read again at `now`, or could not be.
    pub fn policy_reloaded(&self, succeeded: bool, now: Timestamp) {
        self.policy.record(succeeded, now);
    }

    /// Sets when the certificate was read or made at the start.
    pub fn set_certificate_read(&self, at: Timestamp) {
        self.certificate.last_success.set(at);
    }

    /// Records that the certificate was read again at `now`, or could not be.
    pub fn certificate_reloaded(&self, succeeded: bool, now: Timestamp) {
        self.certificate.record(succeeded, now);
    }

    /// Sets when the certificate in use expires.
    pub fn set_certificate_expiry(&self, at: Timestamp) {
        self.certificate_expiry.set(at);
    }

    /// Sets when the authority expires that issued the certificate in use.
    pub fn set_certificate_authority_expiry(&self, at: Timestamp) {
        self.certificate_authority_expiry.set(at);
    }

    /// Makes the series of what may become of an Event, one for each of `results`.
    pub fn expect_events(&self, results: impl IntoIterator<Item = &'static str>) {
        for result in results {
            drop(self.events.get_or_create(&ResultLabels { result }));
        }
    }

    /// Counts what became of something that was to be told in an Event.
    pub fn event(&self, result: &'static str) {
        self.events.get_or_create(&ResultLabels { result }).inc();
    }

    /// Counts a look for silent nodes that could be taken, or not.
    pub fn fence_advice(&self, succeeded: bool) {
        self.fence_advice.get_or_create(&result(succeeded)).inc();
    }

    /// Sets how many nodes hold volumes while nothing is heard of them.
    pub fn set_silent_nodes(&self, count: usize) {
        self.silent_nodes.set(whole(count));
    }

    /// Makes the series of such a node, or brings them up to date.
    pub fn set_silent_node(&self, node: &SilentNode<'_>) {
        let labels = NodeLabels {
            node: node.name.to_owned(),
        };
        self.silent_node_volumes
            .get_or_create(&labels)
            .set(whole(node.volumes));
        self.silent_node_waiting_pods
            .get_or_create(&labels)
            .set(whole(node.waiting));
        if let Some(at) = node.last_renewed {
            self.silent_node_last_renewal.get_or_create(&labels).set(at);
        }
    }

    /// Ends the series of a node that is heard of again, or holds nothing any more.
    pub fn forget_silent_node(&self, name: &str) {
        let labels = NodeLabels {
            node: name.to_owned(),
        };
        self.silent_node_volumes.remove(&labels);
        self.silent_node_waiting_pods.remove(&labels);
        self.silent_node_last_renewal.remove(&labels);
    }

    /// Sets whether the API server answers the cluster view.
    pub fn set_view_connected(&self, connected: bool) {
        self.view_connected.set(i64::from(connected));
    }

    /// Sets how many objects were asked of the API server so far with that result.
    pub fn set_view_late_lookups(&self, result: &'static str, count: u64) {
        let counter = self
            .view_late_lookups
            .get_or_create_owned(&ResultLabels { result });
        counter.inner().store(count, Ordering::Relaxed);
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

    pub(super) fn request_ended(&self, endpoint: Endpoint, after: Duration) {
        let endpoint = endpoint.name();
        self.durations
            .get_or_create(&EndpointLabels { endpoint })
            .observe(after.as_secs_f64());
    }

    pub(super) fn answered(&self, endpoint: Endpoint, answer: &Answer) {
        let endpoint = endpoint.name();
        let (kind, operation) = (answer.kind, answer.operation.name());
        let dry_run = yes_or_no(answer.dry_run);
        self.reviews
            .get_or_create(&ReviewLabels {
                endpoint,
                kind,
                operation,
                dry_run,
                decision: answer.decision.name(),
            })
            .inc();
        for (rule, action) in &answer.findings {
            self.findings
                .get_or_create(&FindingLabels {
                    endpoint,
                    kind,
                    operation,
                    dry_run,
                    rule,
                    action: action.name(),
                })
                .inc();
        }
        if answer.too_complex {
            self.too_complex.inc();
        }
    }

    pub(super) fn refused(&self, reason: &'static str) {
        self.refusals.get_or_create(&ReasonLabels { reason }).inc();
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

    pub(super) fn connection_displaced(&self) {
        self.connections_displaced.inc();
    }

    pub(super) fn handshake_failed(&self) {
        self.handshake_failures.inc();
    }

    /// The text exposition, with the conditions as they are now.
    pub(super) fn encode(&self, conditions: &[Readiness]) -> Result<String, fmt::Error> {
        let mut now = Registry::with_prefix(PREFIX);
        let ready: Family<ConditionLabels, Gauge> = metric(
            &mut now,
            "condition_ready",
            "1 while the condition lets the server be ready",
        );
        let degraded: Family<ConditionLabels, Gauge> = metric(
            &mut now,
            "condition_degraded",
            "1 while the condition is met but something is wrong with it",
        );
        for condition in conditions {
            let labels = ConditionLabels {
                condition: condition.name,
            };
            ready
                .get_or_create(&labels)
                .set(i64::from(condition.state != HealthState::NotReady));
            degraded
                .get_or_create(&labels)
                .set(i64::from(condition.state == HealthState::Degraded));
        }
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        encode_registry(&mut text, &now)?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

const fn yes_or_no(yes: bool) -> &'static str {
    if yes { "true" } else { "false" }
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
