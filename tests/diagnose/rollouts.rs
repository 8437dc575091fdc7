//! Rollouts that do not end, and one that does.

use serde_json::json;

use crate::documents;
use crate::harness;
use crate::incident::{self, Incident, deployment};
use crate::stalled::one_by_one;

/// Rolls out Deployment `web` so that its pod must leave its node.
pub(crate) fn roll_out(incident: &Incident, revision: usize) {
    let node = incident.node_of("web");
    incident.kubectl(&["cordon", &node]);
    set_image(incident, revision);
}

/// Restores the usual strategy of the Deployment.
pub(crate) fn roll_again(incident: &Incident) {
    let strategy = r#"[{"op":"replace","path":"/spec/strategy","value":{"type":"RollingUpdate"}}]"#;
    incident.kubectl(&["patch", "deployment/web", "--type=json", "-p", strategy]);
}

pub(crate) fn set_image(incident: &Incident, revision: usize) {
    let image = format!("app=example.com/app:{revision}");
    incident.kubectl(&["set", "image", "deployment/web", &image]);
}

/// Waits until a pod of this revision is pending, and no other pod.
fn until_waits(incident: &Incident, revision: usize) {
    let image = format!("example.com/app:{revision}");
    harness::until("the next revision to wait", incident::PATIENCE, || {
        let images = images(incident, &["--field-selector=status.phase=Pending"]);
        harness::seen(images == image, images)
    });
}

/// The images of these pods.
pub(crate) fn images(incident: &Incident, of: &[&str]) -> String {
    let path = "jsonpath={.items[*].spec.containers[0].image}";
    incident.kubectl(&[&["get", "pods", "-o", path], of].concat())
}

/// The image in the Deployment's template.
pub(crate) fn image(incident: &Incident) -> String {
    incident.field("deployment/web", ".spec.template.spec.containers[0].image")
}

/// Tries each way out of a rollout that cannot end, one after the other.
fn each_way_out(incident: &Incident, cause: &str, stick: impl Fn(usize), heal: impl Fn(usize)) {
    for way in 0..3 {
        stick(way);
        let case = incident.until(cause);
        let ways = incident::ways_out(&case);
        assert_eq!(ways.len(), 3, "{case:#}");
        for before in incident::commands(&case, "before") {
            incident.run(&before);
        }
        incident.run(&ways[way]);
        incident.until_nothing_waits();
        incident.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
        heal(way);
    }
}

/// Two rollouts get stuck in sequence, and the second one is paused.
pub(crate) fn a_rollout_that_overlaps(incident: &Incident) {
    let web = deployment("web", &json!({}));
    incident.starts(&web);
    each_way_out(
        incident,
        "rollout-overlap",
        |way| {
            roll_out(incident, 10 * way + 2);
            incident.until("rollout-overlap");
            set_image(incident, 10 * way + 3);
            until_waits(incident, 10 * way + 3);
            incident.kubectl(&["rollout", "pause", "deployment/web"]);
        },
        |way| {
            let expected = [1, 13, 23][way];
            assert_eq!(image(incident), format!("example.com/app:{expected}"));
            incident.uncordon();
            // Reverts the way out before the next one.
            roll_again(incident);
        },
    );
}

/// The scheduler assigns no node to a second pod of a ReadWriteOncePod volume.
pub(crate) fn a_rollout_of_a_volume_for_one_pod(incident: &Incident) {
    incident.starts(&deployment("web", &json!({})));
    incident.kubectl(&["set", "image", "deployment/web", "app=example.com/app:2"]);
    let unscheduled =
        incident.until_case("rollout-overlap", "the words of the scheduler", |case| {
            let message = case["waiting"][0]["message"].as_str().unwrap_or_default();
            message.contains("ReadWriteOncePod")
        });
    assert!(unscheduled["waiting"][0]["node"].is_null(), "{unscheduled:#}");
    // First the command that the runbook gives for this message, then the strategy.
    let undo =
        documents::printed("runbook", |command| command.ends_with("rollout undo deployment/NAME"))
            .replace("NAMESPACE", &incident.namespace)
            .replace("NAME", "web");
    incident.run(&undo);
    incident.until_nothing_waits();
    incident.kubectl(&["set", "image", "deployment/web", "app=example.com/app:2"]);
    let case = incident.until("rollout-overlap");
    incident.run(&incident::ways_out(&case)[1]);
    incident.until_nothing_waits();
    incident.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
}

pub(crate) fn an_update_that_moves_the_pod(incident: &Incident) {
    let on = |node: &str| deployment("web", &incident::on(node));
    incident.starts(&on(&incident.nodes[0]));
    each_way_out(
        incident,
        "moved-pin",
        |_| {
            let elsewhere = incident.other_node(&incident.node_of("web"));
            incident.apply(&on(&elsewhere));
        },
        |_| roll_again(incident),
    );
}

pub(crate) fn a_volume_on_its_way(incident: &Incident) {
    let slow = json!({"pod": {"terminationGracePeriodSeconds": 40}});
    incident.starts(&deployment("web", &incident::merged(one_by_one(), &slow)));
    roll_out(incident, 2);
    let case = incident.until("delay");
    let watch = incident.watch();
    incident.leads_out(&case);
    // `--watch` ends by itself once no pod waits.
    let output = watch.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("(delay)"), "{text}");
    let last = text.split_once("\nNo pod waits for a volume.\n").map(|(_, after)| after);
    // Other tests do things to nodes meanwhile, which may be to be known.
    assert!(last.is_some_and(|after| !after.contains("waits for a volume")), "{text}");
    incident.uncordon();
}
