//! A tenant has very many objects, and asks about them all the time.

use std::sync::Arc;

use axum::http::Request;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Played;
use crate::harness::GuardOptions;
use crate::load::{Came, Load};
use crate::world::{self, STRAIGHT, Said, World};

/// Small ReplicaSets of one Deployment, none of which Kubernetes would keep.
const REPLICA_SETS: usize = 4_000;

/// Reviews of the tenant's under way at once, each of which says that it waits half a minute.
const AT_ONCE: usize = 16;

/// Denied updates of another namespace.
const SOME: usize = 200;

/// Denials of another namespace stand, also with `--stale warn`.
pub(crate) fn one_has_many(world: &'static World) -> Result<Played, String> {
    let plane = world.plane;
    let tenant = plane.namespace("tenant");
    plane.apply(&tenant, &world::claim("data", "disk").to_string());
    let object = world::deployment("kept", "data", "Recreate");
    plane.apply(&tenant, &object.to_string());
    let own = Arc::new(stored(world, &tenant));
    plane.block_on(make_replica_sets(world, &tenant, &own))?;

    let guard = plane.guard("tenant", &GuardOptions::default());
    let other = Arc::new(stored(world, &world.namespace));
    let mut tenants = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (url, own) = (guard.url.clone(), Arc::clone(&own));
        let ask = async move {
            let client = plane.http();
            for number in 0.. {
                // What becomes of it is no question here.
                let _ = update(world, client, &url, &own, number, 30).await;
            }
        };
        tenants.spawn_on(ask, plane.runtime().handle());
    }
    let url = guard.url.clone();
    let load = Load::start(plane.runtime().handle(), STRAIGHT, move |number| {
        let (url, other) = (url.clone(), Arc::clone(&other));
        async move {
            match update(world, plane.http(), &url, &other, number, 10).await {
                Ok(Said::No) => Came::Right,
                Ok(said) => Came::Wrong(format!("{said:?} to an update of another namespace.")),
                Err(error) => Came::Failed(error),
            }
        }
    });
    load.until_more(SOME)?;
    let tally = load.end();
    tenants.abort_all();
    Ok(Played {
        tally,
        unanswerable: 0,
        remark: format!("{REPLICA_SETS} ReplicaSets, {AT_ONCE} updates of theirs at once"),
    })
}

/// The Deployment `kept` of a namespace.
fn stored(world: &World, namespace: &str) -> Value {
    let get = ["get", "deployment", "kept", "-n", namespace, "-o=json"];
    let stored = world.plane.kubectl(&get, None).success().stdout;
    serde_json::from_str(&stored).unwrap()
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
        let request = Request::post(&path)
            .header("content-type", "application/json")
            .body(object.to_string().into_bytes())
            .unwrap();
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
