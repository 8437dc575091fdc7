//! Lists and watches one resource, and starts again when the watch is lost.

use std::pin::pin;

use futures_util::StreamExt;
use jiff::Timestamp;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client};
use tokio::sync::Semaphore;

use engine::model::object::ObjectKind;

use super::resource::{RawObject, api_resource, field_selector};
use super::status::{Link, Statuses};
use super::store::SnapshotStore;

/// The number of seconds after which the API server ends a watch, which is then resumed. A dead
/// connection is noticed 5 s later.
const WATCH_SECONDS: u32 = 120;

/// The number of objects in one page if the API server cannot stream lists. A page is in memory as
/// text, twice, while it is read: 150 MB of the largest objects.
const PAGE: u32 = 50;

/// Watches the resource for as long as it is polled. `paging` admits one reader of pages at a time.
pub(super) async fn follow(
    kind: ObjectKind,
    client: Client,
    cluster: &SnapshotStore,
    statuses: &Statuses,
    paging: &Semaphore,
) {
    let api: Api<RawObject> = Api::all_with(client, &api_resource(kind));
    let mut config = Config::default().timeout(WATCH_SECONDS).page_size(PAGE);
    config.field_selector = field_selector(kind);
    // With a streamed list, only one object is in memory as text.
    let streaming = config.clone().streaming_lists();
    run(kind, &api, streaming, cluster, statuses, paging).await;
    tracing::info!(
        resource = kind.plural(),
        "The API server cannot stream lists; reading them page by page."
    );
    run(kind, &api, config, cluster, statuses, paging).await;
}

/// Ends only if `config` streams lists, and the API server refuses to stream them or ends them
/// without the bookmark that says that they are complete. The watcher never ends by itself.
async fn run(
    kind: ObjectKind,
    api: &Api<RawObject>,
    config: Config,
    cluster: &SnapshotStore,
    statuses: &Statuses,
    paging: &Semaphore,
) {
    let mut turn = None;
    let mut is_listing = false;
    let is_streaming =
        matches!(config.initial_list_strategy, watcher::InitialListStrategy::StreamingList);
    // The time between two attempts grows from 1 s to a minute, as in Kubernetes' own clients.
    let mut events = pin!(watcher(api.clone(), config).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            // The list started again before it was complete; pages will complete it.
            Ok(Event::Init) if is_streaming && is_listing => return,
            Ok(Event::Init) => {
                is_listing = true;
                cluster.write().begin_list(kind);
                if !is_streaming {
                    // The semaphore is never closed.
                    turn = paging.acquire().await.ok();
                }
            }
            Ok(Event::InitDone) => {
                is_listing = false;
                drop(turn.take());
                cluster.write().synced(kind);
                statuses.synced(kind);
            }
            Ok(Event::InitApply(raw) | Event::Apply(raw)) => {
                take(kind, &raw, cluster, statuses);
            }
            Ok(Event::Delete(raw)) => {
                cluster.write().remove(kind, raw.namespace(), raw.name());
                statuses.event(kind, true);
            }
            Err(error) if is_streaming && refuses_streaming(&error) => return,
            Err(error) => {
                drop(turn.take());
                record(kind, &error, statuses);
            }
        }
    }
}

/// Stores an object in the snapshot, and records its arrival.
fn take(kind: ObjectKind, raw: &RawObject, cluster: &SnapshotStore, statuses: &Statuses) {
    let object = raw.read(kind);
    let is_readable = object.is_ok();
    match object {
        Ok(object) => cluster.apply(object),
        Err(error) => {
            // The object in the snapshot is outdated.
            cluster.write().remove(kind, raw.namespace(), raw.name());
            tracing::warn!(
                resource = kind.plural(),
                namespace = raw.namespace(),
                name = raw.name(),
                %error,
                "The API server sent a malformed object, which is ignored."
            );
        }
    }
    statuses.event(kind, is_readable);
}

/// Whether the API server refuses to stream lists. Servers before 1.27, or without the feature,
/// reject the request as invalid.
fn refuses_streaming(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status))
        if matches!(status.code, 400 | 422))
}

fn record(kind: ObjectKind, error: &watcher::Error, statuses: &Statuses) {
    match status_of(error) {
        // The watch was too far behind; the watcher lists again by itself.
        Some(status) if status.code == 410 => {}
        Some(status) if matches!(status.code, 401 | 403) => {
            let reason = status.message.clone();
            statuses.link(kind, |link| link.after_refusal(reason, Timestamp::now()));
        }
        Some(status) if status.code == 404 => statuses.link(kind, |_| Link::NotServed),
        Some(status) => statuses.disconnected(kind, status.message.clone()),
        None => statuses.disconnected(kind, root_cause(error)),
    }
    tracing::debug!(resource = kind.plural(), %error, "A list or watch failed.");
}

fn status_of(error: &watcher::Error) -> Option<&kube::core::Status> {
    match error {
        watcher::Error::WatchError(status) => Some(status),
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status),
        _ => None,
    }
}

/// The innermost error, which is the most specific: "Connection refused" rather than
/// "client error".
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
