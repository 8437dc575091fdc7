//! Rollbacks that the guard must not refuse: for every kind with revisions, and for rollouts that
//! block each other.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::documents;
use crate::harness::output::has;
use crate::harness::{seen, until};
use crate::incident::{self, Incident, PATIENCE, deployment, merged, workload};
use crate::rollouts::{images, roll_out, set_image};
use crate::sharing::two_apart;

/// A template of no revision is refused; the template of a revision with a running pod is not.
fn goes_back(incident: &Incident, object: &Value) {
    let target = format!("{}/web", object["kind"].as_str().unwrap().to_lowercase());
    let image = |revision: usize| format!("app=example.com/app:{revision}");
    incident.apply(object);
    incident.until("too-many-replicas");
    incident.kubectl(&["set", "image", &target, &image(2)]);
    until("both revisions to have a pod", PATIENCE, || {
        let images = images(incident, &[]);
        let both = images.contains("app:1") && images.contains("app:2");
        seen(both, images)
    });
    until("the guard to refuse another template", PATIENCE, || {
        let another = ["set", "image", &target, &image(3), "--dry-run=server"];
        let said = incident.user(&another, None).stderr;
        seen(said.contains("multi-attach-guard rules replicas-share-volume"), said)
    });
    let output = incident.user(&["rollout", "undo", &target], None).success();
    has(&output.stderr, "This is a rollback to ControllerRevision web-");
    until("no pod of the second revision", PATIENCE, || {
        let images = images(incident, &[]);
        seen(!images.contains("app:2"), images)
    });
}

/// Pod 0 gets the volume: the controller first replaces the pod with the highest number, and
/// continues with pod 0 as soon as that one runs.
pub(crate) fn of_a_stateful_set(incident: &Incident) {
    let parallel = json!({"with": {"spec": {"podManagementPolicy": "Parallel"}}});
    let mut two = merged(two_apart(), &parallel);
    let second = workload("StatefulSet", "web", &two);
    two["replicas"] = json!(1);
    incident.starts(&workload("StatefulSet", "web", &two));
    goes_back(incident, &second);
}

pub(crate) fn of_a_daemon_set(incident: &Incident) {
    goes_back(incident, &workload("DaemonSet", "web", &json!({})));
}

/// Two Deployments with one claim, whose new pods wait for each other's old ones.
pub(crate) fn of_two_rollouts(incident: &Incident) {
    let both = ["web", "api"];
    incident.kubectl(&["cordon", &incident.nodes[1]]);
    for name in both {
        incident.starts(&deployment(name, &json!({})));
    }
    incident.uncordon();
    incident.kubectl(&["cordon", &incident.nodes[0]]);
    for name in both {
        let target = format!("deployment/{name}");
        incident.kubectl(&["set", "image", &target, "app=example.com/app:2"]);
    }
    let cases = incident.until_all(&["rollout-overlap", "rollout-overlap"]);
    for case in cases {
        incident.run(&incident::ways_out(&case)[0]);
    }
    incident.until_nothing_waits();
}

/// From the message of an Event alone, `diagnose` names the places to look at.
fn look_where_the_line_says(incident: &Incident) {
    let case = incident.until_case("rollout-overlap", "the Event", |case| {
        case["waiting"][0]["message"].is_string()
    });
    let [message, pod] =
        ["message", "pod"].map(|field| case["waiting"][0][field].as_str().unwrap());
    let mut lines = documents::explained_lines();
    lines.push(message.to_owned());
    let mut seen = BTreeSet::new();
    for line in lines {
        let quoted = line.replace('\'', "'\\''");
        let explain = format!("multi-attach-guard diagnose --explain '{quoted}' -o json");
        let explained: Value = serde_json::from_str(&incident.shell(&explain)).unwrap();
        for look in explained["known"][0]["look"].as_array().unwrap() {
            let filled = [("NAMESPACE", &*incident.namespace), ("POD", pod), ("CLAIM", "data")];
            let command = filled
                .iter()
                .fold(look.as_str().unwrap().to_owned(), |command, (place, name)| {
                    ["-n ", " ", "/"].iter().fold(command, |command, before| {
                        let end = if *before == " " { " " } else { "" };
                        command.replace(
                            &format!("{before}{place}{end}"),
                            &format!("{before}{name}{end}"),
                        )
                    })
                })
                .replace(" VOLUME", &format!(" {}", incident.volume));
            if seen.insert(command.clone()) {
                incident.look(&command);
            }
        }
    }
}

/// Hours later, only the objects show what happened.
pub(crate) fn without_events(incident: &Incident) {
    incident.starts(&deployment("web", &json!({})));
    roll_out(incident, 2);
    look_where_the_line_says(incident);
    set_image(incident, 3);
    incident.kubectl(&["delete", "events", "--all"]);
    // The page says where to find the number of the running revision.
    let runs = incident.field("replicaset", ".items[?(@.status.readyReplicas==1)].metadata.name");
    let look = documents::printed("runbook", |command| command.contains("describe replicaset"))
        .replace("shop", &incident.namespace)
        .replace("web-old", &runs);
    has(&incident.look(&look), "deployment.kubernetes.io/revision: 1");
    let case = incident.until("rollout-overlap");
    incident.leads_out(&case);
}
