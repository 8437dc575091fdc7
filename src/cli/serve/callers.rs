//! Which clients of the webhook's port are API servers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
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

/// The clients whose objects were as stored. None of them has proven its identity with a
/// certificate, but the uid of a stored object tells that the client can read it, and only API
/// servers send the uids of many namespaces.
#[derive(Debug, Default)]
pub(super) struct Callers(Mutex<HashMap<IpAddr, Shown>>);

/// The namespaces whose stored objects a client has shown, and the last time of each.
type Shown = HashMap<Text, Instant>;

impl Callers {
    /// The address of a client that is not known to be an API server.
    pub(super) fn stranger(&self, client: Option<IpAddr>) -> Option<IpAddr> {
        let shown = self.shown();
        client.filter(|address| !shown.get(address).is_some_and(is_api_server))
    }

    /// Learns from the object that this client has sent.
    pub(super) fn learn(&self, client: IpAddr, object: Submitted, view: View<'_>) {
        let stored = view.uid(object.kind, &object.namespace, &object.name);
        if stored == Uid::default() || stored != object.uid {
            return;
        }
        let mut shown = self.shown();
        if shown.len() >= MOST && !shown.contains_key(&client) {
            shown.retain(|_, namespaces| is_api_server(namespaces));
            if shown.len() >= MOST {
                return;
            }
        }
        shown.entry(client).or_default().insert(object.namespace, Instant::now());
    }

    fn shown(&self) -> MutexGuard<'_, HashMap<IpAddr, Shown>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_api_server(namespaces: &Shown) -> bool {
    namespaces.values().filter(|last| last.elapsed() < REMEMBERED).count() >= MANY
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

    /// The claim of a namespace.
    fn stored(namespace: Text) -> Claim {
        let metadata = Metadata {
            namespace,
            name: "data".into(),
            uid: Uid::from(Text::from(UID)),
            ..Metadata::default()
        };
        Claim { metadata, ..Claim::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_is_known_by_the_uids_that_it_sends() {
        let mut cluster = Snapshot::new();
        for namespace in ["a", "b", "c", "d", "e"] {
            assert!(cluster.apply(Object::Claim(stored(namespace.into()))));
        }
        let client = IpAddr::from([10, 0, 0, 1]);
        let other = Some(IpAddr::from([10, 0, 0, 2]));
        for (why, namespaces, uid, is_known) in [
            ("an API server", ["a", "b", "c", "d", "e"], UID, true),
            ("too few namespaces", ["a", "b", "c", "d", "d"], UID, false),
            ("a guess", ["a", "b", "c", "d", "e"], OTHER, false),
            ("a new object", ["a", "b", "c", "d", "e"], "", false),
            ("an object that is not stored", ["a", "b", "c", "d", "f"], UID, false),
        ] {
            let callers = Callers::default();
            for namespace in namespaces {
                let (namespace, name) = (namespace.into(), "data".into());
                let uid = Uid::from(Text::from(uid));
                let object = Submitted { kind: ObjectKind::Claim, namespace, name, uid };
                callers.learn(client, object, cluster.view());
            }
            let stranger = Some(client).filter(|_| !is_known);
            assert_eq!(callers.stranger(Some(client)), stranger, "{why}");
            assert_eq!(callers.stranger(other), other, "{why}: another client");
            tokio::time::advance(REMEMBERED).await;
            assert_eq!(callers.stranger(Some(client)), Some(client), "{why}: later");
        }
    }

    #[test]
    fn the_number_of_remembered_addresses_is_bounded() {
        let mut cluster = Snapshot::new();
        let names = || ["a", "b", "c", "d", "e"].into_iter().map(Text::from);
        for namespace in names() {
            cluster.apply(Object::Claim(stored(namespace)));
        }
        let callers = Callers::default();
        let send = |number: usize, namespace: Text| {
            let [.., high, low] = number.to_be_bytes();
            let object = Submitted {
                kind: ObjectKind::Claim,
                namespace,
                name: "data".into(),
                uid: Uid::from(Text::from(UID)),
            };
            callers.learn([10, 0, high, low].into(), object, cluster.view());
        };
        for number in 0..2 * MOST {
            send(number, "a".into());
            assert!(callers.shown().len() <= MOST);
        }
        for number in 0..2 * MOST {
            names().for_each(|namespace| send(number, namespace));
            assert!(callers.shown().len() <= MOST, "each is known");
        }
        assert_eq!(callers.stranger(Some([10, 0, 0, 0].into())), None, "the first stay");
    }
}
