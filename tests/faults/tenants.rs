//! A tenant has very many objects, and he or strangers ask about them all the time.

use std::fmt::{self, Display, Formatter};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use axum::http::Method;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Played;
use crate::harness::{GuardOptions, WebhookOptions, asking};
use crate::load::{Came, Load};
use crate::world::{self, STRAIGHT, Said, World};

/// Small ReplicaSets of one Deployment, none of which Kubernetes would keep.
const REPLICA_SETS: usize = 4_000;

/// Reviews of the tenant's under way at once, each of which says that it waits half a minute.
const AT_ONCE: usize = 16;

/// Denied updates of another namespace.
const SOME: usize = 200;

/// The same by way of the API server, which sends two reviews of each.
const SOME_STORED: usize = 50;

/// Loopback addresses of two clients that are not the API server.
const STRANGERS: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3)];

/// Denials of another namespace stand, also with `--stale warn`.
pub(crate) fn one_has_many(world: &'static World) -> Result<Played, String> {
    let plane = world.plane;
    let own = tenants(world)?;
    let guard = plane.guard("tenant", &GuardOptions::default());
    let other = Arc::new(stored(world, &world.namespace));
    let taken = [Latencies::default(), Latencies::default()];
    let [of_the_tenant, of_the_other] = taken.clone();
    let mut asking = JoinSet::new();
    for _ in 0..AT_ONCE {
        let ask = asking_forever(world, plane.http(), &guard.url, &[&own], &of_the_tenant);
        asking.spawn_on(ask, plane.runtime().handle());
    }
    let url = guard.url.clone();
    let load = Load::start(plane.runtime().handle(), STRAIGHT, move |number| {
        let (url, other) = (url.clone(), Arc::clone(&other));
        let taken = of_the_other.clone();
        async move {
            let began = Instant::now();
            match update(world, plane.http(), &url, &other, number, 10).await {
                Ok(Said::No) => {
                    taken.add(began);
                    Came::Right
                }
                Ok(said) => Came::Wrong(format!("{said:?} to an update of another namespace.")),
                Err(error) => Came::Failed(error),
            }
        }
    });
    load.until_more(SOME)?;
    let tally = load.end();
    asking.abort_all();
    let [tenant, other] = taken;
    Ok(Played::answered(
        tally,
        format!(
            "{REPLICA_SETS} ReplicaSets, {AT_ONCE} updates of theirs at once; a denial of another \
             namespace took {other}, one of the tenant's {tenant}"
        ),
    ))
}

/// Two addresses name the tenant's objects, and those of the other namespace, in reviews that may
/// take half a minute; the API server sends the denied updates.
pub(crate) fn strangers_name_them(world: &'static World) -> Result<Played, String> {
    let plane = world.plane;
    let own = tenants(world)?;
    let namespace = plane.namespace("other");
    plane.apply(&namespace, &world::claim("data", "disk").to_string());
    let object = world::deployment("kept", "data", "RollingUpdate");
    plane.apply(&namespace, &object.to_string());
    let other = Arc::new(stored(world, &namespace));
    let guard = plane.guard("named", &GuardOptions::default());
    let mut webhooks = WebhookOptions::new(&guard.url, &[&namespace]);
    webhooks.timeout_seconds = 10;
    let _registration = plane.register_webhooks("named", &webhooks);

    let answered = Latencies::default();
    let mut asking = JoinSet::new();
    for address in STRANGERS {
        let builder = plane.pki.http_client_builder();
        let client = builder.local_address(Some(address.into())).build().unwrap();
        for _ in 0..AT_ONCE {
            let ask = asking_forever(world, &client, &guard.url, &[&own, &other], &answered);
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
    load.until_more(SOME_STORED)?;
    let tally = load.end();
    asking.abort_all();
    Ok(Played::answered(
        tally,
        format!(
            "{} addresses with {AT_ONCE} reviews each at once, `timeout=30s`; a denied update took \
             {taken}, a stranger's review {answered}",
            STRANGERS.len()
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
        plane.apply(&tenant, &world::claim("data", "disk").to_string());
        let object = world::deployment("kept", "data", "Recreate");
        plane.apply(&tenant, &object.to_string());
        let own = Arc::new(stored(world, &tenant));
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
    objects: &[&Arc<Value>],
    answered: &Latencies,
) -> impl Future<Output = ()> + Send + use<> {
    let (client, guard, answered) = (client.clone(), guard.to_owned(), answered.clone());
    let objects: Vec<Arc<Value>> = objects.iter().map(|it| Arc::clone(it)).collect();
    async move {
        for (number, object) in objects.iter().cycle().enumerate() {
            let began = Instant::now();
            // What is said is no question here.
            if update(world, &client, &guard, object, number, 30)
                .await
                .is_ok()
            {
                answered.add(began);
            }
        }
    }
}

/// The Deployment `kept` of a namespace.
fn stored(world: &World, namespace: &str) -> Value {
    world.plane.get(&["deployment", "kept", "-n", namespace])
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

/// A review of the update to a template that `old` never had, which rolls a new pod out beside
/// the old one.
async fn update(
    world: &World,
    client: &Client,
    guard: &str,
    old: &Value,
    number: usize,
    seconds: u64,
) -> Result<Said, String> {
    let mut old = old.clone();
    old["spec"]["strategy"] = json!({"type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!(format!("new:{number}"));
    let request = json!({"operation": "UPDATE", "object": new, "oldObject": old});
    world.said(client, guard, request, seconds).await
}
