//! The live view: the index, kept like the cluster by watching it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use kube::{Client, Config};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::model::claim::Claim;
use crate::model::cluster::{ClusterView, Lookup};
use crate::model::layered::Layered;
use crate::model::object::{Namespace, ObjectKind};
use crate::model::volume::Volume;
use crate::model::workload::{Workload, WorkloadKind};

use super::connect::{Access, ConnectError, client};
use super::index::Index;
use super::late::{Late, LateObjects, Question, is_name};
use super::shared::SharedIndex;
use super::status::{KindStatus, Link, Statuses};
use super::watch::follow;

/// Between two attempts to find out which cluster to talk to. A kubeconfig is a
/// local file: looking is cheap.
const CONFIG_PAUSE: Duration = Duration::from_secs(2);

/// Times a decision is made again because it asks for objects that the cache
/// lacks. What an object names it names at once, so the first time is enough
/// unless what is found leads on: a claim to its volume.
const ROUNDS: usize = 3;

/// A view of a cluster as it is now. Dropping it ends all watches.
///
/// It answers at once, from what it knows, whether or not the API server can be
/// reached; how old that is stands in [`LiveView::statuses`]. As a
/// [`ClusterView`] it asks nothing live; a review is judged through
/// [`LiveView::answer`], which does.
pub struct LiveView {
    shared: Arc<Shared>,
    late_objects: LateObjects,
    /// Dropping it ends the watches.
    tasks: JoinSet<()>,
}

struct Shared {
    index: Arc<SharedIndex>,
    statuses: Arc<Statuses>,
    client: OnceLock<Client>,
    /// Why not even an attempt to reach a cluster can begin.
    unreachable: Mutex<Option<String>>,
}

/// How fit a live view is to judge by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fitness {
    /// All facts are known and kept up to date.
    Current,
    /// All facts were known once, but some grow old.
    Stale(String),
    /// Some facts have not been heard of yet.
    Incomplete(String),
}

/// A live view that did not become complete.
#[derive(Debug, thiserror::Error)]
#[error("The cluster could not be read. {0}")]
pub struct SyncError(String);

enum Origin {
    Access(Access),
    Config(Box<Config>),
}

impl LiveView {
    /// Begins to follow the cluster behind `access` and returns at once. While
    /// there is no usable configuration, it is looked for again and again.
    ///
    /// Must be called within a tokio runtime.
    #[must_use]
    pub fn start(access: Access) -> Self {
        Self::begin(Origin::Access(access), Statuses::of(|_| true))
    }

    /// Begins to follow the cluster behind `config`, only the `kinds` that are
    /// asked for; what is of another kind stays `NotSynced`.
    ///
    /// Must be called within a tokio runtime.
    #[must_use]
    pub fn with_config(config: Config, kinds: impl Fn(ObjectKind) -> bool) -> Self {
        Self::begin(Origin::Config(Box::new(config)), Statuses::of(kinds))
    }

    fn begin(origin: Origin, statuses: Statuses) -> Self {
        let shared = Arc::new(Shared {
            index: Arc::default(),
            statuses: Arc::new(statuses),
            client: OnceLock::new(),
            unreachable: Mutex::new(None),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(run(origin, Arc::clone(&shared)));
        Self {
            shared,
            late_objects: LateObjects::default(),
            tasks,
        }
    }

    /// Judges by the view: `judge` is called, and where it met claims, volumes,
    /// namespaces or workloads that the cache lacks, those are asked for live and
    /// it is called again. What the API server has not answered by `deadline` is
    /// `NotSynced`.
    ///
    /// Where `judge` misses nothing, this never waits.
    pub async fn answer<T>(
        &self,
        deadline: Instant,
        mut judge: impl FnMut(&ReviewView<'_>) -> T,
    ) -> T {
        let mut view = self.for_review();
        for _ in 0..ROUNDS {
            let judged = judge(&view);
            if !view.has_missed() {
                return judged;
            }
            view.ask_missed(deadline).await;
        }
        judge(&view)
    }

    /// The view for one review, with nothing missed yet.
    #[must_use]
    pub fn for_review(&self) -> ReviewView<'_> {
        ReviewView {
            live: self,
            asked: HashMap::new(),
            missed: Mutex::new(Vec::new()),
        }
    }

    /// How it stands with each kind of object.
    #[must_use]
    pub fn statuses(&self) -> Vec<KindStatus> {
        self.shared
            .statuses
            .report(|kind| self.shared.index.count(kind))
    }

    /// Whether to judge by the view, with the sentence that says why not.
    #[must_use]
    pub fn fitness(&self) -> Fitness {
        let statuses = self.statuses();
        if let Some(reason) = self.unreachable() {
            return Fitness::Incomplete(reason);
        }
        if let Some(sentence) = sentence(&statuses, |status| !status.synced) {
            return Fitness::Incomplete(sentence);
        }
        match sentence(&statuses, |status| !status.is_current()) {
            Some(sentence) => Fitness::Stale(sentence),
            None => Fitness::Current,
        }
    }

    /// Waits until all kinds are known.
    ///
    /// # Errors
    ///
    /// When they are not by `deadline`, or never will be because the API server
    /// forbids one or does not serve it.
    pub async fn synced(&self, deadline: Instant) -> Result<(), SyncError> {
        let mut changes = self.shared.statuses.changes();
        loop {
            let statuses = self.statuses();
            let hopeless = |status: &KindStatus| {
                !status.synced && matches!(status.link, Link::Forbidden { .. } | Link::NotServed)
            };
            if let Some(sentence) = sentence(&statuses, hopeless) {
                return Err(SyncError(sentence));
            }
            let Some(lacking) = sentence(&statuses, |status| !status.synced) else {
                return Ok(());
            };
            if timeout_at(deadline, changes.changed()).await.is_err() {
                return Err(SyncError(self.unreachable().unwrap_or(lacking)));
            }
        }
    }

    /// Ends all watches and keeps what is known.
    #[must_use]
    pub fn into_index(mut self) -> Index {
        self.tasks.abort_all();
        self.shared.index.take()
    }

    fn unreachable(&self) -> Option<String> {
        lock(&self.shared.unreachable).clone()
    }
}

/// The sentence of the first kind in question, and how many more there are.
fn sentence(statuses: &[KindStatus], in_question: impl Fn(&KindStatus) -> bool) -> Option<String> {
    let mut kinds = statuses.iter().filter(|status| in_question(status));
    let first = kinds.next()?.to_string();
    Some(match kinds.count() {
        0 => first,
        1 => format!("{first} One more resource is not current."),
        more => format!("{first} {more} more resources are not current."),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Finds the cluster, then follows its resources until it is dropped.
async fn run(origin: Origin, shared: Arc<Shared>) {
    let client = loop {
        match connect(&origin, &shared.statuses).await {
            Ok(client) => break client,
            Err(error) => {
                let reason = error.to_string();
                let mut last = lock(&shared.unreachable);
                if last.as_ref() != Some(&reason) {
                    tracing::error!("{reason}");
                }
                *last = Some(reason);
            }
        }
        sleep(CONFIG_PAUSE).await;
    };
    *lock(&shared.unreachable) = None;
    let client = shared.client.get_or_init(|| client);
    let mut watches = JoinSet::new();
    for watched in shared.statuses.watched() {
        watches.spawn(follow(
            watched,
            client.clone(),
            Arc::clone(&shared.index),
            Arc::clone(&shared.statuses),
        ));
    }
    watches.join_all().await;
}

async fn connect(origin: &Origin, statuses: &Arc<Statuses>) -> Result<Client, ConnectError> {
    let config = match origin {
        Origin::Access(access) => access.config().await?,
        Origin::Config(config) => (**config).clone(),
    };
    client(config, statuses)
}

impl Layered for LiveView {
    fn beneath(&self) -> &dyn ClusterView {
        &*self.shared.index
    }
}

/// The view of one review: as the live one, and with the objects that were asked
/// for on its behalf.
pub struct ReviewView<'a> {
    live: &'a LiveView,
    asked: HashMap<Question, Lookup<Late>>,
    missed: Mutex<Vec<Question>>,
}

impl ReviewView<'_> {
    /// Whether an object was looked up that the cache lacks, so that what was
    /// judged by this view may not stand: ask for it, and judge again.
    #[must_use]
    pub fn has_missed(&self) -> bool {
        !lock(&self.missed).is_empty()
    }

    /// Asks the API server for the objects that were missed.
    pub async fn ask_missed(&mut self, deadline: Instant) {
        let missed = std::mem::take(&mut *lock(&self.missed));
        let answers = match self.live.shared.client.get() {
            Some(client) => self.live.late_objects.ask(client, missed, deadline).await,
            None => missed
                .into_iter()
                .map(|question| (question, Lookup::NotSynced))
                .collect(),
        };
        self.asked.extend(answers);
    }

    /// What is known or, where that is nothing, what was asked for; what was not
    /// is noted. `pick` takes the object out of the answer.
    fn known_or_asked<T>(
        &self,
        known: Lookup<Arc<T>>,
        (kind, namespace, name): (ObjectKind, &str, &str),
        pick: fn(&Late) -> Option<&Arc<T>>,
    ) -> Lookup<Arc<T>> {
        if matches!(known, Lookup::Found(_)) {
            return known;
        }
        let in_a_namespace = matches!(kind, ObjectKind::Claim | ObjectKind::Workload(_));
        if !is_name(name) || (in_a_namespace && !is_name(namespace)) {
            return Lookup::Absent;
        }
        let question = Question {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        };
        match self.asked.get(&question) {
            Some(Lookup::Found(late)) => pick(late).map_or(Lookup::NotSynced, |object| {
                Lookup::Found(Arc::clone(object))
            }),
            Some(Lookup::Absent) => Lookup::Absent,
            Some(Lookup::NotSynced) => Lookup::NotSynced,
            None => {
                let mut missed = lock(&self.missed);
                if !missed.contains(&question) {
                    missed.push(question);
                }
                Lookup::NotSynced
            }
        }
    }
}

impl Layered for ReviewView<'_> {
    fn beneath(&self) -> &dyn ClusterView {
        self.live
    }

    fn find_claim(&self, namespace: &str, name: &str) -> Lookup<Arc<Claim>> {
        let known = self.live.shared.index.claim(namespace, name);
        self.known_or_asked(
            known,
            (ObjectKind::Claim, namespace, name),
            |late| match late {
                Late::Claim(claim) => Some(claim),
                _ => None,
            },
        )
    }

    fn find_volume(&self, name: &str) -> Lookup<Arc<Volume>> {
        let known = self.live.shared.index.volume(name);
        self.known_or_asked(known, (ObjectKind::Volume, "", name), |late| match late {
            Late::Volume(volume) => Some(volume),
            _ => None,
        })
    }

    fn find_namespace(&self, name: &str) -> Lookup<Arc<Namespace>> {
        let known = self.live.shared.index.namespace(name);
        self.known_or_asked(
            known,
            (ObjectKind::Namespace, "", name),
            |late| match late {
                Late::Namespace(namespace) => Some(namespace),
                _ => None,
            },
        )
    }

    fn find_workload(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Lookup<Arc<Workload>> {
        let known = self.live.shared.index.workload(kind, namespace, name);
        let key = (ObjectKind::Workload(kind), namespace, name);
        self.known_or_asked(known, key, |late| match late {
            Late::Workload(workload) => Some(workload),
            _ => None,
        })
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
