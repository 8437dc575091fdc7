//! The component that warns on custom resources of operators.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::harness::{self, Needs};
use crate::installed::{DEADLINE, account, define_kind, guard, register};
use crate::repository;
use crate::requests::{claim, of_claim, volume, workload};

#[test]
fn its_rules_are_those_of_the_operators_that_are_known() {
    let read = |path: &str| -> Value {
        serde_saphyr::from_str(&fs::read_to_string(repository(path)).unwrap()).unwrap()
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let operators = read("crates/engine/src/verdict/operators.yaml");
    let known: BTreeSet<(String, String)> = (operators["operators"].as_array().unwrap().iter())
        .map(|it| (text(&it["group"]), text(&it["resource"])))
        .collect();
    let path = "manifests/components/custom-resources/custom-resources-webhook.yaml";
    let component = read(path);
    let mut sent = BTreeSet::new();
    for rule in component["webhooks"][0]["rules"].as_array().unwrap() {
        for resource in rule["resources"].as_array().unwrap() {
            let is_new = sent.insert((text(&rule["apiGroups"][0]), text(resource)));
            assert!(is_new, "{resource} twice");
        }
    }
    assert_eq!(sent, known, "{path}");
}

/// A control plane of its own: webhooks are for the whole cluster.
#[test]
fn kubectl_shows_the_warning_until_the_field_is_set() {
    let Some(plane) = harness::start_control_plane(Needs::ApiServer) else {
        return;
    };
    account(&plane);
    let group = "grafana.integreatly.org";
    define_kind(&plane, group, "v1beta1", "Grafana");
    let namespace = plane.namespace("custom");
    let kubectl = |arguments: &[&str], stdin: Option<&Value>| {
        let arguments = [&["-n", &namespace], arguments].concat();
        let stdin = stdin.map(Value::to_string);
        plane.kubectl(&arguments, stdin.as_deref()).success()
    };
    let grafana = |spec: Value| {
        json!({
            "apiVersion": format!("{group}/v1beta1"), "kind": "Grafana",
            "metadata": {"name": "main"}, "spec": spec,
        })
    };
    for object in [volume("one"), claim("one"), grafana(json!({}))] {
        kubectl(&["apply", "-f", "-"], Some(&object));
    }
    let uid = kubectl(
        &["get", "grafana", "main", "-o=jsonpath={.metadata.uid}"],
        None,
    );
    let owner = json!({"metadata": {"ownerReferences": [{
        "apiVersion": format!("{group}/v1beta1"), "kind": "Grafana", "name": "main",
        "uid": uid.stdout, "controller": true,
    }]}});
    let made = workload("Deployment", "main-deployment", &of_claim("one"), &owner);
    plane.apply(&namespace, &made);

    let guard = guard(&plane);
    register(&plane, &guard, "custom-resources");
    let apply = ["apply", "-f", "-"];
    let set = "Warning: Set spec.deployment.spec.strategy of Grafana main";
    let mut changes = 0;
    // The API server learns of kinds and webhooks through caches.
    harness::wait_until("the warning", DEADLINE, || {
        changes += 1;
        let said = kubectl(
            &apply,
            Some(&grafana(json!({"version": changes.to_string()}))),
        );
        let is_warned = said
            .stderr
            .contains("Warning: rolling-update-overlap: Deployment")
            && said.stderr.contains(set);
        is_warned.then_some(()).ok_or(said.stderr)
    })
    .unwrap();
    let annotated = kubectl(&["annotate", "grafana", "main", "note=new"], None);
    assert_eq!(annotated.stderr, "", "the spec is as before");
    let recreate = json!({"deployment": {"spec": {"strategy": {"type": "Recreate"}}}});
    let cured = kubectl(&apply, Some(&grafana(recreate)));
    assert_eq!(cured.stderr, "", "the field is set");
}
