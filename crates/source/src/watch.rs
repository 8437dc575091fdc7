//! Following one resource: list it, watch it, begin again when the watch is lost.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client};

use super::resource::{RawObject, Watched};
use super::status::{Link, Statuses};
use super::store::SnapshotStore;

/// The API server ends a watch after so many seconds, and it is begun anew
/// where it ended. A connection that died in silence is noticed 5 s later.
const WATCH_SECONDS: u32 = 120;

/// Objects in one page where the server cannot stream its lists. 14 resources
/// begin at the same time, and a page is held as text while it is read.
const PAGE: u32 = 200;

/// Follows the resource for as long as it is polled.
pub(super) async fn follow(
    watched: Watched,
    client: Client,
    cluster: Arc<SnapshotStore>,
    statuses: Arc<Statuses>,
) {
    let api: Api<RawObject> = Api::all_with(client, &watched.api_resource());
    let mut config = Config::default().timeout(WATCH_SECONDS).page_size(PAGE);
    config.label_selector = watched.label_selector.map(str::to_owned);
    // A streamed list never holds more than one object as text.
    let streaming = config.clone().streaming_lists();
    let Ended::NoStreaming = run(watched, &api, streaming, &cluster, &statuses).await else {
        return;
    };
    tracing::info!(
        resource = watched.plural(),
        "The API server cannot stream lists; reading them page by page."
    );
    run(watched, &api, config, &cluster, &statuses).await;
}

enum Ended {
    /// The server refuses lists that are streamed as watches, or ends them
    /// without the bookmark that says they are complete.
    NoStreaming,
    /// The stream of events has come to an end, which it never does by itself.
    Stopped,
}

async fn run(
    watched: Watched,
    api: &Api<RawObject>,
    config: Config,
    cluster: &SnapshotStore,
    statuses: &Statuses,
) -> Ended {
    let kind = watched.kind;
    let mut is_listing = false;
    // From 1 s up to a minute between two attempts, as Kubernetes' own clients.
    let is_streaming = matches!(
        config.initial_list_strategy,
        watcher::InitialListStrategy::StreamingList
    );
    let mut events = pin!(watcher(api.clone(), config).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            // Begun again and never complete: from pages it becomes so.
            Ok(Event::Init) if is_streaming && is_listing => {
                return Ended::NoStreaming;
            }
            Ok(Event::Init) => {
                is_listing = true;
                cluster.list_begins(kind);
            }
            Ok(Event::InitDone) => {
                is_listing = false;
                cluster.synced(kind);
                statuses.synced(kind);
            }
            Ok(Event::InitApply(raw) | Event::Apply(raw)) => match raw.read(kind) {
                Ok(object) => {
                    cluster.apply(object);
                    statuses.event(kind, true);
                }
                Err(error) => {
                    // What was known of it before is no longer so.
                    cluster.remove(kind, raw.namespace(), raw.name());
                    statuses.event(kind, false);
                    tracing::warn!(
                        resource = watched.plural(),
                        namespace = raw.namespace(),
                        name = raw.name(),
                        %error,
                        "An object from the API server is not what its kind says; it is left out."
                    );
                }
            },
            Ok(Event::Delete(raw)) => {
                cluster.remove(kind, raw.namespace(), raw.name());
                statuses.event(kind, true);
            }
            Err(error) if is_streaming && refuses_streaming(&error) => {
                return Ended::NoStreaming;
            }
            Err(error) => record(watched, &error, statuses),
        }
    }
    Ended::Stopped
}

/// Servers before 1.27, or with the feature turned off, call the request
/// invalid.
fn refuses_streaming(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status))
        if matches!(status.code, 400 | 422))
}

fn record(watched: Watched, error: &watcher::Error, statuses: &Statuses) {
    let kind = watched.kind;
    match status_of(error) {
        // The watch fell too far behind; a new list follows by itself.
        Some(status) if status.code == 410 => {}
        Some(status) if matches!(status.code, 401 | 403) => {
            let reason = status.message.clone();
            statuses.refused(kind, Link::Forbidden { reason });
        }
        Some(status) if status.code == 404 => statuses.refused(kind, Link::NotServed),
        Some(status) => statuses.disconnected(kind, status.message.clone()),
        None => statuses.disconnected(kind, root_cause(error)),
    }
    tracing::debug!(resource = watched.plural(), %error, "A list or watch failed.");
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

/// The innermost error says most: "Connection refused" rather than "client error".
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
