//! The commands that `audit` prints for live objects, each run unchanged.

use serde_json::{Value, json};

use crate::harness::fake_nodes::ZONAL_DRIVER;
use crate::harness::shorthand::Claim;
use crate::incident::{Incident, autoscaler, deployment, recreated, workload};

/// The findings of an audit of the namespace: the kind and name of the object, and the command.
fn audit(incident: &Incident) -> Vec<(String, Option<String>)> {
    let namespace = &incident.namespace;
    let line = format!("multi-attach-guard audit -n {namespace} --exit-zero --format json");
    let report: Value = serde_json::from_str(&incident.printed(&line)).unwrap();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| {
            let object = &finding["object"];
            let name = format!("{} {}", word(&object["kind"]), word(&object["name"]));
            (name, finding["command"].as_str().map(str::to_owned))
        })
        .collect()
}

/// Runs the commands that the audit of these objects prints, until it prints none, and then no pod
/// waits. `finds` are its first findings, and whether each has a command.
fn repair(incident: &Incident, objects: &[Value], finds: &[(&str, bool)]) {
    for object in objects {
        incident.apply(object);
    }
    let found = audit(incident);
    let seen: Vec<(&str, bool)> =
        found.iter().map(|(object, command)| (object.as_str(), command.is_some())).collect();
    assert_eq!(seen, finds, "{found:#?}");
    for _ in 0..finds.len() {
        let Some(command) = audit(incident).into_iter().find_map(|(_, command)| command) else {
            break;
        };
        incident.run(&command);
        incident.end("the audit finds it no more");
    }
    let left = audit(incident);
    assert!(left.iter().all(|(_, command)| command.is_none()), "{left:#?}");
    // A ReplicaSet does not replace the pods that it has.
    let replaces = objects.iter().all(|object| object["kind"] != "ReplicaSet");
    if replaces && finds.iter().all(|(_, is_cured)| *is_cured) {
        incident.until_nothing_waits();
    }
    for object in objects.iter().rev() {
        incident.delete(object);
    }
}

pub(crate) fn what_lives(incident: &Incident) {
    let parallel = json!({"podManagementPolicy": "Parallel"});
    for (kind, further, finds) in [
        ("Deployment", json!({}), &[true][..]),
        ("Deployment", json!({"replicas": 0}), &[true]),
        // One command cures both findings.
        ("Deployment", json!({"replicas": 2}), &[true, true]),
        ("Deployment", json!({"replicas": 2, "strategy": "Recreate"}), &[true]),
        ("StatefulSet", json!({"replicas": 2, "with": {"spec": parallel}}), &[true]),
        ("Job", json!({"replicas": 2, "with": {"spec": {"completions": 2}}}), &[true]),
        ("ReplicaSet", json!({"replicas": 2}), &[true]),
        ("DaemonSet", json!({}), &[false]),
    ] {
        let name = format!("{kind} web");
        let finds: Vec<_> = finds.iter().map(|cured| (name.as_str(), *cured)).collect();
        repair(incident, &[workload(kind, "web", &further)], &finds);
    }
    repair(incident, &[recreated("web"), autoscaler(1)], &[("HorizontalPodAutoscaler web", true)]);
    let both = ["backup", "web"].map(recreated);
    incident.starts(&both[0]);
    repair(incident, &both, &[("Deployment web", true)]);
    let backup = json!({"with": {"spec": {"schedule": "0 0 29 2 *"}}});
    let backup = workload("CronJob", "backup", &backup);
    repair(incident, &[recreated("web"), backup], &[("CronJob backup", true)]);
    mislabelled(incident);
}

/// A volume whose modes its driver attaches nowhere: no change of a workload helps.
fn mislabelled(incident: &Incident) {
    let shared = Claim::with_mode("ReadWriteMany");
    for object in shared.bound_in(&incident.namespace, "shared", ["by-hand", ZONAL_DRIVER]) {
        incident.apply(&object);
    }
    incident.until_phase("pvc/shared", "Bound");
    let uses = json!({"replicas": 2, "uses": ["shared"]});
    repair(
        incident,
        &[deployment("web", &uses)],
        &[("Deployment web", false), ("PersistentVolumeClaim shared", false)],
    );
}
