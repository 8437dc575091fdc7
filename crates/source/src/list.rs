//! Checks with the API server that the cache has all objects of a kind.

use std::sync::Arc;
use std::time::Duration;

use kube::api::ListParams;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::resource::{RawObject, access, api_resource, field_selector};
use super::single_flight::SingleFlight;
use super::store::SnapshotStore;
use engine::model::object::ObjectKind;
use engine::model::workload::WorkloadKind;
use engine::snapshot::{LookupRequest, StoredObject};

/// The largest number of objects that are read; larger numbers are only counted.
const MAX_READ: usize = 500;

/// The number of objects in one page, which is in memory as text while it is read.
const PAGE: u32 = 50;

/// The page size for nodes: they are large, and those that matter are looked up one by one.
const PAGE_OF_NODES: u32 = 1;

/// The time between two counts while a watch is behind.
const INTERVAL: Duration = Duration::from_millis(50);

/// The objects of a kind according to the API server.
#[derive(Clone)]
pub(super) enum Listed {
    /// All objects.
    All(Arc<[StoredObject]>),
    /// There are too many objects to read. If [`Lists::list`] returns this, the cache has as many,
    /// or cannot be compared.
    Many {
        /// The number of objects, if the API server reports it.
        count: Option<usize>,
    },
    /// The API server has not responded in time, or the cache has stayed behind.
    Unconfirmed,
}

/// Lists all objects of a kind; concurrent reviews share one list.
pub(super) struct Lists {
    single_flight: SingleFlight<Listed>,
    concurrency: Semaphore,
}

impl Lists {
    /// Reads this number of pages at a time.
    pub(super) fn new(at_once: usize) -> Self {
        Self { single_flight: SingleFlight::default(), concurrency: Semaphore::new(at_once) }
    }

    /// Lists all objects of a kind or, if there are too many, waits until the cache has as many.
    /// Trusts the cache if it cannot be compared: in one namespace, and for kinds that the cache
    /// keeps only in part. If objects are left out of the cache, the list would take the memory that
    /// this saves: objects of all namespaces are then counted, those of one are not confirmed.
    pub(super) async fn list(
        &self,
        client: &Client,
        cluster: &SnapshotStore,
        request: &LookupRequest,
        deadline: Instant,
    ) -> Listed {
        let namespace = &request.namespace;
        if cluster.read().leaves_out(namespace) {
            return Listed::Unconfirmed;
        }
        let is_limited = request.kind.is_namespaced()
            && namespace.is_empty()
            && cluster.read().usage().left_out > 0;
        let read = || self.read(client, request, is_limited);
        let settled = async {
            loop {
                let listed = self.single_flight.response(request, |_| false, &read).await;
                let is_behind = match listed {
                    Listed::Many { count: Some(count) } if is_counted(request) => {
                        cluster.read().count(request.kind) != count
                    }
                    _ => false,
                };
                if !is_behind {
                    return listed;
                }
                sleep(INTERVAL).await;
            }
        };
        timeout_at(deadline, settled).await.unwrap_or(Listed::Unconfirmed)
    }

    async fn read(&self, client: &Client, request: &LookupRequest, is_limited: bool) -> Listed {
        self.pages(client, request, is_limited).await.unwrap_or_else(|error| {
            tracing::warn!(resource = request.kind.plural(), %error, "The objects could not be counted.");
            Listed::Unconfirmed
        })
    }

    async fn pages(
        &self,
        client: &Client,
        request: &LookupRequest,
        is_limited: bool,
    ) -> Result<Listed, kube::Error> {
        let kind = request.kind;
        let objects: Api<RawObject> = access(client, &request.namespace, &api_resource(kind));
        let (page_size, most) = match kind {
            ObjectKind::Node => (PAGE_OF_NODES, 1),
            _ if is_limited => (1, 1),
            // Their number cannot be compared, so more pages would prove nothing.
            ObjectKind::Workload(WorkloadKind::ReplicaSet | WorkloadKind::Pod) => {
                (PAGE, PAGE as usize)
            }
            _ => (PAGE, MAX_READ),
        };
        let mut parameters = ListParams::default().limit(page_size);
        parameters.field_selector = field_selector(kind);
        let mut seen = 0;
        let mut read = Vec::new();
        loop {
            // The semaphore is never closed.
            let _permit = self.concurrency.acquire().await.ok();
            let page = objects.list(&parameters).await?;
            seen += page.items.len();
            let facts = |raw: &RawObject| raw.read(kind).ok().and_then(StoredObject::of);
            read.extend(page.items.iter().filter_map(facts));
            let Some(next) = page.metadata.continue_.filter(|token| !token.is_empty()) else {
                return Ok(Listed::All(read.into()));
            };
            // With a selector, the API server does not count the remaining objects.
            let count = page
                .metadata
                .remaining_item_count
                .and_then(|more| Some(seen + usize::try_from(more).ok()?));
            if count.unwrap_or(seen) >= most {
                return Ok(Listed::Many { count });
            }
            parameters.continue_token = Some(next);
        }
    }
}

/// Whether the cache has all objects of the API server: it leaves out pods, Jobs and ReplicaSets
/// that belong to other workloads.
fn is_counted(request: &LookupRequest) -> bool {
    use WorkloadKind::{Job, Pod, ReplicaSet};
    request.namespace.is_empty()
        && !matches!(request.kind, ObjectKind::Workload(Job | Pod | ReplicaSet))
}
