//! Watches the cluster in one place for all scenarios.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use engine::model::object::ObjectKind;
use futures_util::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::{GroupVersionKind, ObjectMeta};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::Value;

use crate::harness::{ControlPlane, patient};

/// The namespaced kinds that a scenario can read.
const KINDS: [(&str, &str, &str); 10] = [
    ("", "v1", "Pod"),
    ("", "v1", "Event"),
    ("", "v1", "PersistentVolumeClaim"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "StatefulSet"),
    ("batch", "v1", "Job"),
    ("batch", "v1", "CronJob"),
    ("", "v1", "ReplicationController"),
];

/// A cluster-wide kind. The observer files each object under the namespace of the scenario whose
/// node it names.
const ATTACHMENT: (&str, &str, &str) = ("storage.k8s.io", "v1", "VolumeAttachment");

/// Namespace, kind, name.
type Key = (String, String, String);

/// A live copy of every object of [`KINDS`], and of every [`ATTACHMENT`].
#[derive(Clone, Default)]
pub(crate) struct Observer {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Key, Arc<Value>>,
    /// The last revision of each object, including deleted ones.
    seen: HashMap<Key, u64>,
    changes: HashMap<String, Changes>,
}

/// The changes in one namespace. Most of the waiting threads wait for others.
#[derive(Clone, Default)]
struct Changes {
    count: u64,
    more: Arc<Condvar>,
}

impl Observer {
    /// Starts watching.
    pub(crate) fn start(plane: &ControlPlane) -> Self {
        let observer = Self::default();
        for kind in KINDS.into_iter().chain([ATTACHMENT]) {
            let resource = resource(kind);
            let (.., kind) = kind;
            let api = Api::<DynamicObject>::all_with(plane.client(), &resource);
            let state = Arc::clone(&observer.state);
            plane.runtime().spawn(async move {
                let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
                // The objects of a new list. All others were deleted while the watch was
                // interrupted.
                let mut listed = BTreeSet::new();
                while let Some(event) = events.next().await {
                    let mut state = state.lock().unwrap();
                    match event {
                        Ok(Event::Init) => listed.clear(),
                        Ok(Event::InitApply(object)) => {
                            listed.insert(state.put(kind, &object));
                        }
                        Ok(Event::InitDone) => state.keep(kind, &listed),
                        Ok(Event::Apply(object)) => {
                            state.put(kind, &object);
                        }
                        Ok(Event::Delete(object)) => state.remove(&place(kind, &object)),
                        // The watcher restarts by itself.
                        Err(_) => {}
                    }
                }
            });
        }
        observer
    }

    /// The namespace's objects of one kind, by name.
    pub(crate) fn objects(&self, namespace: &str, kind: &str) -> Vec<Arc<Value>> {
        let from = (namespace.to_owned(), kind.to_owned(), String::new());
        let state = self.state.lock().unwrap();
        state
            .objects
            .range(from..)
            .take_while(|((ns, k, _), _)| ns == namespace && k == kind)
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    /// The namespace's objects that the engine reads, without those that a controller makes for its
    /// workload, which the guard leaves out too.
    pub(crate) fn documents(&self, namespace: &str) -> Vec<(ObjectKind, Value)> {
        let read = KINDS
            .into_iter()
            .filter_map(|kind| Some((ObjectKind::of(kind.0, kind.2)?, resource(kind))));
        let of_kind = |(kind, resource): (ObjectKind, ApiResource)| {
            let objects = self.objects(namespace, &resource.kind).into_iter();
            let own = objects.filter(|object| !is_of_a_template(object));
            own.map(move |object| (kind, with_kind(Value::clone(&object), &resource)))
        };
        read.flat_map(of_kind).collect()
    }

    /// The kinds of the namespace's objects, apart from Events.
    pub(crate) fn resources(&self, namespace: &str) -> Vec<ApiResource> {
        let there = |kind: &str| kind != "Event" && !self.objects(namespace, kind).is_empty();
        let kinds = KINDS.into_iter().filter(|(.., kind)| there(kind));
        kinds.map(resource).collect()
    }

    /// Asks `question` at once, after every change in the namespace, and at the time that its
    /// answer names, until it returns `Ok`.
    ///
    /// # Errors
    ///
    /// The last `Err` of `question` after `within`.
    pub(crate) fn wait<T>(
        &self,
        namespace: &str,
        within: Duration,
        mut question: impl FnMut() -> Result<T, NotYet>,
    ) -> Result<T, String> {
        let began = Instant::now();
        loop {
            let deadline = began + patient(within);
            let before = self.state.lock().unwrap().changes(namespace).clone();
            let not_yet = match question() {
                Ok(answer) => return Ok(answer),
                Err(not_yet) => not_yet,
            };
            if Instant::now() >= deadline {
                let waited = began.elapsed().as_secs();
                return Err(format!("Waited {waited} s. {}", not_yet.because));
            }
            let until = not_yet.ask_again_at.map_or(deadline, |again| again.min(deadline));
            let mut state = self.state.lock().unwrap();
            while state.changes(namespace).count == before.count && Instant::now() < until {
                let left = until.saturating_duration_since(Instant::now());
                state = before.more.wait_timeout(state, left).unwrap().0;
            }
        }
    }

    /// Waits until this copy of the namespace is no older than the present cluster, so that it
    /// shows the effects of earlier actions.
    pub(crate) fn catch_up(&self, plane: &ControlPlane, namespace: &str) -> Result<(), String> {
        let mut known: HashMap<Key, u64> = HashMap::new();
        for kind in KINDS {
            let resource = resource(kind);
            let (.., kind) = kind;
            let api = Api::<DynamicObject>::namespaced_with(plane.client(), namespace, &resource);
            let list = plane
                .block_on(api.list_metadata(&ListParams::default()))
                .map_err(|error| error.to_string())?;
            for object in list.items {
                known.insert(
                    key(kind, &object.metadata),
                    revision(object.metadata.resource_version.as_deref()),
                );
            }
        }
        self.wait(namespace, Duration::from_secs(30), || {
            let state = self.state.lock().unwrap();
            let behind = known
                .iter()
                .find(|(key, revision)| state.seen.get(*key).is_none_or(|seen| seen < *revision));
            match behind {
                None => Ok(()),
                Some((key, _)) => Err(format!("{} {} has not been seen", key.1, key.2).into()),
            }
        })
    }
}

/// The reason for which a question has no answer yet.
pub(crate) struct NotYet {
    /// The observation so far.
    pub(crate) because: String,
    /// The time at which the answer may change without a change in the cluster.
    pub(crate) ask_again_at: Option<Instant>,
}

impl From<String> for NotYet {
    fn from(because: String) -> Self {
        Self { because, ask_again_at: None }
    }
}

impl State {
    fn changes(&mut self, namespace: &str) -> &mut Changes {
        self.changes.entry(namespace.to_owned()).or_default()
    }

    fn touch(&mut self, namespace: &str) {
        let changes = self.changes(namespace);
        changes.count += 1;
        changes.more.notify_all();
    }

    fn put(&mut self, kind: &str, object: &DynamicObject) -> Key {
        let key = place(kind, object);
        self.touch(&key.0);
        self.seen.insert(key.clone(), revision(object.metadata.resource_version.as_deref()));
        self.objects.insert(key.clone(), Arc::new(serde_json::to_value(object).unwrap()));
        key
    }

    fn remove(&mut self, key: &Key) {
        self.touch(&key.0);
        self.seen.insert(key.clone(), u64::MAX);
        self.objects.remove(key);
    }

    fn keep(&mut self, kind: &str, listed: &BTreeSet<Key>) {
        let gone: Vec<Key> = self
            .objects
            .keys()
            .filter(|key| key.1 == kind && !listed.contains(key))
            .cloned()
            .collect();
        for key in gone {
            self.remove(&key);
        }
    }
}

/// Whether a controller made the object from the pod template of its workload.
fn is_of_a_template(object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    let hashes = ["pod-template-hash", "controller-revision-hash", "job-name"];
    hashes.iter().any(|label| labels.get(label).is_some())
}

/// The object with its kind, which a list has only once, not in its items.
pub(crate) fn with_kind(mut object: Value, resource: &ApiResource) -> Value {
    object["apiVersion"] = resource.api_version.as_str().into();
    object["kind"] = resource.kind.as_str().into();
    object
}

pub(crate) fn resource((group, version, kind): (&str, &str, &str)) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// The revision as a number. Resource versions are increasing numbers, since Kubernetes 1.35 by
/// contract.
fn revision(version: Option<&str>) -> u64 {
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// The key of the object in the copy.
fn place(kind: &str, object: &DynamicObject) -> Key {
    let mut key = key(kind, &object.metadata);
    let node = object.data.pointer("/spec/nodeName").and_then(Value::as_str);
    if kind == ATTACHMENT.2
        && let Some((scenario, _letter)) = node.and_then(|name| name.rsplit_once('-'))
    {
        scenario.clone_into(&mut key.0);
    }
    key
}

fn key(kind: &str, metadata: &ObjectMeta) -> Key {
    (
        metadata.namespace.clone().unwrap_or_default(),
        kind.to_owned(),
        metadata.name.clone().unwrap_or_default(),
    )
}
