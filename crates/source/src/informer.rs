//! A snapshot of a live cluster that watches keep up to date.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;
use kube::{Client, Config};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use engine::model::object::ObjectKind;
use engine::snapshot::{LiveLookups, Lookup, LookupRequest, Overlay, Snapshot, Usage, View};

use super::connect::{Access, listening_client, server_version};
use super::list::{Listed, Lists};
use super::lock;
use super::lookup::{Freshness, ObjectLookup};
use super::status::{KindStatus, Statuses};
use super::store::SnapshotStore;
use super::turns::{Asker, Turns, parts};
use super::watch::follow;

/// The time between two attempts to find a usable configuration. A kubeconfig is a local file, so
/// this is cheap.
const CONFIG_INTERVAL: Duration = Duration::from_secs(2);

/// The time between two questions for the API server's version.
const VERSION_INTERVAL: Duration = Duration::from_secs(600);

/// The number of times that a judgement is repeated because it misses objects. Usually once is
/// enough, unless the objects found refer to others, as a claim does to its volume.
const ROUNDS: usize = 3;

/// The number of rounds of a confirmation. Here outdated objects refer to others as well: a claim
/// to its volume, the volume to the nodes of its zone, and each deleted node to another one.
const CONFIRMING_ROUNDS: usize = 8;

/// The number of objects missing from the cache that one review may look up; the others stay
/// unknown. A review may name thousands.
pub const MAX_LOOKUPS: usize = 16;

/// The number of requests that one review may send to confirm its verdict.
pub const MAX_CONFIRMATIONS: usize = 192;

/// The number of judgements that are confirmed concurrently; further ones wait. Each may hold 500
/// objects of eight kinds, about 2 MB.
const MAX_CONFIRMING: usize = 16;

/// The number of those that may be of one namespace.
const CONFIRMING_OF_A_NAMESPACE: usize = 8;

/// The number of concurrent requests for single objects. Further ones wait within their deadline, so
/// a flood of reviews does not become a flood of requests.
const MAX_LOOKUPS_AT_ONCE: usize = 32;

/// The number of pages that are read concurrently. With pods and templates of 100 KB, far more than
/// people write, four pages take 40 MB.
const MAX_LISTS_AT_ONCE: usize = 4;

/// Keeps a snapshot of a cluster up to date. Dropping it ends all watches.
///
/// Judgements use the snapshot whether or not the API server can be reached;
/// [`Informer::statuses`] says how old it is.
pub struct Informer {
    shared: Arc<Shared>,
    for_known: Requests,
    for_strangers: Requests,
    confirming: Turns,
    /// Dropping it ends the watches.
    tasks: JoinSet<()>,
}

/// The requests for one class of clients, each kind of which is bounded.
struct Requests {
    lookups: ObjectLookup,
    lists: Lists,
}

impl Requests {
    fn new(lookups: usize, lists: usize) -> Self {
        Self { lookups: ObjectLookup::new(lookups), lists: Lists::new(lists) }
    }
}

struct Shared {
    cluster: SnapshotStore,
    statuses: Arc<Statuses>,
    client: OnceLock<Client>,
    paging: Semaphore,
    /// The reason why there is no client for the cluster.
    unreachable: Mutex<Option<String>>,
}

/// Whether the snapshot is fit for judgements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fitness {
    /// It is complete and up to date.
    Current,
    /// It was complete once, but some of it is no longer kept up to date.
    Stale(String),
    /// It has never been complete.
    Incomplete(String),
}

/// A reason why a judgement is not confirmed, as a clause such as "the API server did not confirm
/// Node a in time".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// There was no turn to confirm it.
    #[error("the guard was too busy with other reviews to confirm it")]
    NoTurn,
    /// The API server has not responded in time.
    #[error("the API server did not confirm {0} in time")]
    Unanswered(LookupRequest),
    /// The confirmation needs more requests than one review may send.
    #[error("the verdict depends on more objects than the guard asks the API server about")]
    TooMuch,
}

/// The snapshot did not become complete.
#[derive(Debug, thiserror::Error)]
#[error("The cluster could not be read. {0}")]
pub struct SyncError(String);

enum ConnectBy {
    Access(Access),
    Config(Box<Config>),
}

impl Informer {
    /// Starts to watch the `kinds` in the cluster behind `access`, and returns at once; other
    /// kinds stay `NotSynced`. Waits for a usable configuration if there is none. Objects in
    /// namespaces take about `limit` bytes at most ([`Snapshot::limited`]).
    ///
    /// Must be called within a tokio runtime.
    #[must_use]
    pub fn start(access: Access, kinds: impl Fn(ObjectKind) -> bool, limit: usize) -> Self {
        Self::begin(ConnectBy::Access(access), Statuses::new(kinds), Snapshot::new().limited(limit))
    }

    /// Starts to watch the `kinds` in the cluster behind `config`, as [`Informer::start`] does, but
    /// without a limit on memory.
    ///
    /// Must be called within a tokio runtime.
    #[must_use]
    pub fn with_config(config: Config, kinds: impl Fn(ObjectKind) -> bool) -> Self {
        Self::begin(ConnectBy::Config(Box::new(config)), Statuses::new(kinds), Snapshot::new())
    }

    fn begin(origin: ConnectBy, statuses: Statuses, cluster: Snapshot) -> Self {
        let shared = Arc::new(Shared {
            cluster: SnapshotStore::new(cluster),
            statuses: Arc::new(statuses),
            client: OnceLock::new(),
            paging: Semaphore::new(1),
            unreachable: Mutex::new(None),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(run(origin, Arc::clone(&shared)));
        let [known_lookups, lookups] = parts(MAX_LOOKUPS_AT_ONCE);
        let [known_lists, lists] = parts(MAX_LISTS_AT_ONCE);
        Self {
            shared,
            for_known: Requests::new(known_lookups, known_lists),
            for_strangers: Requests::new(lookups, lists),
            confirming: Turns::new(MAX_CONFIRMING, CONFIRMING_OF_A_NAMESPACE),
            tasks,
        }
    }

    /// The client that reads the cluster; `None` until it is connected.
    pub fn client(&self) -> Option<Client> {
        self.shared.client.get().cloned()
    }

    /// Calls `look` with the current snapshot, without any request to the API server.
    pub fn look<T>(&self, look: impl FnOnce(View<'_>) -> T) -> T {
        look(self.shared.cluster.read().view())
    }

    /// Calls `judge` with the snapshot. If `judge` misses claims, volumes, namespaces or workloads,
    /// those are looked up and `judge` is called again. An object without a response by `deadline`
    /// is `NotSynced`. The snapshot does not change during a call. At most `left` requests are sent,
    /// and their number is subtracted from it.
    ///
    /// If `judge` misses nothing, this never waits.
    pub async fn answer_within<T>(
        &self,
        asker: Asker<'_>,
        left: &mut usize,
        deadline: Instant,
        mut judge: impl FnMut(View<'_>) -> T,
    ) -> T {
        let mut lookups = LiveLookups::default();
        for _ in 0..ROUNDS {
            let judged = self.judge(&lookups, &mut judge);
            let mut requests = lookups.take_pending();
            if requests.is_empty() {
                return judged;
            }
            truncate(&mut requests, left, &mut lookups);
            self.send(asker, requests, Freshness::Any, &mut lookups, deadline).await;
        }
        self.judge(&lookups, &mut judge)
    }

    /// Judges again with facts that are no older than this call: every object that `judge` uses is
    /// looked up, and if one has changed, `judge` is called again with it. Returns the result and,
    /// unless it is confirmed in time, the reason for doubt.
    ///
    /// `deadline` is called twice: other judgements may be confirmed first until the first deadline,
    /// and the API server may answer until the second.
    ///
    /// If a kind has many objects, those that `judge` uses are looked up and the others only
    /// counted. At most `left` requests are sent.
    ///
    /// `decide` is called first, a judgement that needs fewer objects; `None` if it decides nothing.
    /// If its result is confirmed and that of `judge` is not, its result counts.
    pub async fn confirm<T>(
        &self,
        asker: Asker<'_>,
        mut left: usize,
        deadline: impl Fn() -> Instant,
        mut decide: impl FnMut(View<'_>) -> Option<T>,
        mut judge: impl FnMut(View<'_>) -> T,
    ) -> (T, Option<Doubt>) {
        let mut lookups = LiveLookups::confirming_everything();
        let Some(_turn) = self.confirming.take(asker, deadline()).await else {
            return (self.judge(&lookups, &mut judge), Some(Doubt::NoTurn));
        };
        let until = deadline();
        let (asked, left) = (&mut lookups, &mut left);
        let decided = match self.confirm_by(asker, &mut decide, asked, left, until).await {
            (Some(decided), None) => Some(decided),
            _ => None,
        };
        let (judged, doubt) = self.confirm_by(asker, &mut judge, asked, left, until).await;
        match decided {
            Some(decided) if doubt.is_some() => (decided, None),
            _ => (judged, doubt),
        }
    }

    /// Looks up what `judge` uses until nothing is left to look up.
    async fn confirm_by<T>(
        &self,
        asker: Asker<'_>,
        judge: &mut impl FnMut(View<'_>) -> T,
        lookups: &mut LiveLookups,
        left: &mut usize,
        deadline: Instant,
    ) -> (T, Option<Doubt>) {
        let mut judged = self.judge(lookups, judge);
        let mut requests = lookups.take_pending();
        let mut is_too_much = false;
        for _ in 0..CONFIRMING_ROUNDS {
            if requests.is_empty() {
                break;
            }
            is_too_much |= requests.len() > *left;
            truncate(&mut requests, left, lookups);
            self.send(asker, requests, Freshness::New, lookups, deadline).await;
            judged = self.judge(lookups, judge);
            requests = lookups.take_pending();
        }
        if is_too_much || !requests.is_empty() {
            return (judged, Some(Doubt::TooMuch));
        }
        let unanswered =
            lookups.unanswered().find(|request| !self.is_out_of_reach(request.kind)).cloned();
        (judged, unanswered.map(Doubt::Unanswered))
    }

    /// Sends the requests and adds the responses to `lookups`.
    async fn send(
        &self,
        asker: Asker<'_>,
        requests: Vec<LookupRequest>,
        freshness: Freshness,
        lookups: &mut LiveLookups,
        deadline: Instant,
    ) {
        let client = self.shared.client.get();
        let statuses = &self.shared.statuses;
        let (requests, unsent): (Vec<_>, Vec<_>) = requests
            .into_iter()
            .partition(|request| client.is_some() && statuses.may_look_up(request.kind));
        for request in unsent {
            lookups.found(request, Lookup::NotSynced);
        }
        let Some(client) = client else {
            return;
        };
        let (all, single): (Vec<_>, Vec<_>) =
            requests.into_iter().partition(|request| request.name.is_empty());
        let Requests { lookups: objects, lists } = match asker.stranger {
            None => &self.for_known,
            Some(_) => &self.for_strangers,
        };
        let lists = all.into_iter().map(async |request| {
            let cluster = &self.shared.cluster;
            let listed = lists.list(client, cluster, &request, deadline).await;
            (request, listed)
        });
        let (objects, lists) =
            tokio::join!(objects.look_up(client, single, freshness, deadline), join_all(lists));
        for (request, object) in objects {
            lookups.found(request, object);
        }
        for (request, listed) in lists {
            match listed {
                Listed::All(found) => lookups.listed(request, &found),
                Listed::Many { .. } => lookups.confirmed(request),
                Listed::Unconfirmed => lookups.found(request, Lookup::NotSynced),
            }
        }
    }

    /// Calls `judge` under the snapshot's lock; `judge` never waits.
    fn judge<T>(&self, lookups: &LiveLookups, judge: &mut impl FnMut(View<'_>) -> T) -> T {
        let overlay = Overlay { lookups: Some(lookups), ..Overlay::NOTHING };
        judge(View::new(&self.shared.cluster.read(), &overlay))
    }

    /// The status of each kind of object that the API server serves.
    pub fn statuses(&self) -> Vec<KindStatus> {
        let mut statuses = self.all_statuses();
        statuses.retain(|status| !status.is_not_installed());
        statuses
    }

    fn all_statuses(&self) -> Vec<KindStatus> {
        let cluster = self.shared.cluster.read();
        self.shared.statuses.report(|kind| cluster.count(kind))
    }

    /// Whether objects of this kind cannot be read at all: verdicts do without them, and no request
    /// changes that.
    fn is_out_of_reach(&self, kind: ObjectKind) -> bool {
        let refused = |status: &KindStatus| {
            status.kind == kind && !status.synced && status.is_refused() && !is_required(kind)
        };
        !self.shared.statuses.may_look_up(kind) || self.all_statuses().iter().any(refused)
    }

    /// The memory that the snapshot's objects in namespaces take.
    pub fn usage(&self) -> Usage {
        self.shared.cluster.read().usage()
    }

    /// The number of objects that were looked up by name, because the cache lacked them or may have
    /// been outdated, by result as in metrics.
    pub fn lookup_counts(&self) -> [(&'static str, u64); 3] {
        let mut counts = self.for_known.lookups.counts();
        let strangers = self.for_strangers.lookups.counts();
        for ((_, count), (_, further)) in counts.iter_mut().zip(strangers) {
            *count += further;
        }
        counts
    }

    /// Whether the snapshot is fit for judgements and, if it is not, the reason as a sentence.
    pub fn fitness(&self) -> Fitness {
        let statuses = self.statuses();
        if let Some(reason) = self.unreachable() {
            return Fitness::Incomplete(reason);
        }
        let is_missing = |status: &KindStatus| {
            !status.synced && (!status.is_refused() || is_required(status.kind))
        };
        if let Some(sentence) = sentence(&statuses, is_missing) {
            return Fitness::Incomplete(sentence);
        }
        match sentence(&statuses, |status| !status.is_current()) {
            Some(sentence) => Fitness::Stale(sentence),
            None => Fitness::Current,
        }
    }

    /// Waits until all kinds are synced.
    ///
    /// # Errors
    ///
    /// Fails if they are not synced by `deadline`, or never will be because the API server forbids
    /// a kind or does not serve it.
    pub async fn synced(&self, deadline: Instant) -> Result<(), SyncError> {
        let mut changes = self.shared.statuses.changes();
        loop {
            let statuses = self.statuses();
            let is_refused = |status: &KindStatus| !status.synced && status.is_refused();
            if let Some(sentence) = sentence(&statuses, is_refused) {
                return Err(SyncError(sentence));
            }
            let Some(missing) = sentence(&statuses, |status| !status.synced) else {
                return Ok(());
            };
            if timeout_at(deadline, changes.changed()).await.is_err() {
                return Err(SyncError(self.unreachable().unwrap_or(missing)));
            }
        }
    }

    /// Ends all watches and returns the snapshot.
    pub fn into_cluster(mut self) -> Snapshot {
        self.tasks.abort_all();
        std::mem::take(&mut self.shared.cluster.write())
    }

    fn unreachable(&self) -> Option<String> {
        lock(&self.shared.unreachable).clone()
    }
}

/// Drops the requests beyond the first `left`; their objects stay unknown.
fn truncate(requests: &mut Vec<LookupRequest>, left: &mut usize, lookups: &mut LiveLookups) {
    for request in requests.split_off(requests.len().min(*left)) {
        lookups.found(request, Lookup::NotSynced);
    }
    *left -= requests.len();
}

/// Whether nearly every verdict depends on the kind. A verdict that depends on another kind
/// mentions it if the API server refuses to list that kind.
const fn is_required(kind: ObjectKind) -> bool {
    kind.is_built_in()
        && matches!(
            kind,
            ObjectKind::Claim
                | ObjectKind::Volume
                | ObjectKind::StorageClass
                | ObjectKind::Workload(_)
        )
}

/// A sentence with the status of the first of the `selected` kinds and the resources of the others.
fn sentence(statuses: &[KindStatus], selected: impl Fn(&KindStatus) -> bool) -> Option<String> {
    let mut kinds = statuses.iter().filter(|status| selected(status));
    let first = kinds.next()?.to_string();
    let others: Vec<&str> = kinds.map(|status| status.kind.plural()).collect();
    Some(if others.is_empty() {
        first
    } else {
        format!("{first} Also not current: {}.", others.join(", "))
    })
}

/// Connects to the cluster, then watches its resources until it is dropped.
async fn run(origin: ConnectBy, shared: Arc<Shared>) {
    let client = loop {
        let config = match &origin {
            ConnectBy::Access(access) => access.config().await,
            ConnectBy::Config(config) => Ok((**config).clone()),
        };
        match config.and_then(|config| listening_client(config, &shared.statuses)) {
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
        sleep(CONFIG_INTERVAL).await;
    };
    *lock(&shared.unreachable) = None;
    let client = shared.client.get_or_init(|| client);
    let mut watches = JoinSet::new();
    {
        let (client, shared) = (client.clone(), Arc::clone(&shared));
        watches.spawn(async move { follow_version(&client, &shared.cluster).await });
    }
    for kind in shared.statuses.watched() {
        let (client, shared) = (client.clone(), Arc::clone(&shared));
        watches.spawn(async move {
            follow(kind, client, &shared.cluster, &shared.statuses, &shared.paging).await;
        });
    }
    watches.join_all().await;
}

/// Keeps the version of the API server up to date, because an upgrade restarts it and not this
/// program.
async fn follow_version(client: &Client, cluster: &SnapshotStore) {
    let mut last = None;
    loop {
        let interval = match server_version(client).await {
            Ok((server, remark)) => {
                cluster.write().server = server;
                if last != remark {
                    remark.iter().for_each(|remark| tracing::warn!("{remark}"));
                    last = remark;
                }
                VERSION_INTERVAL
            }
            Err(_) => CONFIG_INTERVAL,
        };
        sleep(interval).await;
    }
}

#[cfg(test)]
#[path = "informer_tests.rs"]
mod tests;
