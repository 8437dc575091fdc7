//! What the server follows in the cluster, and what it reports there.

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{ResultLabels, Time, create_results, metric, result};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResourceLabels {
    resource: &'static str,
}

/// A count as a gauge takes it.
fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Events, by result.
#[derive(Clone, Debug)]
pub struct EventMetrics(Family<ResultLabels, Counter>);

impl EventMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self(metric(registry, "events", "Kubernetes Events, by result"))
    }

    /// Makes the series of what may become of an Event, one for each of `results`.
    pub fn expect(&self, results: impl IntoIterator<Item = &'static str>) {
        for result in results {
            drop(self.0.get_or_create(&ResultLabels { result }));
        }
    }

    /// Counts an Event by its result.
    pub fn count(&self, result: &'static str) {
        self.0.get_or_create(&ResultLabels { result }).inc();
    }
}

/// Objects that the guard keeps in the cluster, one a namespace.
#[derive(Clone, Debug)]
pub struct KeptObjectMetrics {
    writes: Family<ResultLabels, Counter>,
    restored: Counter,
    too_large: Gauge,
}

impl KeptObjectMetrics {
    /// `plural` is what the objects are called.
    pub(super) fn register(registry: &mut Registry, name: &str, plural: &str) -> Self {
        let writes = metric(
            registry,
            &format!("{name}_writes"),
            &format!("Writes of {plural}, by result"),
        );
        create_results(&writes);
        Self {
            writes,
            restored: metric(
                registry,
                &format!("{name}_restored"),
                &format!(
                    "{plural} that somebody else had changed or deleted and that were written again"
                ),
            ),
            too_large: metric(
                registry,
                &format!("{name}_too_large"),
                &format!("Namespaces with more than fits into one of the {plural}"),
            ),
        }
    }

    /// Counts a write.
    pub fn written(&self, succeeded: bool) {
        self.writes.get_or_create(&result(succeeded)).inc();
    }

    /// Counts one that somebody else had changed or deleted.
    pub fn restored(&self) {
        self.restored.inc();
    }

    /// Sets how many namespaces have more than one object holds.
    pub fn set_too_large(&self, count: usize) {
        self.too_large.set(whole(count));
    }
}

/// The cache of the cluster.
#[derive(Clone, Debug)]
pub struct ViewMetrics {
    connected: Gauge,
    synced: Family<ResourceLabels, Gauge>,
    objects: Family<ResourceLabels, Gauge>,
    last_event: Family<ResourceLabels, Time>,
    late_lookups: Family<ResultLabels, Counter>,
    unconfirmed_denials: Family<ResultLabels, Counter>,
}

/// The gauges of one resource in the cache.
#[derive(Clone, Debug)]
pub struct ViewGauges {
    synced: Gauge,
    objects: Gauge,
    last_event: Time,
}

/// What becomes of a denial that the API server does not confirm, by `--stale`.
const UNCONFIRMED: [&str; 2] = ["warned", "denied"];

impl ViewMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            connected: metric(
                registry,
                "view_connected",
                "1 while the API server answers, 0 while the cache answers alone",
            ),
            synced: metric(
                registry,
                "view_synced",
                "1 once every object of the resource was seen",
            ),
            objects: metric(
                registry,
                "view_objects",
                "Objects of the resource held in memory",
            ),
            last_event: metric(
                registry,
                "view_last_event_timestamp_seconds",
                "When the API server was last heard of about the resource",
            ),
            late_lookups: metric(
                registry,
                "view_late_lookups",
                "Objects looked up at the API server by name, because the cache lacked them or might \
                 have been behind, by result",
            ),
            unconfirmed_denials: metric(
                registry,
                "view_unconfirmed_denials",
                "Denials that the API server did not confirm in time, by what --stale made of them",
            ),
        };
        for result in UNCONFIRMED {
            drop(
                metrics
                    .unconfirmed_denials
                    .get_or_create(&ResultLabels { result }),
            );
        }
        metrics
    }

    /// Counts a denial that the API server did not confirm in time.
    pub fn unconfirmed(&self, is_denied: bool) {
        let result = UNCONFIRMED[usize::from(is_denied)];
        self.unconfirmed_denials
            .get_or_create(&ResultLabels { result })
            .inc();
    }

    /// Sets whether the API server answers.
    pub fn set_connected(&self, connected: bool) {
        self.connected.set(i64::from(connected));
    }

    /// Sets how many objects were looked up at the API server so far with that result.
    pub fn set_late_lookups(&self, result: &'static str, count: u64) {
        let counter = self
            .late_lookups
            .get_or_create_owned(&ResultLabels { result });
        counter.inner().store(count, Ordering::Relaxed);
    }

    /// The gauges of one resource, such as `persistentvolumeclaims`.
    pub fn resource(&self, resource: &'static str) -> ViewGauges {
        let labels = ResourceLabels { resource };
        ViewGauges {
            synced: self.synced.get_or_create_owned(&labels),
            objects: self.objects.get_or_create_owned(&labels),
            last_event: self.last_event.get_or_create_owned(&labels),
        }
    }
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
