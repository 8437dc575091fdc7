//! The commands in denials, and those on the page to which a denial refers.

use serde_json::json;

use crate::documents;
use crate::harness::{seen, until};
use crate::incident::{self, Incident, PATIENCE, USUAL, deployment};
use crate::incident_cluster::Mode;
use crate::printed::between_backticks;
use crate::rollouts::{image, roll_again};

const CHANGE: [&str; 4] = ["set", "image", "deployment/web", "app=example.com/app:2"];

/// The denial of a change in the namespace of the incident. If its guard does not refuse, the
/// denial of the same change in another namespace.
fn denial(incident: &Incident, change: &[&str]) -> String {
    if incident.mode == Mode::Deny {
        return refused(incident, change);
    }
    let twin = Incident::new("twin", USUAL, Mode::Deny).unwrap();
    twin.starts(&deployment("web", &json!({})));
    refused(&twin, change).replace(&*twin.namespace, &incident.namespace)
}

fn refused(incident: &Incident, change: &[&str]) -> String {
    let dry = [change, &["--dry-run=server"]].concat();
    until("the guard to refuse", PATIENCE, || {
        let output = incident.user(&dry, None);
        match output.stderr.split_once("denied the request: ") {
            Some((_, denial)) => Ok(denial.trim_end().to_owned()),
            None => Err(format!("{output:#?}")),
        }
    })
}

/// The only command in a denial.
fn command(denial: &str) -> String {
    match between_backticks(denial).as_slice() {
        [command] => command.clone(),
        other => panic!("{other:?} in {denial}"),
    }
}

/// After the command in the denial, the rollout of the change succeeds.
pub(crate) fn a_change_to_what_is_at_fault(incident: &Incident) {
    incident.starts(&deployment("web", &json!({})));
    let denial = denial(incident, &CHANGE);
    incident.kubectl(&["cordon", &incident.node_of("web")]);
    incident.run(&command(&denial));
    let output = incident.user(&CHANGE, None).success();
    assert!(!output.stderr.contains("Warning"), "{output:#?}");
    incident.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
    assert_eq!(image(incident), "example.com/app:2");
    incident.end("the change is live");
}

/// Only one of its two pods can be on the volume's node.
pub(crate) fn a_change_to_more_pods_than_the_volume_can_have(incident: &Incident) {
    incident.apply(&deployment("web", &json!({"replicas": 2})));
    let denial = refused(incident, &CHANGE);
    incident.run(&command(&denial));
    incident.until_runs("web");
    incident.user(&CHANGE, None).success();
    incident.until_runs("web");
}

/// Server-side apply cannot remove the block that the API server has filled in.
pub(crate) fn recreate_by_server_side_apply(incident: &Incident) {
    incident.starts(&deployment("web", &json!({})));
    let manifest = incident.fill(&incident::recreated("web"));
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    let refused = incident.user(&apply, Some(&manifest)).status != 0;
    // If the guard is called, it repairs the object.
    assert_eq!(refused, incident.mode == Mode::Absent);
    for page in ["policy", "gitops", "rules"] {
        roll_again(incident);
        let own = format!("-n {}", incident.namespace);
        let command = documents::printed(page, |line| {
            line.contains("{\"strategy\":") && line.contains("\"rollingUpdate\":null")
        })
        .replace("deployment NAME", "deployment web")
        .replace("-n shop", &own)
        .replace("-n NAMESPACE", &own);
        incident.run(&command);
        incident.user(&apply, Some(&manifest)).success();
        incident.end("server-side apply of Recreate passes");
    }
}

/// After a drain, the node may be declared out of service; an override allows it earlier.
pub(crate) fn what_is_done_to_a_node_that_is_alive(incident: &Incident) {
    incident.starts(&deployment("web", &json!({})));
    let node = incident.node_of("web");
    let out = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
    let taint = ["taint", "node", &node, out];
    let denial = refused(incident, &taint);

    let advice = between_backticks(&incident.look("multi-attach-guard rules fencing-live-node"));
    let mut drain = advice.iter().filter(|command| command.starts_with("kubectl drain"));
    incident.run(&drain.next().unwrap().replace("NODE", &node));
    until_passes(incident, &taint);
    incident.end("the taint passes");

    let other = incident.other_node(&node);
    incident.kubectl(&["taint", "node", &node, "node.kubernetes.io/out-of-service-"]);
    incident.until_runs("web");
    let other_taint = ["taint", "node", &other, out];
    refused(incident, &other_taint);
    let command = command(&denial.replace(&node, &other));
    // Unchanged, the command lacks the reason, which only a person can know, and has no effect.
    incident.shell(&command);
    refused(incident, &other_taint);
    let keys = ["ignore", "until", "reason"].map(|key| format!("multi-attach-guard.dev/{key}-"));
    let again = ["annotate", "node", &other];
    incident.kubectl(&[&again[..], &keys.each_ref().map(String::as_str)].concat());
    incident.run(&command.replace("how you know", "its power is off"));
    until_passes(incident, &other_taint);
    incident.end("the taint passes");
    incident.kubectl(&["taint", "node", &other, "node.kubernetes.io/out-of-service-"]);
}

fn until_passes(incident: &Incident, change: &[&str]) {
    until("the guard to let it pass", PATIENCE, || incident.user(change, None).done());
}

/// Waits until the namespace's guard no longer refuses the change, but warns about it.
pub(crate) fn until_warned(incident: &Incident) {
    let dry: Vec<&str> = [&CHANGE[..], &["--dry-run=server"]].concat();
    until("the guard to warn", PATIENCE, || {
        let output = incident.user(&dry, None);
        let warned = output.stderr.contains("Warning: rolling-update-overlap");
        seen(output.status == 0 && warned, output)
    });
    incident.end("the change passes with a warning");
}

/// Makes a Deployment whose changes are refused.
pub(crate) fn at_fault(incident: &Incident) {
    incident.starts(&deployment("web", &json!({})));
    refused(incident, &CHANGE);
}
