//! Whether the cache knows all objects of a kind, asked of the API server.

use std::sync::Arc;
use std::time::Duration;

use kube::api::ListParams;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::resource::{RawObject, WATCHED, Watched};
use super::single_flight::SingleFlight;
use super::store::SnapshotStore;
use engine::model::object::ObjectKind;
use engine::model::workload::WorkloadKind;
use engine::snapshot::{LookupRequest, StoredObject};

/// So many objects and more are counted and not read.
const MOST_READ: usize = 500;

/// Objects in one page, which is held as text while it is read.
const PAGE: u32 = 50;

/// Nodes are large, and those that matter are asked for one by one.
const PAGE_OF_NODES: u32 = 1;

/// Pages that are read at the same time; further ones wait their turn. With pods and
/// templates of 100 KB, far more than people write, four pages take 40 MB.
const AT_ONCE: usize = 4;

/// Between two counts, while a watch is behind.
const PAUSE: Duration = Duration::from_millis(50);

/// What the API server says of all objects of a kind.
pub(super) enum Listed {
    /// These are all.
    All(Arc<[StoredObject]>),
    /// They are many, and as many as the cache knows.
    Confirmed,
    /// It has not answered in time, or the cache was behind all the time.
    Unanswered,
}

/// One answer to the question for all objects of a kind.
#[derive(Clone)]
enum Answer {
    All(Arc<[StoredObject]>),
    /// They are too many to be read.
    Many {
        /// How many, if the API server says so.
        count: Option<usize>,
    },
    None,
}

/// Asks the API server for all objects of a kind, once for all reviews that want to know
/// it at the same time.
pub(super) struct Lists {
    single_flight: SingleFlight<Answer>,
    limiter: Semaphore,
}

impl Default for Lists {
    fn default() -> Self {
        Self {
            single_flight: SingleFlight::default(),
            limiter: Semaphore::new(AT_ONCE),
        }
    }
}

impl Lists {
    /// All objects of a kind as they are from now on, or waits until the cache has caught
    /// up with their number. Where they are many and cannot be counted (in one namespace,
    /// or where the cache keeps only some of them), the cache is believed.
    pub(super) async fn ask(
        &self,
        client: &Client,
        cluster: &SnapshotStore,
        question: &LookupRequest,
        deadline: Instant,
    ) -> Listed {
        let Some(watched) = WATCHED.iter().find(|it| it.kind == question.kind) else {
            return Listed::Unanswered;
        };
        let ask = async || {
            let never = |_: &Answer| false;
            let read = || self.read(client, watched, question);
            self.single_flight.ask(question, never, read).await
        };
        let settled = async {
            loop {
                let count = match ask().await {
                    Answer::All(objects) => return Listed::All(objects),
                    Answer::Many { count } => count,
                    Answer::None => return Listed::Unanswered,
                };
                if !is_counted(watched, question)
                    || count.is_none_or(|count| cluster.read().count(watched.kind) == count)
                {
                    return Listed::Confirmed;
                }
                sleep(PAUSE).await;
            }
        };
        let settled = timeout_at(deadline, settled).await;
        settled.unwrap_or(Listed::Unanswered)
    }

    async fn read(&self, client: &Client, watched: &Watched, question: &LookupRequest) -> Answer {
        match self.pages(client, watched, question).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(resource = watched.plural(), %error, "The objects could not be counted.");
                Answer::None
            }
        }
    }

    async fn pages(
        &self,
        client: &Client,
        watched: &Watched,
        question: &LookupRequest,
    ) -> Result<Answer, kube::Error> {
        let resource = watched.api_resource();
        let objects: Api<RawObject> = if question.namespace.is_empty() {
            Api::all_with(client.clone(), &resource)
        } else {
            Api::namespaced_with(client.clone(), &question.namespace, &resource)
        };
        let (page, most) = match watched.kind {
            ObjectKind::Node => (PAGE_OF_NODES, 1),
            _ => (PAGE, MOST_READ),
        };
        let mut parameters = ListParams::default().limit(page);
        parameters.label_selector = watched.label_selector.map(str::to_owned);
        let mut seen = 0;
        let mut read = Vec::new();
        loop {
            let Ok(_turn) = self.limiter.acquire().await else {
                return Ok(Answer::None);
            };
            let page = objects.list(&parameters).await?;
            seen += page.items.len();
            let facts = |raw: &RawObject| raw.read(watched.kind).ok().and_then(StoredObject::of);
            read.extend(page.items.iter().filter_map(facts));
            let Some(next) = page.metadata.continue_.filter(|token| !token.is_empty()) else {
                return Ok(Answer::All(read.into()));
            };
            // Not said of those that a label selects.
            let more = page.metadata.remaining_item_count;
            let count = more.and_then(|more| Some(seen + usize::try_from(more).ok()?));
            if count.unwrap_or(seen) >= most {
                return Ok(Answer::Many { count });
            }
            parameters.continue_token = Some(next);
        }
    }
}

/// Whether the cache's number is that of the API server: it keeps no pods, Jobs
/// and ReplicaSets that others made.
fn is_counted(watched: &Watched, question: &LookupRequest) -> bool {
    use WorkloadKind::{Job, Pod, ReplicaSet};
    question.namespace.is_empty()
        && !matches!(watched.kind, ObjectKind::Workload(Job | Pod | ReplicaSet))
}
