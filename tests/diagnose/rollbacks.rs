//! Ways back that the guard must not stand in: of every kind that has revisions, and of
//! rollouts that keep each other from ending.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::documents;
use crate::harness::{Output, until};
use crate::rollouts::{roll_out, set_image};
use crate::stage::{self, PATIENCE, Stage, apart, deployment, merged, stateful_set, workload};

/// Whether the guard says that this is a rollback.
fn is_known(output: &Output) -> bool {
    output.status == 0
        && output
            .stderr
            .contains("This is a rollback to ControllerRevision web-")
}

/// A template that is no revision's is refused, and the one whose pod runs is not.
fn goes_back(stage: &Stage, object: &Value) {
    let target = format!("{}/web", object["kind"].as_str().unwrap().to_lowercase());
    let image = |revision: usize| format!("app=example.com/app:{revision}");
    stage.apply(object);
    stage.until("too-many-replicas");
    stage.kubectl(&["set", "image", &target, &image(2)]);
    let waiting = [
        "get",
        "pods",
        "-o",
        "jsonpath={.items[*].spec.containers[0].image}",
    ];
    until("both revisions to have a pod", PATIENCE, || {
        let images = stage.kubectl(&waiting);
        let both = images.contains("app:1") && images.contains("app:2");
        both.then_some(()).ok_or(images)
    });
    until("the guard to refuse another template", PATIENCE, || {
        let output = stage.user(
            &["set", "image", &target, &image(3), "--dry-run=server"],
            None,
        );
        let refused = output
            .stderr
            .contains("multi-attach-guard rules replicas-share-volume");
        refused.then_some(()).ok_or_else(|| format!("{output:#?}"))
    });
    let output = stage.user(&["rollout", "undo", &target], None);
    assert!(is_known(&output), "{output:#?}");
    until("no pod of the second revision", PATIENCE, || {
        let images = stage.kubectl(&waiting);
        (!images.contains("app:2")).then_some(()).ok_or(images)
    });
}

/// Pod 0 gets the volume: the controller replaces the pod with the highest number first, and
/// goes on to pod 0 as soon as that one runs.
pub(crate) fn of_a_stateful_set(stage: &Stage) {
    let set = |replicas: u32| {
        let pods = json!({"spec": {"replicas": replicas, "podManagementPolicy": "Parallel"}});
        merged(merged(stateful_set(), &pods), &apart())
    };
    stage.starts(&set(1));
    goes_back(stage, &set(2));
}

pub(crate) fn of_a_daemon_set(stage: &Stage) {
    goes_back(stage, &workload("DaemonSet", "web", &json!({})));
}

/// Two Deployments on one claim, whose new pods wait for each other's old one.
pub(crate) fn of_two_rollouts(stage: &Stage) {
    let both = ["web", "api"];
    stage.kubectl(&["cordon", &stage.nodes[1]]);
    for name in both {
        stage.starts(&deployment(name, &json!({})));
    }
    stage.uncordon();
    stage.kubectl(&["cordon", &stage.nodes[0]]);
    for name in both {
        let target = format!("deployment/{name}");
        stage.kubectl(&["set", "image", &target, "app=example.com/app:2"]);
    }
    let cases = stage.until_all(&["rollout-overlap", "rollout-overlap"]);
    for case in cases {
        stage.run(&stage::ways_out(&case)[0]);
    }
    stage.until_nothing_waits();
}

/// With nothing but the line of an Event, `diagnose` says where to look.
fn look_where_the_line_says(stage: &Stage) {
    let waiting = until("the Event", PATIENCE, || {
        let waiting = stage.until("rollout-overlap")["waiting"][0].clone();
        if waiting["message"].is_string() {
            Ok(waiting)
        } else {
            Err(waiting.to_string())
        }
    });
    let [line, pod] = ["message", "pod"].map(|field| waiting[field].as_str().unwrap());
    let mut lines = documents::explained_lines();
    lines.push(line.to_owned());
    let mut seen = BTreeSet::new();
    for line in lines {
        let line = line.replace('\'', "'\\''");
        let explained = stage.shell(&format!(
            "multi-attach-guard diagnose --explain '{line}' -o json"
        ));
        let explained: Value = serde_json::from_str(&explained).unwrap();
        for command in explained["look"].as_array().unwrap() {
            let filled = [
                ("NAMESPACE", &*stage.namespace),
                ("POD", pod),
                ("CLAIM", "data"),
            ];
            let command = command.as_str().unwrap().to_owned();
            let command = filled.iter().fold(command, |it, (place, name)| {
                it.replace(&format!(" {place} "), &format!(" {name} "))
                    .replace(&format!("/{place}"), &format!("/{name}"))
            });
            let command = command.replace(" VOLUME", &format!(" {}", stage.volume));
            if seen.insert(command.clone()) {
                stage.look(&command);
            }
        }
    }
}

/// Hours later, nothing but the objects says what happened.
pub(crate) fn without_events(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    roll_out(stage, 2);
    look_where_the_line_says(stage);
    set_image(stage, 3);
    stage.kubectl(&["delete", "events", "--all"]);
    // The page says where the number of the revision that runs is seen.
    let look = documents::printed("runbook", |it| it.contains("describe replicaset"));
    let runs = "jsonpath={.items[?(@.status.readyReplicas==1)].metadata.name}";
    let runs = stage.kubectl(&["get", "replicaset", "-o", runs]);
    let look = look
        .replace("shop", &stage.namespace)
        .replace("web-old", &runs);
    assert!(
        stage
            .look(&look)
            .contains("deployment.kubernetes.io/revision: 1")
    );
    let case = stage.until("rollout-overlap");
    stage.leads_out(&case);
}
