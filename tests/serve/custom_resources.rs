//! Custom resources of operators, with what an operator made among the facts.

use std::fs;

use serde_json::{Value, json};

use crate::running::{Running, example, serve_without_facts};

/// What grafana-operator makes of Grafana `main`.
fn made(annotations: &Value) -> Value {
    let mut object = example()["request"]["object"].clone();
    object["metadata"] = json!({
        "name": "main-deployment", "namespace": "shop", "annotations": annotations,
        "uid": "0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11",
        "ownerReferences": [{"apiVersion": "grafana.integreatly.org/v1beta1", "kind": "Grafana",
            "name": "main", "uid": "5d1c3b0e-3f0e-4a55-9d5c-0a3b8b1d7e42", "controller": true}],
    });
    object
}

async fn server(annotations: &Value) -> (Running, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.yaml");
    fs::write(&file, made(annotations).to_string()).unwrap();
    let file = file.to_str().unwrap();
    let facts = ["--facts", "examples/facts", "--facts", file];
    (serve_without_facts(&facts).await, folder)
}

fn review(operation: &str, spec: &Value, old: &Value) -> Value {
    let object = |spec: &Value| match spec {
        Value::Null => Value::Null,
        spec => json!({
            "apiVersion": "grafana.integreatly.org/v1beta1", "kind": "Grafana",
            "metadata": {"name": "main", "namespace": "shop"}, "spec": spec,
        }),
    };
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": operation, "name": "main", "namespace": "shop",
            "kind": {"group": "grafana.integreatly.org", "version": "v1beta1", "kind": "Grafana"},
            "resource": {"group": "grafana.integreatly.org", "version": "v1beta1", "resource": "grafanas"},
            "userInfo": {"username": "alice"},
            "object": object(spec), "oldObject": object(old),
        },
    })
}

#[tokio::test]
async fn whoever_applies_one_is_warned_unless_they_change_the_field() {
    let (server, _folder) = server(&json!({})).await;
    let config = |level: &str| json!({"config": {"log": {"level": level}}});
    let (old, new) = (config("info"), config("debug"));
    let with = |path: [&str; 2], value: Value| {
        let mut spec = config("debug");
        spec["deployment"]["spec"][path[0]][path[1]] = value;
        spec
    };
    let recreate = with(["strategy", "type"], json!("Recreate"));
    let surge = with(["strategy", "rollingUpdate"], json!({"maxSurge": 0}));
    let pods = with(["template", "spec"], json!({"volumes": []}));
    let cases = [
        ("another field", "UPDATE", &new, &old, true),
        ("as before with the field", "UPDATE", &surge, &surge, true),
        (
            "made again after a replacement",
            "CREATE",
            &new,
            &Value::Null,
            true,
        ),
        ("the field", "UPDATE", &recreate, &old, false),
        ("the field is removed", "UPDATE", &old, &recreate, false),
        ("the volumes", "UPDATE", &pods, &old, false),
        (
            "made with the field",
            "CREATE",
            &recreate,
            &Value::Null,
            false,
        ),
        ("a deletion", "DELETE", &Value::Null, &old, false),
    ];
    for (case, operation, spec, old, warns) in cases {
        let review = review(operation, spec, old);
        let answer = server.review("/validate", &review).await;
        assert_eq!(answer["allowed"], true, "{case}: {answer:#}");
        let warnings = answer["warnings"].as_array().cloned().unwrap_or_default();
        let Some([finding, field]) = warnings.first_chunk() else {
            assert!(!warns && warnings.is_empty(), "{case}: {answer:#}");
            continue;
        };
        assert!(warns && warnings.len() == 2, "{case}: {answer:#}");
        let begin = "rolling-update-overlap: Deployment main-deployment: claim \"web-data\"";
        assert!(finding.as_str().unwrap().starts_with(begin), "{finding}");
        let set = "Set spec.deployment.spec.strategy of Grafana main, from which its operator makes \
                   Deployment main-deployment.";
        assert_eq!(field, set);
        let silent = json!({"uid": "u", "allowed": true});
        assert_eq!(server.review("/mutate", &review).await, silent, "{case}");
    }
}

#[tokio::test]
async fn others_resources_and_what_the_policy_ignores_are_passed_over() {
    let (old, new) = (json!({"config": 1}), json!({"config": 2}));
    let silent = json!({"uid": "u", "allowed": true});
    let (server, folder) = server(&json!({})).await;
    let cases = [
        ("/request/name", json!("other")),
        ("/request/namespace", json!("other")),
        ("/request/kind/group", json!("example.com")),
        ("/request/kind/kind", json!("GrafanaFolder")),
        ("/request/subResource", json!("status")),
    ];
    for (path, value) in cases {
        let mut review = review("UPDATE", &new, &old);
        review["request"]["subResource"] = json!("");
        *review.pointer_mut(path).unwrap() = value;
        let answer = server.review("/validate", &review).await;
        assert_eq!(answer, silent, "{path}");
    }
    drop((server, folder));

    let annotations = json!({
        "multi-attach-guard.dev/ignore": "rolling-update-overlap",
        "multi-attach-guard.dev/reason": "one node",
    });
    let (server, _folder) = self::server(&annotations).await;
    let answer = server
        .review("/validate", &review("UPDATE", &new, &old))
        .await;
    assert_eq!(answer, silent);
}
