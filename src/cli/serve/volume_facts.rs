//! Writes what the policies in the API server need: one VolumeFacts object a namespace.
//!
//! ```text
//! Informer ─▶ VolumeFacts of each namespace ─▶ those that differ from the cluster ─▶ writes
//!                                                          ▲
//!                       a watch of the VolumeFacts objects ┘
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
use engine::volume_facts::{Members, VolumeFacts};
use futures_util::StreamExt;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde_json::{Value, json};
use source::informer::{Fitness, Informer};
use tokio::task::yield_now;
use tokio::time::{Instant, interval, sleep};

use webhook::server::{HealthSource, Metrics, Readiness};

use super::view::FactSource;
use crate::cli::policies::{self, Installed};

/// The name of the object in each namespace, which the policies' bindings name too.
const NAME: &str = "volumes";

/// Who writes, in `managedFields`.
const MANAGER: &str = "multi-attach-guard";

/// The shortest time between two looks at the cluster, and so between two writes to one
/// namespace.
const PAUSE: Duration = Duration::from_secs(2);

/// A look that takes long is followed by a pause so many times as long.
const PAUSE_FACTOR: u32 = 20;

/// The shortest time between two writes.
const BETWEEN_WRITES: Duration = Duration::from_millis(100);

/// The largest `spec` that is written, in bytes: etcd takes 1.5 MiB, and a request has more
/// in it than the spec.
const LARGEST: usize = 1 << 20;

/// Between two looks at the policies in the API server.
const BETWEEN_COMPARISONS: Duration = Duration::from_secs(15);

/// The name of the condition on the policies and the facts for them.
const CONDITION: &str = "admission-policies";

/// What the policies in the API server depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// They are those of this version.
    Policies,
    /// The VolumeFacts can be read.
    Reading,
    /// The VolumeFacts can be written.
    Writing,
}

/// What is wrong with the policies in the API server, or with the facts for them.
#[derive(Default)]
pub(super) struct Health(Mutex<BTreeMap<Need, String>>);

impl Health {
    /// Notes why a need is not met, or that it is. A new reason is logged.
    fn note(&self, need: Need, reason: Option<String>) {
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(reason) = reason else {
            faults.remove(&need);
            return;
        };
        if faults.get(&need) != Some(&reason) {
            let what = match need {
                Need::Policies => "The policies in the API server are not as they should be",
                Need::Reading => "The VolumeFacts cannot be read",
                Need::Writing => "VolumeFacts cannot be written",
            };
            tracing::warn!(
                reason,
                "{what}. docs/always-there.md says what --admission-policies needs."
            );
            faults.insert(need, reason);
        }
    }
}

impl HealthSource for Health {
    /// Reasons that an API server gives may name namespaces, and stand in the log alone.
    fn report(&self) -> Vec<Readiness> {
        let faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        vec![match faults.first_key_value() {
            None => Readiness::ready(
                CONDITION,
                "The policies in the API server are those of this version.",
            ),
            Some((Need::Policies, sentence)) => Readiness::degraded(CONDITION, sentence),
            Some((Need::Reading, _)) => Readiness::degraded(
                CONDITION,
                "The VolumeFacts cannot be read; the log says why.",
            ),
            Some((Need::Writing, _)) => Readiness::degraded(
                CONDITION,
                "VolumeFacts cannot be written; the log says why.",
            ),
        }]
    }
}

/// Keeps the facts in the cluster up to date.
pub(super) struct FactsWriter {
    pub(super) health: Arc<Health>,
    pub(super) view: Arc<FactSource>,
    pub(super) effective: Arc<ArcSwap<EffectivePolicy>>,
    pub(super) client: Client,
    pub(super) metrics: Metrics,
}

/// The `spec` of each VolumeFacts object in the cluster, by namespace, and its version.
type Specs = HashMap<String, (Value, u64)>;

/// What the cluster has; `None` until all of it is known.
#[derive(Default)]
struct Written(Mutex<Option<Specs>>);

/// Something to be written.
struct Change {
    namespace: String,
    /// `None` where the object is to be deleted.
    object: Option<Value>,
}

/// Writes until the program ends; without a writer there is nothing to do.
pub(super) async fn follow(writer: Option<FactsWriter>) -> Infallible {
    let live = writer.as_ref().and_then(|it| Some((it, it.view.live()?)));
    let Some((writer, live)) = live else {
        return std::future::pending().await;
    };
    let written = Written::default();
    tokio::select! {
        never = written.follow(&writer.client, &writer.health) => match never {},
        never = writer.write(live, &written) => match never {},
        never = writer.compare() => match never {},
    }
}

impl FactsWriter {
    async fn write(&self, live: &Informer, written: &Written) -> Infallible {
        let mut ours = HashMap::new();
        let mut ticks = interval(BETWEEN_WRITES);
        loop {
            let began = Instant::now();
            // What is not known yet is not withdrawn either.
            let changes = match live.fitness() {
                Fitness::Incomplete(_) => Vec::new(),
                Fitness::Current | Fitness::Stale(_) => self.changes(live, written).await,
            };
            let looked = began.elapsed();
            let mut fault = None;
            for change in changes {
                ticks.tick().await;
                match change.write(&self.client).await {
                    Ok(version) => {
                        self.metrics.volume_facts.written(true);
                        if change.restores(&ours) {
                            self.metrics.volume_facts.restored();
                        }
                        written.wrote(&change, version);
                        change.remember(&mut ours);
                    }
                    Err(error) => {
                        self.metrics.volume_facts.written(false);
                        fault = Some(format!("namespace {}: {error}", change.namespace));
                    }
                }
            }
            self.health.note(Need::Writing, fault);
            sleep(PAUSE.max(looked * PAUSE_FACTOR)).await;
        }
    }

    /// Compares the policies in the API server with those of this version, again and again.
    async fn compare(&self) -> Infallible {
        loop {
            let fault = match policies::installed(&self.client).await {
                Ok(Installed::AsHere) => None,
                Ok(Installed::Nothing) => Some(
                    "The API server has no policies of multi-attach-guard, so it refuses nothing \
                     while the guard is away. Run `multi-attach-guard policies | kubectl apply -f -`."
                        .to_owned(),
                ),
                Ok(Installed::Otherwise(sentence)) => Some(sentence),
                Err(error) => {
                    tracing::debug!(%error, "The policies in the API server cannot be read.");
                    Some(
                        "The policies in the API server cannot be read, so it is not known whether \
                         they are those of this version. The ClusterRole \
                         multi-attach-guard-admission-policies has the right."
                            .to_owned(),
                    )
                }
            };
            self.health.note(Need::Policies, fault);
            sleep(BETWEEN_COMPARISONS).await;
        }
    }

    /// The objects that the cluster should have, by namespace. The look at a large cluster
    /// takes a second, in which what runs beside it gets its turns.
    async fn wanted(&self, live: &Informer) -> HashMap<String, Value> {
        let effective = self.effective.load_full();
        let mut wanted = HashMap::new();
        let classes = live.look(|view| VolumeFacts::storage_classes(view, &effective));
        for (namespace, members) in live.look(Members::of) {
            let facts =
                live.look(|view| VolumeFacts::of(&namespace, &members, &classes, view, &effective));
            if !facts.is_empty() {
                wanted.insert(namespace.to_string(), object(&namespace, &facts));
            }
            yield_now().await;
        }
        wanted
    }

    /// What the cluster lacks of the facts as they are now, and what it has too much.
    async fn changes(&self, live: &Informer, written: &Written) -> Vec<Change> {
        if written.lock().is_none() {
            return Vec::new();
        }
        let wanted = self.wanted(live).await;
        let written = written.lock();
        let Some(written) = &*written else {
            return Vec::new();
        };
        let too_large = wanted.values().filter(|it| is_left_out(it)).count();
        self.metrics.volume_facts.set_too_large(too_large);
        let gone = written.keys().filter(|it| !wanted.contains_key(*it));
        let mut changes: Vec<Change> = gone
            .map(|namespace| Change {
                namespace: namespace.clone(),
                object: None,
            })
            .collect();
        let differs = |namespace: &str, object: &Value| {
            written.get(namespace).map(|(spec, _)| spec) != object.get("spec")
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
}

/// Whether the object holds no facts because they are too large.
fn is_left_out(object: &Value) -> bool {
    object.pointer("/status/message").is_some()
}

/// The object that holds the facts, or says why it does not.
fn object(namespace: &str, facts: &VolumeFacts) -> Value {
    let mut object = json!({
        "apiVersion": "multi-attach-guard.dev/v1alpha1",
        "kind": "VolumeFacts",
        "metadata": { "name": NAME, "namespace": namespace },
        "spec": facts,
        "status": {},
    });
    let size = object["spec"].to_string().len();
    if size > LARGEST {
        object["spec"] = json!({});
        object["status"]["message"] = json!(format!(
            "The facts of this namespace take {size} bytes and at most {LARGEST} are written, so \
             the API server refuses nothing here while the guard is away."
        ));
    }
    object
}

impl Change {
    fn spec(&self) -> Option<&Value> {
        self.object.as_ref()?.get("spec")
    }

    /// Whether somebody else has changed or deleted what was written, by namespace, last.
    fn restores(&self, ours: &HashMap<String, Value>) -> bool {
        self.spec().is_some() && ours.get(&self.namespace) == self.spec()
    }

    /// Keeps what was written.
    fn remember(self, ours: &mut HashMap<String, Value>) {
        match self.spec().cloned() {
            Some(spec) => ours.insert(self.namespace, spec),
            None => ours.remove(&self.namespace),
        };
    }

    /// Writes, and says which version the object has now.
    async fn write(&self, client: &Client) -> Result<u64, kube::Error> {
        let objects: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), &self.namespace, &resource());
        match &self.object {
            Some(object) => {
                let parameters = PatchParams::apply(MANAGER).force();
                let patch = Patch::Apply(object);
                let stored = objects.patch(NAME, &parameters, &patch).await?;
                Ok(version(&stored))
            }
            None => {
                let deleted = objects.delete(NAME, &DeleteParams::default()).await;
                match deleted {
                    Err(kube::Error::Api(status)) if status.is_not_found() => {}
                    other => drop(other?),
                }
                Ok(0)
            }
        }
    }
}

/// Versions of one resource are numbers, and later ones are larger (KEP-5504).
fn version(object: &DynamicObject) -> u64 {
    let version = object.metadata.resource_version.as_deref();
    version.and_then(|it| it.parse().ok()).unwrap_or_default()
}

fn resource() -> ApiResource {
    ApiResource {
        group: "multi-attach-guard.dev".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "multi-attach-guard.dev/v1alpha1".to_owned(),
        kind: "VolumeFacts".to_owned(),
        plural: "volumefacts".to_owned(),
    }
}

impl Written {
    fn lock(&self) -> MutexGuard<'_, Option<Specs>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what was written, of which the watch has not heard yet.
    fn wrote(&self, change: &Change, version: u64) {
        if let Some(specs) = &mut *self.lock() {
            match change.spec() {
                Some(spec) => specs.insert(change.namespace.clone(), (spec.clone(), version)),
                None => specs.remove(&change.namespace),
            };
        }
    }

    /// Follows the objects in the cluster: somebody may change or delete them.
    async fn follow(&self, client: &Client, health: &Health) -> Infallible {
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource());
        let only_ours = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
        let mut events = watcher(objects, only_ours).default_backoff().boxed();
        let mut listed = Specs::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => put(&mut listed, object),
                Ok(Event::InitDone) => {
                    *self.lock() = Some(std::mem::take(&mut listed));
                    health.note(Need::Reading, None);
                }
                Ok(Event::Apply(object)) => {
                    if let Some(specs) = &mut *self.lock() {
                        put(specs, object);
                    }
                }
                Ok(Event::Delete(object)) => {
                    let namespace = object.metadata.namespace.unwrap_or_default();
                    if let Some(specs) = &mut *self.lock() {
                        specs.remove(&namespace);
                    }
                }
                Err(error) => health.note(Need::Reading, Some(error.to_string())),
            }
        }
        std::future::pending().await
    }
}

/// Takes an object over, unless a later version of it is known.
fn put(specs: &mut Specs, object: DynamicObject) {
    let version = version(&object);
    let namespace = object.metadata.namespace.unwrap_or_default();
    if specs
        .get(&namespace)
        .is_none_or(|(_, known)| *known <= version)
    {
        let spec = object.data.get("spec").cloned().unwrap_or_default();
        specs.insert(namespace, (spec, version));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts about so many claims with names as provisioners make them.
    fn facts(claims: usize) -> VolumeFacts {
        let claim = |at: usize| {
            let name = format!("data-2f1c8f0e-7a52-4f5b-9d0e-{at:012}");
            (name.into(), "OneNode-1f2e3d4c".to_owned())
        };
        VolumeFacts {
            claims: (0..claims).map(claim).collect(),
            denied: [("Deployment", vec!["rolling-update-overlap"])].into(),
            ..VolumeFacts::default()
        }
    }

    #[test]
    fn a_namespace_of_many_claims_is_left_out_and_its_object_says_so() {
        let of_many = object("shop", &facts(15_000));
        assert!(!is_left_out(&of_many));
        assert_eq!(
            of_many["spec"]["claims"]
                .as_object()
                .map(serde_json::Map::len),
            Some(15_000)
        );
        let of_too_many = object("shop", &facts(20_000));
        assert!(is_left_out(&of_too_many));
        assert_eq!(of_too_many["spec"], json!({}));
        let message = of_too_many["status"]["message"].as_str().unwrap();
        assert!(message.contains("refuses nothing here"), "{message}");
    }

    #[test]
    fn an_event_that_comes_late_undoes_no_write() {
        let stored = |version: &str, spec: Value| -> DynamicObject {
            serde_json::from_value(json!({
                "metadata": {"namespace": "shop", "resourceVersion": version}, "spec": spec,
            }))
            .unwrap()
        };
        let mut specs = Specs::new();
        put(&mut specs, stored("9", json!({"a": 1})));
        put(&mut specs, stored("10", json!({"a": 2})));
        put(&mut specs, stored("9", json!({"a": 1})));
        assert_eq!(specs["shop"], (json!({"a": 2}), 10));
    }
}
