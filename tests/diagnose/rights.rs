//! The output for users with few rights, and the rights that are needed to see everything.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::output::has;
use crate::harness::{seen, until};
use crate::incident::{self, Incident, PATIENCE, deployment};
use crate::rollouts::{image, roll_out};

/// The role in docs/runbook.md sees everything, and has no right that `diagnose` does not use.
pub(crate) fn the_role_of_the_runbook_sees_everything(incident: &Incident) {
    let runbook = include_str!("../../docs/runbook.md");
    let yaml = runbook.split("```yaml\n").nth(1).unwrap().split_once("```").unwrap().0;
    incident.cluster.plane.apply(&incident.namespace, yaml);
    let role: Value = serde_saphyr::from_str(yaml).unwrap();
    let name = role["metadata"]["name"].as_str().unwrap();
    let (role_of_it, user) = (format!("--clusterrole={name}"), "--user=on-call");
    incident.kubectl(&["create", "clusterrolebinding", name, &role_of_it, user]);
    incident.starts(&deployment("web", &json!({})));
    roll_out(incident, 2);
    incident.until("rollout-overlap");
    let (_, output) = incident.diagnose_as("on-call", &["--format", "json"]);
    let full: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(full["open"], json!([]), "{output}");
    let ways = incident::ways_out(&full["cases"][0]);
    assert_eq!(ways.len(), 3, "{output}");
    assert!(ways[0].ends_with("--to-revision=1"), "{output}");
    let blind: Value =
        serde_json::from_str(&incident.diagnose_as("nobody", &["--format", "json"]).1).unwrap();
    let unread: BTreeSet<&str> = blind["open"]
        .as_array()
        .unwrap()
        .iter()
        .map(|open| {
            let (_, rest) = open.as_str().unwrap().split_once("because the ").unwrap();
            rest.split_once(" could not be read").unwrap().0
        })
        .collect();
    let granted: BTreeSet<&str> = role["rules"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|rule| rule["resources"].as_array().unwrap())
        .map(|resource| resource.as_str().unwrap())
        .collect();
    assert_eq!(granted, unread);
    incident.uncordon();
}

/// The output for a developer who may read only one namespace, and the answers about names that do
/// not exist.
pub(crate) fn what_may_not_be_seen_is_said_and_the_rest_is_reported(incident: &Incident) {
    incident.apply(&incident::claim("idle", "none"));
    incident.starts(&deployment("web", &json!({})));
    for (name, code, sentence) in [
        ("web", 0, "web waits for no volume"),
        ("pvc/data", 0, "No pod waits for claim data."),
        ("idle", 0, "No pod uses claim idle, so nothing waits for it."),
        ("absent", 2, "There is no pod, no workload, no claim and no node \"absent\""),
        ("secret/data", 2, "\"secret\" is not a kind with volumes."),
    ] {
        let (status, output) = incident.diagnose(&[name]);
        assert_eq!(status, code, "{name}: {output}");
        assert!(output.contains(sentence), "{name}: {output}");
    }
    roll_out(incident, 2);
    incident.until("rollout-overlap");
    // A user who sees no volume and no node still sees the Event.
    let resources = "--resource=pods,persistentvolumeclaims,events,deployments.apps";
    incident.kubectl(&["create", "role", "reader", "--verb=get,list", resources]);
    let developer = ["--role=reader", "--user=developer"];
    incident.kubectl(&[&["create", "rolebinding", "reader"], &developer[..]].concat());
    let output = until("diagnose to report it to the developer", PATIENCE, || {
        let (status, output) = incident.diagnose_as("developer", &[]);
        seen(status == 1 && output.contains("(rollout-overlap)"), output)
    });
    let undo = output.lines().find(|line| line.contains("rollout undo"));
    let words = output.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "kubectl -n",
        "It is not known whether the node that has a volume is alive, because the nodes could not be read: ",
        "It is not known to which node a volume is attached",
    ] {
        has(&words, part);
    }
    let (status, unread) = incident.diagnose_as("nobody", &[]);
    assert_eq!(status, 2, "{unread}");
    has(&unread, "as far as could be read");
    // The number that the developer could not see is left out; the command looks it up itself.
    incident.run(undo.unwrap().trim());
    incident.until_nothing_waits();
    assert_eq!(image(incident), "example.com/app:1");
    incident.uncordon();
}
