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
use engine::model::Text;
use engine::model::object::ObjectKind;
use engine::model::workload::WorkloadKind;
use engine::verdict::EffectivePolicy;
use engine::volume_facts::VolumeFacts;
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

use webhook::server::Metrics;

use super::view::FactSource;

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

/// Keeps the facts in the cluster up to date.
pub(super) struct FactsWriter {
    pub(super) view: Arc<FactSource>,
    pub(super) effective: Arc<ArcSwap<EffectivePolicy>>,
    pub(super) client: Client,
    pub(super) metrics: Metrics,
}

/// The `spec` of each VolumeFacts object in the cluster, by namespace.
type Specs = HashMap<String, Value>;

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
        never = written.follow(&writer.client) => match never {},
        never = writer.write(live, &written) => match never {},
    }
}

impl FactsWriter {
    async fn write(&self, live: &Informer, written: &Written) -> Infallible {
        let mut trouble: Option<String> = None;
        let mut ticks = interval(BETWEEN_WRITES);
        loop {
            let began = Instant::now();
            // What is not known yet is not withdrawn either.
            let changes = match live.fitness() {
                Fitness::Incomplete(_) => Vec::new(),
                Fitness::Current | Fitness::Stale(_) => self.changes(live, written).await,
            };
            let looked = began.elapsed();
            for change in changes {
                ticks.tick().await;
                let result = change.write(&self.client).await;
                self.metrics.volume_facts.written(result.is_ok());
                let reason = result.err().map(|error| error.to_string());
                if let Some(reason) = reason.as_ref().filter(|it| trouble.as_ref() != Some(it)) {
                    tracing::warn!(
                        namespace = change.namespace,
                        "The facts for the policies in the API server could not be written: \
                         {reason}. docs/always-there.md says what --admission-policies needs."
                    );
                }
                trouble = reason;
            }
            sleep(PAUSE.max(looked * PAUSE_FACTOR)).await;
        }
    }

    /// The objects that the cluster should have, by namespace. The look at a large cluster
    /// takes a second, in which what runs beside it gets its turns.
    async fn wanted(&self, live: &Informer) -> HashMap<String, Value> {
        let effective = self.effective.load_full();
        let mut wanted = HashMap::new();
        for (namespace, (claims, workloads)) in live.look(members) {
            let facts = live
                .look(|view| VolumeFacts::of(&namespace, &claims, &workloads, view, &effective));
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
        let differs =
            |namespace: &str, object: &Value| written.get(namespace) != object.get("spec");
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

type Members = BTreeMap<Text, (Vec<Text>, Vec<(WorkloadKind, Text)>)>;

/// The claims and workloads of each namespace.
fn members(view: engine::snapshot::View<'_>) -> Members {
    let mut members = Members::new();
    for object in view.cluster().objects() {
        let key = object.key();
        let (kind, name) = (object.kind(), Text::from(key.name));
        match kind {
            ObjectKind::Claim => members
                .entry(key.namespace.into())
                .or_default()
                .0
                .push(name),
            ObjectKind::Workload(kind) if kind.scales() => {
                let entry = members.entry(key.namespace.into()).or_default();
                entry.1.push((kind, name));
            }
            _ => {}
        }
    }
    members
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
    async fn write(&self, client: &Client) -> Result<(), kube::Error> {
        let objects: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), &self.namespace, &resource());
        match &self.object {
            Some(object) => {
                let parameters = PatchParams::apply(MANAGER).force();
                objects
                    .patch(NAME, &parameters, &Patch::Apply(object))
                    .await?;
            }
            None => {
                let deleted = objects.delete(NAME, &DeleteParams::default()).await;
                match deleted {
                    Err(kube::Error::Api(status)) if status.is_not_found() => {}
                    other => drop(other?),
                }
            }
        }
        Ok(())
    }
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

    /// Follows the objects in the cluster: somebody may change or delete them.
    async fn follow(&self, client: &Client) -> Infallible {
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource());
        let only_ours = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
        let mut events = watcher(objects, only_ours).default_backoff().boxed();
        let mut listed = Specs::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => put(&mut listed, object),
                Ok(Event::InitDone) => *self.lock() = Some(std::mem::take(&mut listed)),
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
                Err(error) => tracing::debug!(%error, "The VolumeFacts cannot be followed."),
            }
        }
        std::future::pending().await
    }
}

fn put(specs: &mut Specs, object: DynamicObject) {
    let spec = object.data.get("spec").cloned().unwrap_or_default();
    specs.insert(object.metadata.namespace.unwrap_or_default(), spec);
}
