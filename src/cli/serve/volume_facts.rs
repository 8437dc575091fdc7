//! Supplies the policies in the API server with one VolumeFacts object in each namespace, and
//! compares these policies with those of this version.
//!
//! ```text
//! Informer ─▶ the object of each namespace ─▶ those that differ from the cluster ─▶ writes
//!                                                         ▲
//!                               a watch of these objects ┘
//! ```
//!
//! Every replica does this. All of them write the same objects, and a replica that comes second
//! sees in the watch that there is nothing left to write.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use engine::verdict::EffectivePolicy;
use engine::volume_facts::{Members, VolumeFacts};
use futures_util::StreamExt;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde_json::{Value, json};
use source::informer::{Fitness, Informer};
use tokio::task::yield_now;
use tokio::time::{Instant, interval, sleep, sleep_until};

use super::view::FactSource;
use crate::cli::policies::{self, Installed};
use webhook::server::{Metrics, Readiness};

const GROUP: &str = "multi-attach-guard.dev";
const VERSION: &str = "v1alpha1";
const KIND: &str = "VolumeFacts";

/// The name of the object in each namespace. The bindings of the policies use it, too.
const NAME: &str = "volumes";

/// The name of the writer in `managedFields`.
const MANAGER: &str = "multi-attach-guard";

/// The name of the condition on the objects and the policies.
const CONDITION: &str = "admission-policies";

/// The shortest time between two looks at the cluster, and so between two writes to one
/// namespace.
const PAUSE: Duration = Duration::from_secs(2);

/// The factor between the duration of a look and the pause after it.
const PAUSE_FACTOR: u32 = 20;

/// The shortest time between two writes.
const BETWEEN_WRITES: Duration = Duration::from_millis(100);

/// The time between two looks at the policies in the API server.
const BETWEEN_COMPARISONS: Duration = Duration::from_secs(15);

/// The reason that the API server gives if it creates nothing in a namespace that is being deleted.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// The largest `spec` that is written, in bytes: etcd takes 1.5 MiB, and a request contains more
/// than the spec.
const LARGEST: usize = 1 << 20;

/// A need of the objects. Readiness names the first one that is not met.
#[derive(Clone, Copy, Debug)]
enum Need {
    /// The policies that read the objects are those of this version.
    Policies,
    /// The objects can be read.
    Reading,
    /// The objects can be written.
    Writing,
}

/// Keeps the objects in the cluster.
pub(super) struct Writer {
    view: Arc<FactSource>,
    effective: Arc<ArcSwap<EffectivePolicy>>,
    client: Client,
    metrics: Metrics,
    /// The reason why each [`Need`] is not met, if it is not.
    faults: Mutex<[Option<String>; 3]>,
}

/// The spec of each object in the cluster, by namespace, and the object's version.
type Known = HashMap<String, (Value, u64)>;

/// The state of the objects, as far as it is known.
#[derive(Default)]
struct Objects {
    /// The objects in the cluster; `None` until all are known.
    known: Option<Known>,
    /// The objects of a list that is not complete.
    listed: Known,
    /// The specs that this process wrote.
    ours: HashMap<String, Value>,
}

impl Writer {
    pub(super) fn new(
        view: &Arc<FactSource>,
        effective: &Arc<ArcSwap<EffectivePolicy>>,
        client: Client,
        metrics: &Metrics,
    ) -> Self {
        Self {
            view: Arc::clone(view),
            effective: Arc::clone(effective),
            client,
            metrics: metrics.clone(),
            faults: Mutex::default(),
        }
    }

    /// Writes and compares until the program ends.
    pub(super) async fn follow(&self) -> Infallible {
        let Some(live) = self.view.live() else {
            return pending().await;
        };
        tokio::select! {
            never = self.keep(live) => never,
            never = self.compare() => never,
        }
    }

    /// The readiness condition on the objects and the policies. The API server's reasons may name
    /// namespaces, so they are in the log only.
    pub(super) fn condition(&self) -> Readiness {
        let faults = self.faults();
        let fault = match &*faults {
            [Some(sentence), ..] => sentence.as_str(),
            [_, Some(_), _] => "VolumeFacts objects cannot be read; the log says why.",
            [.., Some(_)] => "VolumeFacts objects cannot be written; the log says why.",
            [None, None, None] => {
                let sentence = "The policies in the API server are those of this version.";
                return Readiness::ready(CONDITION, sentence);
            }
        };
        Readiness::degraded(CONDITION, fault)
    }

    fn faults(&self) -> MutexGuard<'_, [Option<String>; 3]> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records why a need is not met, or that it is met. A new reason is logged.
    fn note(&self, need: Need, reason: Option<String>) {
        let fault = &mut self.faults()[need as usize];
        if reason.is_some() && *fault != reason {
            let what = match need {
                Need::Policies => "Something is wrong with the policies in the API server",
                Need::Reading => "VolumeFacts objects cannot be read",
                Need::Writing => "VolumeFacts objects cannot be written",
            };
            tracing::warn!(
                reason,
                "{what}. {}/blob/main/docs/always-there.md says what --admission-policies needs.",
                env!("CARGO_PKG_REPOSITORY"),
            );
        }
        *fault = reason;
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
            self.note(Need::Policies, fault);
            sleep(BETWEEN_COMPARISONS).await;
        }
    }

    /// Keeps the objects as they should be: somebody may change or delete them.
    async fn keep(&self, live: &Informer) -> Infallible {
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource());
        let only_ours = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
        let mut events = watcher(all, only_ours).default_backoff().boxed();
        let mut objects = Objects::default();
        let mut next_look = Instant::now();
        loop {
            tokio::select! {
                Some(event) = events.next() => match event {
                    Ok(event) => {
                        if objects.take(event) {
                            self.note(Need::Reading, None);
                        }
                    }
                    Err(error) => self.note(Need::Reading, Some(error.to_string())),
                },
                () = sleep_until(next_look) => {
                    let looked = self.look(live, &mut objects).await;
                    next_look = Instant::now() + PAUSE.max(looked * PAUSE_FACTOR);
                }
            }
        }
    }

    /// Writes the objects that differ, and returns the time that the comparison took.
    async fn look(&self, live: &Informer, objects: &mut Objects) -> Duration {
        let Objects { known, ours, .. } = objects;
        // While the facts or the objects are not known, no object is deleted.
        let (Some(known), Fitness::Current | Fitness::Stale(_)) = (known, live.fitness()) else {
            return Duration::ZERO;
        };
        let began = Instant::now();
        let changes = changes(known, self.wanted(live).await);
        let looked = began.elapsed();
        let mut fault = None;
        let mut ticks = interval(BETWEEN_WRITES);
        for (namespace, object) in changes {
            ticks.tick().await;
            let written = self.apply(&namespace, object.as_ref()).await;
            let result = match written {
                Ok(_) => "success",
                Err(_) => "failure",
            };
            match written {
                // A namespace that has this name later is a new one.
                Err(error) if is_ending(&error) => {
                    ours.remove(&namespace);
                    continue;
                }
                Err(error) => fault = Some(format!("namespace {namespace}: {error}")),
                Ok(version) => match object {
                    Some(mut object) => {
                        let spec = object["spec"].take();
                        let before = ours.insert(namespace.clone(), spec.clone());
                        if before.as_ref() == Some(&spec) {
                            // Somebody else has changed or deleted the object.
                            self.metrics.volume_facts_restored.inc();
                        }
                        known.insert(namespace, (spec, version));
                    }
                    None => {
                        ours.remove(&namespace);
                        known.remove(&namespace);
                    }
                },
            }
            self.metrics.volume_facts_writes.get_or_create(&[("result", result)]).inc();
        }
        self.note(Need::Writing, fault);
        looked
    }

    /// Writes `object`, or deletes the stored one if it is `None`, and returns the version that is
    /// stored.
    async fn apply(&self, namespace: &str, object: Option<&Value>) -> Result<u64, kube::Error> {
        let objects: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource());
        if let Some(object) = object {
            let parameters = PatchParams::apply(MANAGER).force();
            let patch = Patch::Apply(object);
            let stored = objects.patch(NAME, &parameters, &patch).await?;
            return Ok(version(&stored));
        }
        match objects.delete(NAME, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(0),
            other => other.map(|_| 0),
        }
    }

    /// The objects that the cluster should have, by namespace. For a large cluster this takes a
    /// second, in which concurrent tasks get their turns.
    async fn wanted(&self, live: &Informer) -> HashMap<String, Value> {
        let effective = self.effective.load_full();
        let mut wanted = HashMap::new();
        for (namespace, members) in live.look(Members::of) {
            let facts = live.look(|view| VolumeFacts::of(&namespace, &members, view, &effective));
            if !facts.is_empty() {
                wanted.insert(namespace.to_string(), object(&namespace, &facts));
            }
            yield_now().await;
        }
        let too_large = wanted.values().filter(|value| is_left_out(value)).count();
        self.metrics.volume_facts_too_large.set(i64::try_from(too_large).unwrap_or(i64::MAX));
        wanted
    }
}

impl Objects {
    /// Stores an event of the watch, and returns whether it makes all objects known.
    fn take(&mut self, event: Event<DynamicObject>) -> bool {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => put(&mut self.listed, object),
            Event::InitDone => {
                self.known = Some(std::mem::take(&mut self.listed));
                return true;
            }
            Event::Apply(object) => {
                if let Some(known) = &mut self.known {
                    put(known, object);
                }
            }
            Event::Delete(object) => {
                let namespace = object.metadata.namespace.unwrap_or_default();
                if let Some(known) = &mut self.known {
                    known.remove(&namespace);
                }
            }
        }
        false
    }
}

/// The objects to delete, as `None`, and the wanted objects that the cluster lacks or has with
/// another spec.
fn changes(known: &Known, wanted: HashMap<String, Value>) -> Vec<(String, Option<Value>)> {
    let gone: Vec<_> = known
        .keys()
        .filter(|namespace| !wanted.contains_key(*namespace))
        .map(|namespace| (namespace.clone(), None))
        .collect();
    let differing = wanted
        .into_iter()
        .filter(|(namespace, object)| {
            known.get(namespace).is_none_or(|(spec, _)| *spec != object["spec"])
        })
        .map(|(namespace, object)| (namespace, Some(object)));
    gone.into_iter().chain(differing).collect()
}

fn resource() -> ApiResource {
    let kind = GroupVersionKind::gvk(GROUP, VERSION, KIND);
    ApiResource::from_gvk_with_plural(&kind, "volumefacts")
}

/// Whether the namespace is being deleted or is gone: nothing can be created in it any more, and
/// nothing needs to be.
fn is_ending(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    status.details.iter().any(|details| {
        (status.is_not_found() && details.kind == "namespaces")
            || details.causes.iter().any(|cause| cause.reason == NAMESPACE_TERMINATING)
    })
}

/// The version of an object. Versions of one resource are numbers, and later ones are larger
/// (KEP-5504).
fn version(object: &DynamicObject) -> u64 {
    object
        .metadata
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}

/// Stores an object, unless a later version of it is known.
fn put(known: &mut Known, mut object: DynamicObject) {
    let version = version(&object);
    let spec = object.data.get_mut("spec").map(Value::take).unwrap_or_default();
    let namespace = object.metadata.namespace.unwrap_or_default();
    let stored = known.get(&namespace);
    if stored.is_none_or(|(_, stored)| *stored <= version) {
        known.insert(namespace, (spec, version));
    }
}

/// Whether the object holds no facts because they are too large.
fn is_left_out(object: &Value) -> bool {
    object.pointer("/status/message").is_some()
}

/// The object that holds the facts, or the reason why it does not.
fn object(namespace: &str, facts: &VolumeFacts) -> Value {
    let mut object = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": KIND,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_comes_late_undoes_no_write() {
        let mut known = Known::new();
        for (version, spec) in [("9", 1), ("10", 2), ("9", 1)] {
            let stored = json!({
                "metadata": {"namespace": "shop", "resourceVersion": version}, "spec": {"a": spec},
            });
            put(&mut known, serde_json::from_value(stored).unwrap());
        }
        assert_eq!(known["shop"], (json!({"a": 2}), 10));
    }

    #[test]
    fn a_namespace_that_is_being_deleted_or_gone_is_no_fault() {
        let is_ending = |reason: &str, code: u16, details: Value| {
            let status = json!({"status": "Failure", "message": "", "reason": reason, "code": code, "details": details});
            is_ending(&kube::Error::Api(serde_json::from_value(status).unwrap()))
        };
        let cause = json!({"reason": "NamespaceTerminating", "message": "namespace shop is being terminated", "field": "metadata.namespace"});
        let ends = json!({"name": NAME, "kind": "volumefacts", "causes": [cause]});
        assert!(is_ending("Forbidden", 403, ends));
        let gone = json!({"name": "shop", "kind": "namespaces"});
        assert!(is_ending("NotFound", 404, gone.clone()));
        assert!(!is_ending("Forbidden", 403, gone));
        let forbidden = json!({"name": NAME, "kind": "volumefacts"});
        assert!(!is_ending("Forbidden", 403, forbidden));
    }

    #[test]
    fn a_namespace_of_many_claims_is_left_out_and_its_object_says_so() {
        // Names as provisioners make them.
        let facts = |claims: usize| VolumeFacts {
            claims: (0..claims)
                .map(|at| format!("data-2f1c8f0e-7a52-4f5b-9d0e-{at:012}"))
                .map(|name| (name.as_str().into(), "OneNode-1f2e3d4c".to_owned()))
                .collect(),
            ..VolumeFacts::default()
        };
        let of_many = object("shop", &facts(15_000));
        assert!(!is_left_out(&of_many));
        assert!(of_many["spec"]["claims"]["data-2f1c8f0e-7a52-4f5b-9d0e-000000014999"].is_string());
        let of_too_many = object("shop", &facts(20_000));
        assert_eq!(of_too_many["spec"], json!({}));
        let message = of_too_many["status"]["message"].as_str().unwrap();
        assert!(message.contains("refuses nothing here"), "{message}");
    }
}
