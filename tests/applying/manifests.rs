//! The Deployment that is applied, and its claim.

use serde_json::{Value, json};

use crate::harness::control_plane::STEERED_SCHEDULER;
use crate::harness::fake_nodes::ATTACHING_DRIVER;

/// The two nodes. The first revision prefers the first, the second the other, so that
/// every rollout moves unless something holds the pod.
pub(crate) const NODES: [&str; 2] = ["node-a", "node-b"];

/// The Deployment's only pod, by the revision it is of.
pub(crate) fn template(revision: usize) -> Value {
    let preference = json!([{
        "weight": 1,
        "preference": { "matchExpressions": [{
            "key": "kubernetes.io/hostname", "operator": "In", "values": [NODES[revision - 1]],
        }]},
    }]);
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": {
            "schedulerName": STEERED_SCHEDULER,
            "terminationGracePeriodSeconds": 1,
            "affinity": { "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": preference,
            }},
            "containers": [{
                "name": "app",
                "image": format!("example.com/app:{revision}"),
                "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
            }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }],
        },
    })
}

/// The manifest of the first revision, with that strategy where it says one.
pub(crate) fn deployment(namespace: &str, strategy: Option<Value>) -> Value {
    let mut manifest = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web", "namespace": namespace },
        "spec": {
            "replicas": 1,
            "progressDeadlineSeconds": 120,
            "selector": { "matchLabels": { "app": "web" } },
            "template": template(1),
        },
    });
    if let Some(strategy) = strategy {
        manifest["spec"]["strategy"] = strategy;
    }
    manifest
}

/// The manifest with the second revision's pod: all else of the template stays.
pub(crate) fn second_revision(mut manifest: Value) -> Value {
    let mut new = template(2);
    let spec = &mut manifest["spec"]["template"]["spec"];
    spec["containers"] = new["spec"]["containers"].take();
    spec["affinity"]["nodeAffinity"] = new["spec"]["affinity"]["nodeAffinity"].take();
    manifest
}

/// A ReadWriteOnce volume and the claim `data` that has it.
pub(crate) fn storage(namespace: &str) -> [Value; 2] {
    let modes = json!(["ReadWriteOnce"]);
    let volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": namespace },
        "spec": {
            "accessModes": modes,
            "capacity": { "storage": "1Gi" },
            "csi": { "driver": ATTACHING_DRIVER, "volumeHandle": namespace },
            "claimRef": { "namespace": namespace, "name": "data" },
        },
    });
    let claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": "data", "namespace": namespace },
        "spec": {
            "accessModes": modes,
            "storageClassName": "",
            "volumeName": namespace,
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    [volume, claim]
}
