//! The live view: the index, kept like the cluster by watching it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use kube::{Client, Config};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use engine::model::object::ObjectKind;
use engine::snapshot::{LiveLookups, Lookup, LookupRequest, Overlay, Snapshot, View};

use super::connect::{Access, ConnectError, listening_client};
use super::limiter::Limiter;
use super::list::{Listed, Lists};
use super::lookup::{Age, ObjectLookup};
use super::status::{KindStatus, Statuses};
use super::store::SnapshotStore;
use super::watch::follow;

/// Between two attempts to find out which cluster to talk to. A kubeconfig is a
/// local file: looking is cheap.
const CONFIG_PAUSE: Duration = Duration::from_secs(2);

/// Times a decision is made again because it asks for objects that the cache
/// lacks. What an object names it names at once, so the first time is enough
/// unless what is found leads on: a claim to its volume.
const ROUNDS: usize = 3;

/// The same for what is confirmed, where a cache that is behind leads on as well: a claim
/// to its volume, that to the nodes of its zone, and each of those that is gone to another.
const CONFIRMING_ROUNDS: usize = 8;

/// Objects that one review may ask for because the cache lacks them; the rest of
/// what it names stays unknown. A review may name thousands.
pub const MOST_LATE: usize = 16;

/// What one review may ask where its result is worth it.
pub const MOST_CONFIRMED: usize = 192;

/// Judgements that are confirmed at the same time; further ones wait their turn. Each may
/// hold the facts of 500 objects of eight kinds, some 2 MB.
const CONFIRMED_AT_ONCE: usize = 16;

/// How many of them may be about one namespace.
const OF_A_NAMESPACE: usize = 12;

/// A view of a cluster as it is now. Dropping it ends all watches.
///
/// It answers at once, from what it knows, whether or not the API server can be
/// reached; how old that is stands in [`Informer::statuses`].
pub struct Informer {
    shared: Arc<Shared>,
    late_objects: ObjectLookup,
    lists: Lists,
    turns: Limiter,
    /// Dropping it ends the watches.
    tasks: JoinSet<()>,
}

struct Shared {
    cluster: Arc<SnapshotStore>,
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

/// Why a judgement is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The API server has not answered this in time.
    Unanswered(LookupRequest),
    /// More would have to be asked than one review may ask.
    TooMuch,
}

/// As in "the API server did not confirm Node a in time".
impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered(question) => {
                write!(f, "the API server did not confirm {question} in time")
            }
            Self::TooMuch => write!(
                f,
                "the verdict depends on more objects than the guard asks the API server about"
            ),
        }
    }
}

/// A live view that did not become complete.
#[derive(Debug, thiserror::Error)]
#[error("The cluster could not be read. {0}")]
pub struct SyncError(String);

enum ConnectBy {
    Access(Access),
    Config(Box<Config>),
}

impl Informer {
    /// Begins to follow the cluster behind `access`, only the `kinds` that are asked
    /// for, and returns at once; what is of another kind stays `NotSynced`. While there
    /// is no usable configuration, it is looked for again and again.
    ///
    /// Must be called within a tokio runtime.
    #[must_use]
    pub fn start(access: Access, kinds: impl Fn(ObjectKind) -> bool) -> Self {
        Self::begin(ConnectBy::Access(access), Statuses::of(kinds))
    }

    /// The same for the cluster behind `config`.
    ///
    /// Must be called within a tokio runtime.
    #[must_use]
    pub fn with_config(config: Config, kinds: impl Fn(ObjectKind) -> bool) -> Self {
        Self::begin(ConnectBy::Config(Box::new(config)), Statuses::of(kinds))
    }

    fn begin(origin: ConnectBy, statuses: Statuses) -> Self {
        let shared = Arc::new(Shared {
            cluster: Arc::default(),
            statuses: Arc::new(statuses),
            client: OnceLock::new(),
            unreachable: Mutex::new(None),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(run(origin, Arc::clone(&shared)));
        Self {
            shared,
            late_objects: ObjectLookup::default(),
            lists: Lists::default(),
            turns: Limiter::new(CONFIRMED_AT_ONCE, OF_A_NAMESPACE),
            tasks,
        }
    }

    /// The client with which the cluster is followed; `None` until it is known which
    /// cluster that is.
    #[must_use]
    pub fn client(&self) -> Option<Client> {
        self.shared.client.get().cloned()
    }

    /// What `look` makes of what is known now. Nothing is asked for.
    pub fn look<T>(&self, look: impl FnOnce(View<'_>) -> T) -> T {
        look(self.shared.cluster.read().view())
    }

    /// Judges by the view: `judge` is called, and where it met claims, volumes,
    /// namespaces or workloads that the cache lacks, those are asked for live and
    /// it is called again. What the API server has not answered by `deadline` is
    /// `NotSynced`. All answers of one call are of one moment.
    ///
    /// Where `judge` misses nothing, this never waits.
    pub async fn answer<T>(&self, deadline: Instant, judge: impl FnMut(View<'_>) -> T) -> T {
        self.answer_within(&mut { MOST_LATE }, deadline, judge)
            .await
    }

    /// The same with so many questions as are `left`, of which those asked are taken.
    pub async fn answer_within<T>(
        &self,
        left: &mut usize,
        deadline: Instant,
        mut judge: impl FnMut(View<'_>) -> T,
    ) -> T {
        let mut lookups = LiveLookups::default();
        for _ in 0..ROUNDS {
            let judged = self.judge(&lookups, &mut judge);
            let mut questions = lookups.take_open();
            if questions.is_empty() {
                return judged;
            }
            keep_few(&mut questions, left, &mut lookups);
            self.ask(questions, Age::Any, &mut lookups, deadline).await;
        }
        self.judge(&lookups, &mut judge)
    }

    /// Judges once more by facts that are no older than this call: whatever
    /// `judge` uses is asked for, and where it is another by now, `judge` is
    /// called with that. Beside the result stands why it is not confirmed by `deadline`,
    /// where it is not.
    ///
    /// Of a kind with many objects, those that `judge` uses are asked for, and
    /// whether there are as many as the cache knows; `left` questions in all. Who does
    /// not get a turn by `deadline` has no answer either.
    pub async fn confirm<T>(
        &self,
        mut left: usize,
        deadline: Instant,
        mut judge: impl FnMut(View<'_>) -> T,
    ) -> (T, Option<Doubt>) {
        let mut lookups = LiveLookups::confirming_everything();
        let mut judged = self.judge(&lookups, &mut judge);
        let mut questions = lookups.take_open();
        let mut namespaces = questions.iter().map(|it| it.namespace.as_str());
        let namespace = namespaces.find(|it| !it.is_empty()).unwrap_or_default();
        let Ok(_turn) = timeout_at(deadline, self.turns.take(namespace)).await else {
            return (judged, questions.into_iter().next().map(Doubt::Unanswered));
        };
        let mut is_too_much = false;
        for _ in 0..CONFIRMING_ROUNDS {
            if questions.is_empty() {
                break;
            }
            is_too_much |= questions.len() > left;
            keep_few(&mut questions, &mut left, &mut lookups);
            self.ask(questions, Age::New, &mut lookups, deadline).await;
            judged = self.judge(&lookups, &mut judge);
            questions = lookups.take_open();
        }
        if is_too_much || !questions.is_empty() {
            return (judged, Some(Doubt::TooMuch));
        }
        let mut unanswered = lookups.unanswered();
        let unanswered = unanswered.find(|it| !self.is_out_of_reach(it.kind));
        (judged, unanswered.cloned().map(Doubt::Unanswered))
    }

    async fn ask(
        &self,
        questions: Vec<LookupRequest>,
        age: Age,
        lookups: &mut LiveLookups,
        deadline: Instant,
    ) {
        let Some(client) = self.shared.client.get() else {
            for question in questions {
                lookups.found(question, Lookup::NotSynced);
            }
            return;
        };
        let mut single = Vec::new();
        let mut all = Vec::new();
        for question in questions {
            match (
                self.shared.statuses.may_ask(question.kind),
                question.name.is_empty(),
            ) {
                (false, _) => lookups.found(question, Lookup::NotSynced),
                (true, false) => single.push(question),
                (true, true) => all.push(question),
            }
        }
        let lists = all.into_iter().map(async |question| {
            let cluster = &self.shared.cluster;
            let listed = self.lists.ask(client, cluster, &question, deadline).await;
            (question, listed)
        });
        let (objects, lists) = tokio::join!(
            self.late_objects.ask(client, single, age, deadline),
            join_all(lists)
        );
        for (question, object) in objects {
            lookups.found(question, object);
        }
        for (question, listed) in lists {
            match listed {
                Listed::All(objects) => lookups.listed(question, &objects),
                Listed::Confirmed => lookups.confirmed(question),
                Listed::Unanswered => lookups.found(question, Lookup::NotSynced),
            }
        }
    }

    /// Nobody may change the cluster as long as `judge` runs, and it never waits.
    fn judge<T>(&self, lookups: &LiveLookups, judge: &mut impl FnMut(View<'_>) -> T) -> T {
        let beside = Overlay {
            lookups: Some(lookups),
            ..Overlay::NOTHING
        };
        judge(View::new(&self.shared.cluster.read(), &beside))
    }

    /// How it stands with each kind of object.
    #[must_use]
    pub fn statuses(&self) -> Vec<KindStatus> {
        let cluster = self.shared.cluster.read();
        self.shared.statuses.report(|kind| cluster.count(kind))
    }

    /// Whether objects of that kind were never seen and may not be: a verdict does without
    /// them, and no question changes that.
    fn is_out_of_reach(&self, kind: ObjectKind) -> bool {
        let refused = |status: &KindStatus| {
            status.kind == kind && !status.synced && status.is_refused() && !is_required(kind)
        };
        !self.shared.statuses.may_ask(kind) || self.statuses().iter().any(refused)
    }

    /// How many objects the API server was asked for by name, because the cache lacked
    /// them or might have been behind, by what came of it: a name for metrics.
    #[must_use]
    pub fn late_lookups(&self) -> [(&'static str, u64); 3] {
        self.late_objects.counts()
    }

    /// Whether to judge by the view, with the sentence that says why not.
    #[must_use]
    pub fn fitness(&self) -> Fitness {
        let statuses = self.statuses();
        if let Some(reason) = self.unreachable() {
            return Fitness::Incomplete(reason);
        }
        let lacks = |status: &KindStatus| {
            !status.synced && (!status.is_refused() || is_required(status.kind))
        };
        if let Some(sentence) = sentence(&statuses, lacks) {
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
            let hopeless = |status: &KindStatus| !status.synced && status.is_refused();
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
    pub fn into_cluster(mut self) -> Snapshot {
        self.tasks.abort_all();
        self.shared.cluster.take()
    }

    fn unreachable(&self) -> Option<String> {
        lock(&self.shared.unreachable).clone()
    }
}

/// Keeps as many questions as are left to be asked; the others stay without an answer.
fn keep_few(questions: &mut Vec<LookupRequest>, left: &mut usize, lookups: &mut LiveLookups) {
    for question in questions.split_off(questions.len().min(*left)) {
        lookups.found(question, Lookup::NotSynced);
    }
    *left -= questions.len();
}

/// Whether nearly every verdict depends on the kind. What depends on another is
/// not known where the API server does not let it be read.
const fn is_required(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::Claim | ObjectKind::Volume | ObjectKind::StorageClass | ObjectKind::Workload(_)
    )
}

/// The sentence of the first kind in question, and the resources of the others.
fn sentence(statuses: &[KindStatus], in_question: impl Fn(&KindStatus) -> bool) -> Option<String> {
    let mut kinds = statuses.iter().filter(|status| in_question(status));
    let first = kinds.next()?.to_string();
    let others: Vec<&str> = kinds.map(|status| status.resource).collect();
    Some(match others.is_empty() {
        true => first,
        false => format!("{first} Not current either: {}.", others.join(", ")),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Finds the cluster, then follows its resources until it is dropped.
async fn run(origin: ConnectBy, shared: Arc<Shared>) {
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
            Arc::clone(&shared.cluster),
            Arc::clone(&shared.statuses),
        ));
    }
    watches.join_all().await;
}

async fn connect(origin: &ConnectBy, statuses: &Arc<Statuses>) -> Result<Client, ConnectError> {
    let config = match origin {
        ConnectBy::Access(access) => access.config().await?,
        ConnectBy::Config(config) => (**config).clone(),
    };
    listening_client(config, statuses)
}

#[cfg(test)]
#[path = "informer_tests.rs"]
mod tests;
