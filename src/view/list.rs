//! Whether the cache knows all objects of a kind, asked of the API server.

use std::time::Duration;

use kube::api::ListParams;
use kube::{Api, Client};
use tokio::time::{Instant, sleep, timeout_at};

use super::resource::{RawObject, WATCHED, Watched};
use super::shared::SharedCluster;
use crate::cluster::{Question, Stored};
use crate::model::object::ObjectKind;
use crate::model::workload::WorkloadKind;

/// Objects that are read rather than counted.
const READ: u32 = 500;

/// Nodes are large, and those that matter are asked for one by one.
const READ_NODES: u32 = 1;

/// Between two counts, while a watch is behind.
const PAUSE: Duration = Duration::from_millis(50);

/// What the API server says of all objects of a kind.
pub(super) enum Listed {
    /// These are all.
    All(Vec<Stored>),
    /// They are many, and as many as the cache knows.
    Confirmed,
    /// It has not answered in time, or the cache was behind all the time.
    Unanswered,
}

/// Asks for all objects of a kind, or waits until the cache has caught up with
/// their number. Where they are many and cannot be counted (in one namespace, or
/// where the cache keeps only some of them), the cache is believed.
pub(super) async fn list(
    client: &Client,
    cluster: &SharedCluster,
    question: &Question,
    deadline: Instant,
) -> Listed {
    let Some(watched) = WATCHED.iter().find(|it| it.kind == question.kind) else {
        return Listed::Unanswered;
    };
    match timeout_at(deadline, settle(client, cluster, watched, question)).await {
        Ok(Ok(listed)) => listed,
        Ok(Err(error)) => {
            tracing::warn!(resource = watched.plural, %error, "The objects could not be counted.");
            Listed::Unanswered
        }
        Err(_) => Listed::Unanswered,
    }
}

async fn settle(
    client: &Client,
    cluster: &SharedCluster,
    watched: &Watched,
    question: &Question,
) -> Result<Listed, kube::Error> {
    let resource = watched.api_resource();
    let objects: Api<RawObject> = if question.namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), &question.namespace, &resource)
    };
    let mut limit = match watched.kind {
        ObjectKind::Node => READ_NODES,
        _ => READ,
    };
    loop {
        let mut parameters = ListParams::default().limit(limit);
        parameters.label_selector = watched.label_selector.map(str::to_owned);
        let page = objects.list(&parameters).await?;
        let is_whole = page.metadata.continue_.as_deref().unwrap_or_default() == "";
        if is_whole {
            let read = |raw: &RawObject| raw.read(watched.kind).ok().and_then(Stored::of);
            return Ok(Listed::All(page.items.iter().filter_map(read).collect()));
        }
        let Some(more) = page.metadata.remaining_item_count else {
            return Ok(Listed::Confirmed);
        };
        let count = page.items.len() + usize::try_from(more).unwrap_or_default();
        if !is_counted(watched, question) || cluster.read().count(watched.kind) == count {
            return Ok(Listed::Confirmed);
        }
        limit = 1;
        sleep(PAUSE).await;
    }
}

/// Whether the cache's number is that of the API server: it keeps no pods, Jobs
/// and ReplicaSets that others made.
fn is_counted(watched: &Watched, question: &Question) -> bool {
    use WorkloadKind::{Job, Pod, ReplicaSet};
    question.namespace.is_empty()
        && !matches!(watched.kind, ObjectKind::Workload(Job | Pod | ReplicaSet))
}
