//! Objects, one a namespace, that the cluster should have as the guard says.
//!
//! ```text
//! Informer ─▶ the object of each namespace ─▶ those that differ from the cluster ─▶ writes
//!                                                         ▲
//!                               a watch of these objects ┘
//! ```
//!
//! Every replica does this. All of them write the same, and who comes second sees in the
//! watch that there is nothing left to write.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use engine::verdict::EffectivePolicy;
use futures_util::StreamExt;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde_json::Value;
use source::informer::{Fitness, Informer};
use tokio::time::{Instant, interval, sleep};

use webhook::server::{HealthSource, KeptObjectMetrics, Metrics, Readiness};

use super::view::FactSource;

/// Who writes, in `managedFields`.
const MANAGER: &str = "multi-attach-guard";

/// The shortest time between two looks at the cluster, and so between two writes to one
/// namespace.
const PAUSE: Duration = Duration::from_secs(2);

/// A look that takes long is followed by a pause so many times as long.
const PAUSE_FACTOR: u32 = 20;

/// The shortest time between two writes.
const BETWEEN_WRITES: Duration = Duration::from_millis(100);

/// Why the API server makes nothing in a namespace that is being deleted.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// A kind of objects that the guard keeps.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    /// The name of the object in each namespace.
    pub(super) name: &'static str,
    /// The fields that the guard writes.
    pub(super) fields: &'static [&'static str],
    /// The name of the condition on the objects.
    pub(super) condition: &'static str,
    /// What is true when nothing is wrong.
    pub(super) ready: &'static str,
    /// Where the reader finds what the objects need.
    pub(super) guide: &'static str,
}

impl Kind {
    fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_owned(),
            version: "v1alpha1".to_owned(),
            api_version: format!("{}/v1alpha1", self.group),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    /// The fields that the guard writes.
    fn content(&self, object: &Value) -> Value {
        let fields = self.fields.iter();
        fields
            .filter_map(|field| Some(((*field).to_owned(), object.get(field)?.clone())))
            .collect()
    }
}

/// What the objects depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    /// The policies that read them are those of this version.
    Policies,
    /// They can be read.
    Reading,
    /// They can be written.
    Writing,
}

/// What is wrong with the objects, or with what reads them.
pub(super) struct Health {
    kind: &'static Kind,
    faults: Mutex<BTreeMap<Need, String>>,
}

impl Health {
    pub(super) fn of(kind: &'static Kind) -> Self {
        Self {
            kind,
            faults: Mutex::default(),
        }
    }

    /// Notes why a need is not met, or that it is. A new reason is logged.
    pub(super) fn note(&self, need: Need, reason: Option<String>) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(reason) = reason else {
            faults.remove(&need);
            return;
        };
        if faults.get(&need) != Some(&reason) {
            let Kind { kind, guide, .. } = self.kind;
            let what = match need {
                Need::Policies => {
                    "Something is wrong with the policies in the API server".to_owned()
                }
                Need::Reading => format!("{kind} objects cannot be read"),
                Need::Writing => format!("{kind} objects cannot be written"),
            };
            tracing::warn!(reason, "{what}. {guide}");
            faults.insert(need, reason);
        }
    }
}

impl HealthSource for Health {
    /// Reasons that an API server gives may name namespaces, and stand in the log alone.
    fn report(&self) -> Vec<Readiness> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let Kind {
            kind, condition, ..
        } = self.kind;
        let degraded = |sentence: &str| Readiness::degraded(condition, sentence);
        vec![match faults.first_key_value() {
            None => Readiness::ready(condition, self.kind.ready),
            Some((Need::Policies, sentence)) => degraded(sentence),
            Some((Need::Reading, _)) => {
                degraded(&format!("{kind} objects cannot be read; the log says why."))
            }
            Some((Need::Writing, _)) => degraded(&format!(
                "{kind} objects cannot be written; the log says why."
            )),
        }]
    }
}

/// What a writer of such objects needs.
pub(super) struct Writer {
    pub(super) health: Arc<Health>,
    pub(super) view: Arc<FactSource>,
    pub(super) effective: Arc<ArcSwap<EffectivePolicy>>,
    pub(super) client: Client,
    pub(super) metrics: Metrics,
}

/// What the guard writes of each object in the cluster, by namespace, and its version.
type Contents = HashMap<String, (Value, u64)>;

/// The objects of one kind.
pub(super) struct KeptObjects {
    kind: &'static Kind,
    client: Client,
    metrics: KeptObjectMetrics,
    /// What the cluster has; `None` until all of it is known.
    known: Mutex<Option<Contents>>,
}

/// Something to be written.
struct Change {
    namespace: String,
    /// `None` where the object is to be deleted.
    object: Option<Value>,
}

impl KeptObjects {
    pub(super) fn new(kind: &'static Kind, client: Client, metrics: KeptObjectMetrics) -> Self {
        Self {
            kind,
            client,
            metrics,
            known: Mutex::default(),
        }
    }

    /// Keeps the objects as `wanted` has them, by namespace, until the program ends.
    pub(super) async fn keep(
        &self,
        live: &Informer,
        health: &Health,
        wanted: impl AsyncFn() -> HashMap<String, Value>,
    ) -> Infallible {
        tokio::select! {
            never = self.follow(health) => never,
            never = self.write(live, health, wanted) => never,
        }
    }

    async fn write(
        &self,
        live: &Informer,
        health: &Health,
        wanted: impl AsyncFn() -> HashMap<String, Value>,
    ) -> Infallible {
        let mut ours = HashMap::new();
        let mut ticks = interval(BETWEEN_WRITES);
        loop {
            let began = Instant::now();
            // What is not known yet is not withdrawn either.
            let is_known = self.lock().is_some();
            let changes = match live.fitness() {
                Fitness::Current | Fitness::Stale(_) if is_known => self.changes(wanted().await),
                _ => Vec::new(),
            };
            let looked = began.elapsed();
            let mut fault = None;
            for change in changes {
                ticks.tick().await;
                match self.apply(&change).await {
                    Ok(version) => {
                        self.metrics.written(true);
                        let content = change.object.as_ref().map(|it| self.kind.content(it));
                        if content.is_some() && ours.get(&change.namespace) == content.as_ref() {
                            // Somebody else has changed or deleted it.
                            self.metrics.restored();
                        }
                        match &content {
                            Some(content) => ours.insert(change.namespace.clone(), content.clone()),
                            None => ours.remove(&change.namespace),
                        };
                        self.wrote(change.namespace, content, version);
                    }
                    Err(error) if is_ending(&error) => {
                        // Whatever comes under this name later is new.
                        ours.remove(&change.namespace);
                    }
                    Err(error) => {
                        self.metrics.written(false);
                        fault = Some(format!("namespace {}: {error}", change.namespace));
                    }
                }
            }
            health.note(Need::Writing, fault);
            sleep(PAUSE.max(looked * PAUSE_FACTOR)).await;
        }
    }

    /// What the cluster lacks of what is wanted, and what it has too much.
    fn changes(&self, wanted: HashMap<String, Value>) -> Vec<Change> {
        let known = self.lock();
        let Some(known) = &*known else {
            return Vec::new();
        };
        let gone = known.keys().filter(|it| !wanted.contains_key(*it));
        let mut changes: Vec<Change> = gone
            .map(|namespace| Change {
                namespace: namespace.clone(),
                object: None,
            })
            .collect();
        let differs = |namespace: &str, object: &Value| {
            known
                .get(namespace)
                .is_none_or(|(content, _)| *content != self.kind.content(object))
        };
        changes.extend(
            wanted
                .into_iter()
                .filter(|(namespace, object)| differs(namespace, object))
                .map(|(namespace, object)| Change {
                    namespace,
                    object: Some(object),
                }),
        );
        changes
    }

    /// Writes, and says which version the object has now.
    async fn apply(&self, change: &Change) -> Result<u64, kube::Error> {
        let Kind { name, .. } = self.kind;
        let objects: Api<DynamicObject> = Api::namespaced_with(
            self.client.clone(),
            &change.namespace,
            &self.kind.resource(),
        );
        match &change.object {
            Some(object) => {
                let parameters = PatchParams::apply(MANAGER).force();
                let patch = Patch::Apply(object);
                let stored = objects.patch(name, &parameters, &patch).await?;
                Ok(version(&stored))
            }
            None => {
                let deleted = objects.delete(name, &DeleteParams::default()).await;
                match deleted {
                    Err(kube::Error::Api(status)) if status.is_not_found() => {}
                    other => drop(other?),
                }
                Ok(0)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Contents>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what was written before the watch reports it.
    fn wrote(&self, namespace: String, content: Option<Value>, version: u64) {
        if let Some(known) = &mut *self.lock() {
            match content {
                Some(content) => known.insert(namespace, (content, version)),
                None => known.remove(&namespace),
            };
        }
    }

    /// Follows the objects in the cluster: somebody may change or delete them.
    async fn follow(&self, health: &Health) -> Infallible {
        let objects: Api<DynamicObject> = Api::all_with(self.client.clone(), &self.kind.resource());
        let only_ours =
            watcher::Config::default().fields(&format!("metadata.name={}", self.kind.name));
        let mut events = watcher(objects, only_ours).default_backoff().boxed();
        let mut listed = Contents::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => put(&mut listed, self.kind, object),
                Ok(Event::InitDone) => {
                    *self.lock() = Some(std::mem::take(&mut listed));
                    health.note(Need::Reading, None);
                }
                Ok(Event::Apply(object)) => {
                    if let Some(known) = &mut *self.lock() {
                        put(known, self.kind, object);
                    }
                }
                Ok(Event::Delete(object)) => {
                    let namespace = object.metadata.namespace.unwrap_or_default();
                    if let Some(known) = &mut *self.lock() {
                        known.remove(&namespace);
                    }
                }
                Err(error) => health.note(Need::Reading, Some(error.to_string())),
            }
        }
        std::future::pending().await
    }
}

/// Whether the namespace is being deleted or gone: nothing can be made in it any more, and
/// nothing needs to be.
fn is_ending(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    status.details.iter().any(|details| {
        let mut causes = details.causes.iter();
        (status.is_not_found() && details.kind == "namespaces")
            || causes.any(|it| it.reason == NAMESPACE_TERMINATING)
    })
}

/// Versions of one resource are numbers, and later ones are larger (KEP-5504).
fn version(object: &DynamicObject) -> u64 {
    let version = object.metadata.resource_version.as_deref();
    version.and_then(|it| it.parse().ok()).unwrap_or_default()
}

/// Takes an object over, unless a later version of it is known.
fn put(known: &mut Contents, kind: &Kind, object: DynamicObject) {
    let version = version(&object);
    let content = kind.content(&object.data);
    let namespace = object.metadata.namespace.unwrap_or_default();
    if known
        .get(&namespace)
        .is_none_or(|(_, known)| *known <= version)
    {
        known.insert(namespace, (content, version));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::volume_facts::KIND;
    use super::*;

    #[test]
    fn an_event_that_comes_late_undoes_no_write() {
        let stored = |version: &str, spec: Value| -> DynamicObject {
            serde_json::from_value(json!({
                "metadata": {"namespace": "shop", "resourceVersion": version}, "spec": spec,
            }))
            .unwrap()
        };
        let mut known = Contents::new();
        put(&mut known, &KIND, stored("9", json!({"a": 1})));
        put(&mut known, &KIND, stored("10", json!({"a": 2})));
        put(&mut known, &KIND, stored("9", json!({"a": 1})));
        assert_eq!(known["shop"], (json!({"spec": {"a": 2}}), 10));
    }
}
