//! Metrics, in the OpenMetrics text format. Each part of the program has its own.
//!
//! A counter exists from the start, so that a rate over it is right from the
//! first event on; only findings do not, which would be thousands. A time does
//! not exist before it has come: 0 would be a time in 1970. Labels come from
//! fixed sets. The name of an object is never one.

mod cluster;
mod connections;
mod reloads;
mod requests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Metric, Registry};

pub use cluster::{EventMetrics, KeptObjectMetrics, ViewGauges, ViewMetrics};
pub(super) use connections::ConnectionMetrics;
pub use reloads::{ExpiryMetrics, ReloadMetrics};
pub(super) use requests::RequestMetrics;

use super::health::{HealthState, Readiness};

/// What every name starts with; the registry adds the underscore.
const PREFIX: &str = "multi_attach_guard";

/// Every metric of the process. Clones share their values.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    log_lines_lost: Counter,
    pub(super) requests: RequestMetrics,
    pub(super) connections: ConnectionMetrics,
    /// The policy file.
    pub policy: ReloadMetrics,
    /// The certificate.
    pub certificate: ReloadMetrics,
    /// When the certificate expires.
    pub expiry: ExpiryMetrics,
    /// Events.
    pub events: EventMetrics,
    /// What `--admission-policies` writes.
    pub volume_facts: KeptObjectMetrics,
    /// The cache of the cluster.
    pub view: ViewMetrics,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Registers every metric. `kinds` are the values that
    /// [`Answer::kind`](crate::admission::Answer::kind) may take; their series exist from the
    /// start.
    pub fn new(kinds: &[&'static str]) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let all = &mut registry;
        all.register(
            "build",
            "The version that is running",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        Self {
            requests: RequestMetrics::register(all, kinds),
            connections: ConnectionMetrics::register(all),
            log_lines_lost: metric(
                all,
                "log_lines_lost",
                "Log lines that could not be written, or that nobody read in time",
            ),
            policy: ReloadMetrics::register(all, "policy", "the policy file"),
            certificate: ReloadMetrics::register(all, "certificate", "the certificate"),
            expiry: ExpiryMetrics::register(all),
            events: EventMetrics::register(all),
            volume_facts: KeptObjectMetrics::register(all, "volume_facts", "VolumeFacts objects"),
            view: ViewMetrics::register(all),
            registry: Arc::new(registry),
        }
    }

    /// Counts a line of the log that was lost.
    pub fn log_line_lost(&self) {
        self.log_lines_lost.inc();
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

/// Makes a metric and registers it.
fn metric<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

const fn result(succeeded: bool) -> ResultLabels {
    ResultLabels {
        result: if succeeded { "success" } else { "failure" },
    }
}

/// Makes the series of both results.
fn create_results(results: &Family<ResultLabels, Counter>) {
    for succeeded in [true, false] {
        drop(results.get_or_create(&result(succeeded)));
    }
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
        if self.0.get().is_nan() {
            Ok(())
        } else {
            self.0.encode(encoder)
        }
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl TypedMetric for Time {
    const TYPE: MetricType = MetricType::Gauge;
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
