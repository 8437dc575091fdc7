//! Rollbacks where files stand for the cluster. Which revision an update rests on is decided in
//! `src/cli/serve/rollback.rs`.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::running::{Running, example, serve};

const UID: &str = "0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11";

fn replica_set(template: &Value, pods: i64) -> Value {
    let mut template = template.clone();
    template["metadata"]["labels"]["pod-template-hash"] = json!("6d4");
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web-6d4", "namespace": "shop",
            "annotations": {"deployment.kubernetes.io/revision": "1"}, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": UID, "controller": true}]},
        "spec": {"replicas": 1, "template": template}, "status": {"replicas": pods}})
}

/// An update back to the example's template.
fn undo() -> Value {
    let mut review = example();
    let request = &mut review["request"];
    request["operation"] = json!("UPDATE");
    request["object"]["metadata"]["uid"] = json!(UID);
    request["object"]["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!("2");
    request["oldObject"] = request["object"].clone();
    request["oldObject"]["spec"]["template"]["spec"]["containers"][0]["image"] =
        json!("nginx:1.30");
    review
}

#[tokio::test]
async fn an_update_back_to_what_runs_passes_and_any_other_is_denied() {
    let template = example()["request"]["object"]["spec"]["template"].clone();
    for (pods, policy, expected) in [
        (1, "allow", true),
        (0, "allow", false),
        // Its user could have written the ReplicaSet as well.
        (1, "forbid", false),
        (1, "namespaces", false),
    ] {
        let policy = format!("defaults: {{overrides: {policy}}}\n");
        let (server, _folder) = serving(&json!([replica_set(&template, pods)]), &policy).await;
        let answer = server.review("/validate", &undo()).await;
        assert_eq!(
            answer["allowed"], expected,
            "{pods} pods, {policy}: {answer:#}"
        );
        if expected {
            let notice =
                "This is a rollback to ReplicaSet web-6d4, whose pods are there, so it passes.";
            assert_eq!(answer["warnings"], json!([notice]), "{answer:#}");
        }

        let mut other = undo();
        other["request"]["object"]["spec"]["template"]["spec"]["containers"][0]["image"] =
            json!("nginx:1.31");
        let answer = server.review("/validate", &other).await;
        assert_eq!(answer["allowed"], false, "{answer:#}");
        let more = undo_with_more_replicas();
        let answer = server.review("/validate", &more).await;
        assert_eq!(answer["allowed"], false, "{answer:#}");
    }
}

/// It starts a pod, so it is no mere rollback.
fn undo_with_more_replicas() -> Value {
    let mut review = undo();
    review["request"]["object"]["spec"]["replicas"] = json!(2);
    review
}

/// Where files stand for the example's cluster and for these objects.
async fn serving(objects: &Value, policy: &str) -> (Running, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let [objects, policy] =
        [("objects.yaml", &*list), ("policy.yaml", policy)].map(|(name, text)| {
            let file = folder.path().join(name);
            fs::write(&file, text).unwrap();
            file.display().to_string()
        });
    (
        serve(&["--facts", &objects, "--config", &policy]).await,
        folder,
    )
}

/// The answer to a review there.
async fn answer(objects: &Value, review: &Value) -> Value {
    let (server, _folder) = serving(objects, "{}\n").await;
    server.review("/validate", review).await
}

/// Its status says how many pods are not of the newest revision, but not of which they are.
#[tokio::test]
async fn a_daemon_set_goes_back_to_the_revision_whose_pods_run() {
    const HASHES: [&str; 3] = ["aaa", "bbb", "ccc"];
    let mut review = undo();
    let request = &mut review["request"];
    request["kind"]["kind"] = json!("DaemonSet");
    request["resource"]["resource"] = json!("daemonsets");
    for object in ["object", "oldObject"] {
        let object = &mut request[object];
        object["kind"] = json!("DaemonSet");
        let spec = object["spec"].as_object_mut().unwrap();
        spec.remove("replicas");
        spec.remove("strategy");
        let surge = json!({"maxSurge": 1, "maxUnavailable": 0});
        spec.insert(
            "updateStrategy".to_owned(),
            json!({"type": "RollingUpdate", "rollingUpdate": surge}),
        );
        object["status"] = json!({"currentNumberScheduled": 1, "updatedNumberScheduled": 0});
    }
    let wanted = request["object"]["spec"]["template"].clone();
    let owner = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": UID, "controller": true}]);
    let revision = |number: usize| {
        let mut template = wanted.clone();
        template["spec"]["containers"][0]["image"] = match number {
            0 => wanted["spec"]["containers"][0]["image"].clone(),
            _ => json!(format!("nginx:1.3{number}")),
        };
        json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {"name": format!("web-{}", HASHES[number]), "namespace": "shop", "ownerReferences": owner},
            "revision": number + 1, "data": {"spec": {"template": template}}})
    };
    let pod = |hash: &str, phase: &str| {
        let pod = wanted["spec"].clone();
        json!({"apiVersion": "v1", "kind": "Pod", "spec": pod, "status": {"phase": phase},
            "metadata": {"name": "web-x", "namespace": "shop", "ownerReferences": owner,
                "labels": {"app": "web", "controller-revision-hash": hash}}})
    };
    for (hash, phase, expected) in [
        ("aaa", "Running", true),
        ("aaa", "Pending", false),
        ("bbb", "Running", false),
    ] {
        let objects = json!([revision(0), revision(1), revision(2), pod(hash, phase)]);
        let answer = answer(&objects, &review).await;
        assert_eq!(answer["allowed"], expected, "{hash} {phase}: {answer:#}");
    }
}
