//! Following one resource: list it, watch it, begin again when the watch is lost.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client};

use super::resource::{RawObject, Watched};
use super::shared::SharedCluster;
use super::status::{Link, Statuses};

/// The API server ends a watch after so many seconds, and it is begun anew
/// where it ended. A connection that died in silence is noticed 5 s later.
const WATCH_SECONDS: u32 = 120;

/// Objects in one page, which is held as text while it is read: a few megabytes for each
/// of the resources that begin at the same time. A list that is streamed as a watch
/// holds less here, and costs the API server twice the time: each of its objects is
/// encoded, wrapped, encoded again and sent by itself.
const PAGE: u32 = 1000;

/// Follows the resource for as long as it is polled.
pub(super) async fn follow(
    watched: Watched,
    client: Client,
    cluster: Arc<SharedCluster>,
    statuses: Arc<Statuses>,
) {
    let kind = watched.kind;
    let api: Api<RawObject> = Api::all_with(client, &watched.api_resource());
    let mut config = Config::default().timeout(WATCH_SECONDS).page_size(PAGE);
    config.label_selector = watched.label_selector.map(str::to_owned);
    // From 1 s up to a minute between two attempts, as Kubernetes' own clients.
    let mut events = pin!(watcher(api, config).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => cluster.list_begins(kind),
            Ok(Event::InitDone) => {
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
                        resource = watched.plural,
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
            Err(error) => record(watched, &error, &statuses),
        }
    }
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
    tracing::debug!(resource = watched.plural, %error, "A list or watch failed.");
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
