//! What `audit` prints for objects that live, each command run as it stands.

use serde_json::{Value, json};

use crate::harness::fake_nodes::ZONAL_DRIVER;
use crate::stage::{Stage, autoscaler, deployment, merged, workload};

/// The findings of an audit of the namespace: the kind and name of the object, and the command.
fn audit(stage: &Stage) -> Vec<(String, Option<String>)> {
    let namespace = &stage.namespace;
    let line = format!("multi-attach-guard audit -n {namespace} --exit-zero --format json");
    let report: Value = serde_json::from_str(&stage.printed(&line)).unwrap();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .map(|it| {
            let object = &it["object"];
            let object = format!("{} {}", word(&object["kind"]), word(&object["name"]));
            (object, it["command"].as_str().map(str::to_owned))
        })
        .collect()
}

/// Runs what the audit of these objects prints until it prints no command any more. `finds` is
/// what it finds first; those with a command stand once for each command.
fn repair(stage: &Stage, objects: &[Value], finds: &[(&str, bool)]) {
    for object in objects {
        stage.apply(object);
    }
    let found = audit(stage);
    let seen: Vec<(&str, bool)> = found
        .iter()
        .map(|(object, command)| (object.as_str(), command.is_some()))
        .collect();
    assert_eq!(seen, finds, "{found:#?}");
    for _ in 0..finds.len() {
        let Some(command) = audit(stage).into_iter().find_map(|(_, command)| command) else {
            break;
        };
        stage.run(&command);
        stage.end("the audit finds it no more");
    }
    let left = audit(stage);
    assert!(left.iter().all(|(_, it)| it.is_none()), "{left:#?}");
    for object in objects.iter().rev() {
        stage.delete(object);
    }
}

pub(crate) fn what_lives(stage: &Stage) {
    let replicas = |count: u32| json!({"spec": {"replicas": count}});
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    let cured = &[("Deployment web", true)];
    repair(stage, &[deployment("web", &json!({}))], cured);
    repair(stage, &[deployment("web", &replicas(0))], cured);
    // Both findings are cured by one command.
    repair(
        stage,
        &[deployment("web", &replicas(2))],
        &[("Deployment web", true), ("Deployment web", true)],
    );
    let two = merged(deployment("web", &replicas(2)), &recreate);
    repair(stage, &[two], cured);
    // Its pods may be on several nodes, and each update starts beside one of them.
    let set =
        json!({"spec": {"replicas": 2, "serviceName": "web", "podManagementPolicy": "Parallel"}});
    let set = workload("StatefulSet", "web", &set);
    repair(stage, &[set], &[("StatefulSet web", false)]);
    // The template of a Job cannot be changed.
    let job = json!({"spec": {"parallelism": 2, "completions": 2}});
    let job = workload("Job", "web", &job);
    repair(stage, &[job], &[("Job web", false)]);
    let set = workload("ReplicaSet", "web", &replicas(2));
    repair(stage, &[set], &[("ReplicaSet web", true)]);
    let set = workload("DaemonSet", "web", &json!({}));
    repair(stage, &[set], &[("DaemonSet web", false)]);
    repair(
        stage,
        &[deployment("web", &recreate), autoscaler(1)],
        &[("HorizontalPodAutoscaler web", false)],
    );
    let both = ["web", "backup"].map(|name| deployment(name, &recreate));
    repair(stage, &both, &[("Deployment web", false)]);
    mislabelled(stage);
}

/// A volume whose modes its driver refuses to attach anywhere: nothing in a workload helps.
fn mislabelled(stage: &Stage) {
    let name = format!("{}-shared", stage.namespace);
    let shared = json!({"accessModes": ["ReadWriteMany"], "storageClassName": "by-hand"});
    let size = json!({"storage": "1Gi"});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {"capacity": size, "csi": {"driver": ZONAL_DRIVER, "volumeHandle": name}}});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "shared"},
        "spec": {"resources": {"requests": size}, "volumeName": name}});
    for object in [volume, claim] {
        stage.apply(&merged(object, &json!({ "spec": shared })));
    }
    let bound = "--for=jsonpath={.status.phase}=Bound";
    stage.kubectl(&["wait", bound, "--timeout=120s", "pvc/shared"]);
    let volumes = [json!({"name": "data", "persistentVolumeClaim": {"claimName": "shared"}})];
    let uses = json!({"spec": {"replicas": 2, "template": {"spec": {"volumes": volumes}}}});
    repair(
        stage,
        &[deployment("web", &uses)],
        &[
            ("Deployment web", false),
            ("PersistentVolumeClaim shared", false),
        ],
    );
}
