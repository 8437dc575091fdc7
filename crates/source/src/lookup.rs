//! Live look-ups of objects that the cache lacks or may have outdated.
//!
//! `kubectl apply -f` sends a namespace, a claim, its Deployment and an autoscaler
//! milliseconds apart, and a cache is always a little behind. A judgement is pure and cannot
//! wait, so it is made twice: the first one notes the objects it misses, those are looked up
//! concurrently, and the second one finds them. Most reviews miss nothing and pay nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use engine::snapshot::{Lookup, LookupRequest, StoredObject};

use super::resource::{RawObject, access, api_resource};
use super::single_flight::SingleFlight;

type Found = Lookup<StoredObject>;

/// Looks up single objects; concurrent look-ups of the same object share one request.
///
/// No object is remembered: that would be another cache, as outdated as the first.
pub(super) struct ObjectLookup {
    single_flight: SingleFlight<Found>,
    concurrency: Semaphore,
    // The numbers of look-ups, by result.
    found: AtomicU64,
    absent: AtomicU64,
    unanswered: AtomicU64,
}

/// The permitted age of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    /// The response to a request in flight is good enough.
    Any,
    /// The request must begin after the call.
    New,
}

impl ObjectLookup {
    /// Looks up this number of objects at a time.
    pub(super) fn new(at_once: usize) -> Self {
        Self {
            single_flight: SingleFlight::default(),
            concurrency: Semaphore::new(at_once),
            found: AtomicU64::default(),
            absent: AtomicU64::default(),
            unanswered: AtomicU64::default(),
        }
    }

    /// The objects as the API server has them; `NotSynced` without a response by `deadline`.
    pub(super) async fn look_up(
        &self,
        client: &Client,
        requests: Vec<LookupRequest>,
        freshness: Freshness,
        deadline: Instant,
    ) -> Vec<(LookupRequest, Found)> {
        let found = requests.into_iter().map(|request| async move {
            let found = timeout_at(deadline, self.look_up_one(client, &request, freshness))
                .await
                .unwrap_or(Lookup::NotSynced);
            let count = match found {
                Lookup::Found(_) => &self.found,
                Lookup::Absent => &self.absent,
                Lookup::NotSynced => &self.unanswered,
            };
            count.fetch_add(1, Ordering::Relaxed);
            (request, found)
        });
        join_all(found).await
    }

    /// The number of objects that were looked up, by result as in metrics.
    pub(super) fn counts(&self) -> [(&'static str, u64); 3] {
        [("found", &self.found), ("absent", &self.absent), ("unanswered", &self.unanswered)]
            .map(|(result, count)| (result, count.load(Ordering::Relaxed)))
    }

    async fn look_up_one(
        &self,
        client: &Client,
        request: &LookupRequest,
        freshness: Freshness,
    ) -> Found {
        // The object may have been created just after another caller's request.
        let may_be_older = |found: &Found| freshness == Freshness::Any && *found != Lookup::Absent;
        let send = || async {
            // The semaphore is never closed.
            let _permit = self.concurrency.acquire().await.ok();
            get(client, request).await
        };
        self.single_flight.response(request, may_be_older, send).await
    }
}

async fn get(client: &Client, request: &LookupRequest) -> Found {
    let kind = request.kind;
    let objects: Api<RawObject> = access(client, &request.namespace, &api_resource(kind));
    let error = match objects.get_opt(&request.name).await {
        Ok(None) => return Lookup::Absent,
        Ok(Some(raw)) => match raw.read(kind) {
            Ok(object) => {
                return StoredObject::of(object).map_or(Lookup::NotSynced, Lookup::Found);
            }
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    tracing::warn!(
        resource = kind.plural(), namespace = %request.namespace, name = %request.name, error,
        "An object could not be looked up."
    );
    Lookup::NotSynced
}
