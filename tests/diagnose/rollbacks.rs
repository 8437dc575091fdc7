//! Rollbacks that the guard must not refuse: for every kind with revisions, and for rollouts that
//! block each other.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::documents;
use crate::harness::output::has;
use crate::harness::{seen, until};
use crate::rollouts::{images, roll_out, set_image};
use crate::sharing::two_apart;
use crate::stage::{self, PATIENCE, Stage, deployment, merged, workload};

/// A template of no revision is refused; the template of a revision with a running pod is not.
fn goes_back(stage: &Stage, object: &Value) {
    let target = format!("{}/web", object["kind"].as_str().unwrap().to_lowercase());
    let image = |revision: usize| format!("app=example.com/app:{revision}");
    stage.apply(object);
    stage.until("too-many-replicas");
    stage.kubectl(&["set", "image", &target, &image(2)]);
    until("both revisions to have a pod", PATIENCE, || {
        let images = images(stage, &[]);
        let both = images.contains("app:1") && images.contains("app:2");
        seen(both, images)
    });
    until("the guard to refuse another template", PATIENCE, || {
        let another = ["set", "image", &target, &image(3), "--dry-run=server"];
        let said = stage.user(&another, None).stderr;
        seen(
            said.contains("multi-attach-guard rules replicas-share-volume"),
            said,
        )
    });
    let output = stage.user(&["rollout", "undo", &target], None).success();
    has(
        &output.stderr,
        "This is a rollback to ControllerRevision web-",
    );
    until("no pod of the second revision", PATIENCE, || {
        let images = images(stage, &[]);
        seen(!images.contains("app:2"), images)
    });
}

/// Pod 0 gets the volume: the controller first replaces the pod with the highest number, and
/// continues with pod 0 as soon as that one runs.
pub(crate) fn of_a_stateful_set(stage: &Stage) {
    let parallel = json!({"with": {"spec": {"podManagementPolicy": "Parallel"}}});
    let mut two = merged(two_apart(), &parallel);
    let second = workload("StatefulSet", "web", &two);
    two["replicas"] = json!(1);
    stage.starts(&workload("StatefulSet", "web", &two));
    goes_back(stage, &second);
}

pub(crate) fn of_a_daemon_set(stage: &Stage) {
    goes_back(stage, &workload("DaemonSet", "web", &json!({})));
}

/// Two Deployments with one claim, whose new pods wait for each other's old ones.
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

/// From the message of an Event alone, `diagnose` names the places to look at.
fn look_where_the_line_says(stage: &Stage) {
    let case = stage.until_case("rollout-overlap", "the Event", |case| {
        case["waiting"][0]["message"].is_string()
    });
    let [line, pod] = ["message", "pod"].map(|it| case["waiting"][0][it].as_str().unwrap());
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

/// Hours later, only the objects show what happened.
pub(crate) fn without_events(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    roll_out(stage, 2);
    look_where_the_line_says(stage);
    set_image(stage, 3);
    stage.kubectl(&["delete", "events", "--all"]);
    // The page says where to find the number of the running revision.
    let look = documents::printed("runbook", |it| it.contains("describe replicaset"));
    let runs = ".items[?(@.status.readyReplicas==1)].metadata.name";
    let runs = stage.field("replicaset", runs);
    let look = look
        .replace("shop", &stage.namespace)
        .replace("web-old", &runs);
    has(&stage.look(&look), "deployment.kubernetes.io/revision: 1");
    let case = stage.until("rollout-overlap");
    stage.leads_out(&case);
}
