//! Objects padded to the size limit of etcd: no list lets an object pass unjudged. `cargo bench
//! --bench policies -- padding` measures their cost.

use axum::http::Method;
use serde_json::{Value, json};

use crate::harness;
use crate::harness::padding::{PADDING, lists, padded};
use crate::installed::{client_config, register_changed};
use crate::requests::Cluster;

#[test]
fn no_list_makes_an_object_pass_unjudged() {
    let cluster = harness::or_skip!(Cluster::start());
    let plane = &cluster.plane;
    for name in ["padded-a", "padded-b"] {
        let node = harness::shorthand::object(
            json!({"kind": "Node", "name": name, "labels": {"kubernetes.io/hostname": name}}),
        );
        plane.send(Method::POST, "/api/v1/nodes", &node).unwrap();
    }
    // A debug build is slow, and its speed is not tested here.
    register_changed(plane, "fencing", |_, webhook| {
        webhook["clientConfig"] = client_config(plane, &cluster.guard, webhook);
        webhook["timeoutSeconds"] = json!(30);
    });
    let namespace = &cluster.namespace;
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let mut passed = Vec::new();
    for (at, list) in lists().iter().enumerate() {
        let name = format!("padded-{at}");
        let mut expect_denial = |method: Method, url: &str, object: &Value| {
            let sent = plane.send(method.clone(), &format!("{url}?dryRun=All"), object);
            let said = sent.map_or_else(|error| error.to_string(), |()| "passed".to_owned());
            if !said.contains("multi-attach-guard.dev\" denied the request") {
                let start: String = said.chars().take(500).collect();
                passed.push(format!("{}, {method}: {start}", list.name));
            }
        };
        let object = padded(&name, list, PADDING, &json!({}));
        expect_denial(Method::POST, &path, &object);
        // The object is right, so it passes and is stored; with defaults added it may be too large.
        let right = json!({"replicas": 0, "paused": true, "strategy": {"type": "Recreate"}});
        let store = |bytes| plane.send(Method::POST, &path, &padded(&name, list, bytes, &right));
        store(PADDING).or_else(|_| store(PADDING / 2)).unwrap();
        let change = json!({"spec": {"strategy": {"type": "RollingUpdate"}}});
        expect_denial(Method::PATCH, &format!("{path}/{name}"), &change);
    }
    assert!(passed.is_empty(), "{passed:#?}");
}
