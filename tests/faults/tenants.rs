//! A tenant has very many objects, and the tenant or strangers ask about them all the time.

use std::fmt::{self, Display, Formatter};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use axum::http::Method;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Played;
use crate::harness::{GuardOptions, WebhookOptions, asking, webhooks};
use crate::load::Load;
use crate::world::{self, STRAIGHT, Said, World};

/// Small ReplicaSets of one Deployment, none of which Kubernetes would keep.
const REPLICA_SETS: usize = 4_000;

/// Reviews of the tenant's under way at once, each of which says that it waits half a minute.
const AT_ONCE: usize = 16;

/// Denied updates of another namespace, by way of the API server, which sends two reviews of each.
const SOME: usize = 50;

/// Loopback addresses of two clients that are not the API server.
const STRANGERS: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3)];

/// The tenant asks about its own objects from the address of the API server.
pub(crate) fn one_has_many(world: &'static World) -> Result<Played, String> {
    beside(world, "tenant", &[world.plane.http().clone()], false)
}

/// Two addresses name the tenant's objects, and those of the other namespace.
pub(crate) fn strangers_name_them(world: &'static World) -> Result<Played, String> {
    let clients = STRANGERS.map(|address| {
        let builder = world.plane.pki.http_client_builder();
        builder.local_address(Some(address.into())).build().unwrap()
    });
    beside(world, "named", &clients, true)
}

/// Denials of another namespace stand, also with `--stale warn`, while each client asks about the
/// tenant's objects, and perhaps that namespace's, all the time.
fn beside(
    world: &'static World,
    name: &str,
    clients: &[Client],
    names_other: bool,
) -> Result<Played, String> {
    let plane = world.plane;
    let mut named = vec![tenants(world)?];
    let namespace = plane.namespace(name);
    let other = kept(world, &namespace, "RollingUpdate");
    if names_other {
        named.push(other);
    }
    let guard = plane.guard(name, &GuardOptions::default());
    let mut webhooks = WebhookOptions::new(&guard.url, &[&namespace]);
    webhooks.timeout_seconds = 10;
    let _registration = plane.register_webhooks(name, &webhooks);

    let answered = Latencies::default();
    let mut asking = JoinSet::new();
    for client in clients {
        for _ in 0..AT_ONCE {
            let ask = asking_forever(world, client, &guard.url, &named, &answered);
            asking.spawn_on(ask, plane.runtime().handle());
        }
    }
    let taken = Latencies::default();
    let all = taken.clone();
    let load = Load::start(plane.runtime().handle(), STRAIGHT, move |number| {
        let (namespace, taken) = (namespace.clone(), all.clone());
        async move {
            let began = Instant::now();
            let came = world.roll_out(&namespace, number).await;
            taken.add(began);
            came
        }
    });
    load.until_more(SOME)?;
    let tally = load.end();
    asking.abort_all();
    Ok(Played::answered(
        tally,
        format!(
            "addresses that ask: {}, each with {AT_ONCE} reviews at once, `timeout=30s`; a denied \
             update took {taken}, a review of theirs {answered}",
            clients.len()
        ),
    ))
}

/// How long requests took that were answered.
#[derive(Clone, Default)]
struct Latencies(Arc<Mutex<Vec<Duration>>>);

impl Latencies {
    fn add(&self, began: Instant) {
        self.0.lock().unwrap().push(began.elapsed());
    }
}

impl Display for Latencies {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let mut taken = self.0.lock().unwrap().clone();
        taken.sort_unstable();
        let [p50, p99] = [50, 99].map(|percent| {
            let at = taken.len().saturating_sub(1) * percent / 100;
            taken.get(at).map_or(0.0, |it| it.as_secs_f64() * 1e3)
        });
        write!(out, "{p50:.0} ms (p99 {p99:.0} ms)")
    }
}

/// The tenant's Deployment, which is made with all its ReplicaSets for the first row that asks.
fn tenants(world: &'static World) -> Result<Arc<Value>, String> {
    static OWN: OnceLock<Result<Arc<Value>, String>> = OnceLock::new();
    let make = || {
        let plane = world.plane;
        let tenant = plane.namespace("tenant");
        let own = kept(world, &tenant, "Recreate");
        plane.block_on(make_replica_sets(world, &tenant, &own))?;
        Ok(own)
    };
    OWN.get_or_init(make).clone()
}

/// Sends reviews of updates of these objects in turn, each of which may take half a minute.
fn asking_forever(
    world: &'static World,
    client: &Client,
    guard: &str,
    objects: &[Arc<Value>],
    answered: &Latencies,
) -> impl Future<Output = ()> + Send + use<> {
    let (client, guard, answered) = (client.clone(), guard.to_owned(), answered.clone());
    let objects = objects.to_vec();
    async move {
        for (number, object) in objects.iter().cycle().enumerate() {
            let began = Instant::now();
            // What is said is no question here.
            if update(world, &client, &guard, object, number).await.is_ok() {
                answered.add(began);
            }
        }
    }
}

/// Makes the Deployment `kept` with a claim, as it is stored.
fn kept(world: &World, namespace: &str, strategy: &str) -> Arc<Value> {
    let claim = world::claim("data", "disk");
    for object in [claim, world::deployment("kept", "data", strategy)] {
        world.plane.apply(namespace, &object.to_string());
    }
    Arc::new(world.plane.get(&["deployment", "kept", "-n", namespace]))
}

async fn make_replica_sets(
    world: &'static World,
    namespace: &str,
    owner: &Value,
) -> Result<(), String> {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets");
    let mut made = JoinSet::new();
    for number in 0..REPLICA_SETS {
        let hash = number.to_string();
        let labels = json!({"app": "kept", "pod-template-hash": hash});
        let template = json!({"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "app", "image": format!("example.com/app:{hash}")}]}});
        let object = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": format!("kept-{hash}"), "labels": labels, "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "kept",
                 "uid": owner["metadata"]["uid"], "controller": true}]},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
        });
        let request = asking::request(Method::POST, &path, &object);
        if made.len() >= AT_ONCE {
            made.join_next().await.unwrap().unwrap()?;
        }
        let client = world.plane.client();
        made.spawn(async move {
            let made = client.request_text(request).await;
            made.map(drop).map_err(|error| error.to_string())
        });
    }
    made.join_all().await.into_iter().collect()
}

/// A review, which may take half a minute, of the update to a template that `old` never had, which
/// rolls a new pod out beside the old one.
async fn update(
    world: &World,
    client: &Client,
    guard: &str,
    old: &Value,
    number: usize,
) -> Result<Said, String> {
    let mut old = old.clone();
    old["spec"]["strategy"] = json!({"type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!(format!("new:{number}"));
    let review = webhooks::review(&new, Some(&old));
    world.said(client, guard, &review, 30).await
}
