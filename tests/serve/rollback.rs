//! Rollbacks with files instead of a cluster. `src/cli/serve/rollback.rs` decides which revision an
//! update returns to.

use std::fs;

use serde_json::{Value, json};

use crate::running::{example, serve};

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
        // The user could have written the ReplicaSet too, so the policy forbids this.
        (1, "forbid", false),
        (1, "namespaces", false),
    ] {
        let policy_text = format!("defaults: {{overrides: {policy}}}\n");
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let facts = file("objects.yaml", &replica_set(&template, pods).to_string());
        let config = file("policy.yaml", &policy_text);
        let server = serve(&["--facts", &facts, "--config", &config]).await;
        let answer = server.review("/validate", &undo()).await;
        assert_eq!(answer["allowed"], expected, "{pods} pods, {policy}: {answer:#}");
        if expected {
            let notice =
                "This is a rollback to ReplicaSet web-6d4, whose pods are there, so it passes.";
            assert_eq!(answer["warnings"], json!([notice]), "{answer:#}");
        }

        let mut other = undo();
        other["request"]["object"]["spec"]["template"]["spec"]["containers"][0]["image"] =
            json!("nginx:1.31");
        let to_other = server.review("/validate", &other).await;
        assert_eq!(to_other["allowed"], false, "{to_other:#}");
        // The update also starts a pod, so it is more than a rollback.
        let mut more = undo();
        more["request"]["object"]["spec"]["replicas"] = json!(2);
        let to_more = server.review("/validate", &more).await;
        assert_eq!(to_more["allowed"], false, "{to_more:#}");
    }
}
