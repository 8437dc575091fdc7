//! The reviews in the README, and the effect of a policy on them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::running::{example, json_file, serve, serve_with_policy};

const DEPLOYMENT: &str = "/request/object";

#[tokio::test]
async fn the_example_is_answered_as_the_readme_says() {
    let server = serve(&[]).await;
    let answer = server.review("/validate", &example()).await;
    assert_eq!(answer, json_file("examples/answer.json")["response"]);
    let mutated = server.review("/mutate", &example()).await;
    let silence = json!({"uid": example()["request"]["uid"], "allowed": true});
    assert_eq!(mutated, silence, "the validating webhook refuses");
}

#[tokio::test]
async fn a_policy_that_repairs_makes_the_example_pass() {
    let policy = "examples/repair.yaml";
    let server = serve(&["--config", policy]).await;
    let answer = server.review("/mutate", &example()).await;
    assert_eq!(answer["allowed"], true, "{answer:#}");
    assert_eq!(answer["patchType"], "JSONPatch");
    let encoded = answer["patch"].as_str().unwrap();
    let patch: json_patch::Patch =
        serde_json::from_slice(&STANDARD.decode(encoded).unwrap()).unwrap();

    let mut repaired = example();
    json_patch::patch(repaired.pointer_mut(DEPLOYMENT).unwrap(), &patch).unwrap();
    let strategy = repaired.pointer("/request/object/spec/strategy");
    assert_eq!(strategy, Some(&json!({"type": "Recreate"})));
    for path in ["/mutate", "/validate"] {
        let again = server.review(path, &repaired).await;
        assert_eq!(again["allowed"], true, "{path}: {again:#}");
        assert_eq!(again["patch"], Value::Null, "{path}");
    }
}

#[tokio::test]
async fn what_is_harmless_passes_in_silence() {
    let claim = "/object/spec/template/spec/volumes/0/persistentVolumeClaim/claimName";
    let server = serve(&[]).await;
    for (path, at, value) in [
        ("/validate", claim, json!("pictures")),
        ("/validate", "/object/spec/template/spec/volumes", json!([])),
        ("/validate", "/operation", json!("DELETE")),
        ("/mutate", "/kind/kind", json!("Gadget")),
    ] {
        let mut review = example();
        *review["request"].pointer_mut(at).unwrap() = value;
        let uid = &review["request"]["uid"];
        let answer = server.review(path, &review).await;
        assert_eq!(answer, json!({"uid": uid, "allowed": true}), "{at}");
    }
}

#[tokio::test]
async fn what_was_asked_for_in_the_policys_place_leaves_a_trace() {
    const RULE: &str = "rolling-update-overlap";
    let cases = [
        ("ignore", RULE, "CREATE", true, Some("suppressed")),
        ("action", "ignore", "CREATE", true, Some("suppressed")),
        ("action", "warn", "CREATE", true, Some("lowered")),
        // An update would only get a warning in any case.
        ("action", "warn", "UPDATE", true, None),
        // The finding is not repaired here, so it is denied.
        ("action", "fix", "CREATE", false, None),
    ];
    let mut server = serve(&[]).await;
    for (key, value, operation, allowed, kept) in cases {
        let mut review = example();
        review["request"]["object"]["metadata"]["annotations"] = json!({
            format!("multi-attach-guard.dev/{key}"): value,
            "multi-attach-guard.dev/reason": "moved by hand",
        });
        review["request"]["operation"] = operation.into();
        if operation == "UPDATE" {
            review["request"]["oldObject"] = review["request"]["object"].clone();
        }
        let answer = server.review("/validate", &review).await;
        let trace = format!("{RULE} (moved by hand)");
        let case = format!("{key} {value} {operation}: {answer:#}");
        assert_eq!(answer["allowed"], allowed, "{case}");
        let mut kept_of_it = answer["auditAnnotations"].clone();
        let denied = kept_of_it.as_object_mut().and_then(|fields| fields.remove("denied"));
        assert_eq!(denied.is_some(), !allowed, "{case}");
        let expected = match kept {
            _ if !allowed => json!({}),
            Some(field) => json!({ field: trace }),
            None => Value::Null,
        };
        assert_eq!(kept_of_it, expected, "{case}");
        let is_silent = answer.get("warnings").is_none();
        assert_eq!(is_silent, !allowed || kept == Some("suppressed"), "{case}");
        let logged = server.logged("reviewed").await;
        assert_eq!(logged["user"], "alice", "{logged:#}");
        for field in ["suppressed", "lowered"] {
            let written = if kept == Some(field) { &trace } else { "" };
            assert_eq!(logged[field], written, "{field} {case}");
        }
    }
}

#[tokio::test]
async fn what_the_policy_spares_is_lowered_by_nobody() {
    let server = serve_with_policy("defaults: {existing: warn}\n").await;
    let mut review = example();
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["object"]["metadata"]["annotations"] = json!({
        "multi-attach-guard.dev/action": "warn",
        "multi-attach-guard.dev/reason": "moved by hand",
    });
    let mut old = review["request"]["object"].clone();
    old["spec"]["template"]["metadata"]["labels"]["was"] = "old".into();
    review["request"]["oldObject"] = old;
    let answer = server.review("/validate", &review).await;
    assert_eq!(answer["allowed"], true, "{answer:#}");
    assert!(answer["warnings"].is_array(), "{answer:#}");
    assert_eq!(answer["auditAnnotations"], Value::Null, "{answer:#}");
}

#[tokio::test]
async fn a_policy_that_only_warns_warns_once() {
    let server = serve_with_policy("defaults: {outcomes: {deadlock: warn}}\n").await;
    let answer = server.review("/validate", &example()).await;
    assert_eq!(answer["allowed"], true);
    let warnings = answer["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{answer:#}");
    assert!(warnings[0].as_str().unwrap().len() <= 120);
    let mutation = server.review("/mutate", &example()).await;
    assert_eq!(mutation["warnings"], Value::Null);
}
