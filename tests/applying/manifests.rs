//! The Deployment that the tests apply.

use serde_json::{Value, json};

use crate::harness::control_plane::STEERED_SCHEDULER;
use crate::harness::shorthand::object;

/// The two nodes. The first revision prefers the first node, the second revision the other, so
/// every rollout moves the pod unless something holds it.
pub(crate) const NODES: [&str; 2] = ["node-a", "node-b"];

/// The manifest of the first revision, with this strategy if there is one.
pub(crate) fn deployment(namespace: &str, strategy: Option<&Value>) -> Value {
    of_revision(1, namespace, strategy)
}

fn of_revision(revision: usize, namespace: &str, strategy: Option<&Value>) -> Value {
    let preference = json!([{
        "weight": 1,
        "preference": { "matchExpressions": [{
            "key": "kubernetes.io/hostname", "operator": "In", "values": [NODES[revision - 1]],
        }]},
    }]);
    object(json!({
        "kind": "Deployment",
        "namespace": namespace,
        "replicas": 1,
        "strategy": strategy,
        "uses": ["data"],
        "container": { "image": format!("example.com/app:{revision}") },
        "pod": {
            "schedulerName": STEERED_SCHEDULER,
            "terminationGracePeriodSeconds": 1,
            "affinity": { "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": preference,
            }},
        },
        "with": { "spec": { "progressDeadlineSeconds": 120 } },
    }))
}

/// The manifest with the second revision's pod; the rest of the template stays.
pub(crate) fn second_revision(mut manifest: Value) -> Value {
    let new = of_revision(2, "", None)["spec"]["template"]["spec"].take();
    let spec = &mut manifest["spec"]["template"]["spec"];
    spec["containers"] = new["containers"].clone();
    spec["affinity"]["nodeAffinity"] = new["affinity"]["nodeAffinity"].clone();
    manifest
}
