//! Which clients of the webhook's port are API servers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::model::Text;
use engine::model::uid::Uid;
use engine::snapshot::View;
use tokio::time::Instant;
use webhook::admission::Submitted;

/// The number of namespaces whose stored objects an API server has shown. A client that reads
/// objects only in its own namespaces shows fewer.
const MANY: usize = 5;

/// The time after which a namespace counts no more. The address may belong to another pod then.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// The number of addresses that are remembered at most.
const MOST: usize = 1024;

/// The clients, as far as they are known.
#[derive(Debug)]
pub(super) enum Callers {
    /// Each has proven its identity with a certificate.
    Proven,
    /// None has. The uid of a stored object tells that the client can read it, and only API servers
    /// send the uids of many namespaces.
    Observed(Mutex<HashMap<IpAddr, Shown>>),
}

/// The namespaces whose stored objects a client has shown, and the last time of each.
type Shown = HashMap<Text, Instant>;

impl Callers {
    /// The address of a client that is not known to be an API server.
    pub(super) fn stranger(&self, client: Option<IpAddr>) -> Option<IpAddr> {
        let Self::Observed(shown) = self else {
            return None;
        };
        let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |address: &IpAddr| {
            shown.get(address).is_some_and(|namespaces| {
                namespaces.values().filter(|last| last.elapsed() < REMEMBERED).count() >= MANY
            })
        };
        client.filter(|address| !is_known(address))
    }

    /// Learns from the object that this client has sent.
    pub(super) fn learn(&self, client: Option<IpAddr>, object: Submitted, view: View<'_>) {
        let (Self::Observed(shown), Some(client)) = (self, client) else {
            return;
        };
        let stored = view.uid(object.kind, &object.namespace, &object.name);
        if stored == Uid::default() || stored != object.uid {
            return;
        }
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.len() >= MOST && !shown.contains_key(&client) {
            shown.retain(|_, namespaces| namespaces.len() >= MANY);
        }
        shown.entry(client).or_default().insert(object.namespace, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use engine::model::claim::Claim;
    use engine::model::metadata::Metadata;
    use engine::model::object::{Object, ObjectKind};
    use engine::snapshot::Snapshot;

    use super::*;

    const UID: &str = "0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11";
    const OTHER: &str = "0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d12";

    #[tokio::test(start_paused = true)]
    async fn an_api_server_is_known_by_the_uids_that_it_sends() {
        let mut cluster = Snapshot::new();
        for namespace in ["a", "b", "c", "d", "e"] {
            let metadata = Metadata {
                namespace: namespace.into(),
                name: "data".into(),
                uid: Uid::from(Text::from(UID)),
                ..Metadata::default()
            };
            assert!(cluster.apply(Object::Claim(Claim { metadata, ..Claim::default() })));
        }
        let client = Some(IpAddr::from([10, 0, 0, 1]));
        for (why, namespaces, uid, is_known) in [
            ("an API server", ["a", "b", "c", "d", "e"], UID, true),
            ("too few namespaces", ["a", "b", "c", "d", "d"], UID, false),
            ("a guess", ["a", "b", "c", "d", "e"], OTHER, false),
            ("a new object", ["a", "b", "c", "d", "e"], "", false),
            ("an object that is not stored", ["a", "b", "c", "d", "f"], UID, false),
        ] {
            let callers = Callers::Observed(Mutex::default());
            for namespace in namespaces {
                let (namespace, name) = (namespace.into(), "data".into());
                let uid = Uid::from(Text::from(uid));
                let object = Submitted { kind: ObjectKind::Claim, namespace, name, uid };
                callers.learn(client, object, cluster.view());
            }
            let known = [client, Some(IpAddr::from([10, 0, 0, 2]))]
                .map(|address| callers.stranger(address));
            assert_eq!(
                known,
                [client.filter(|_| !is_known), Some(IpAddr::from([10, 0, 0, 2]))],
                "{why}"
            );
            tokio::time::advance(REMEMBERED).await;
            assert_eq!(callers.stranger(client), client, "{why}: later");
        }
        assert_eq!(Callers::Proven.stranger(client), None);
    }
}
