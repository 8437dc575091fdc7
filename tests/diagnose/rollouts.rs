//! Rollouts that do not end, and one that does.

use serde_json::json;

use crate::documents;
use crate::harness;
use crate::stage::{self, Stage, deployment};
use crate::stalled::one_by_one;

/// Rolls out Deployment `web` so that its pod must leave its node.
pub(crate) fn roll_out(stage: &Stage, revision: usize) {
    let node = stage.node_of("web");
    stage.kubectl(&["cordon", &node]);
    set_image(stage, revision);
}

/// Restores the usual strategy of the Deployment.
pub(crate) fn roll_again(stage: &Stage) {
    let strategy = r#"[{"op":"replace","path":"/spec/strategy","value":{"type":"RollingUpdate"}}]"#;
    stage.kubectl(&["patch", "deployment/web", "--type=json", "-p", strategy]);
}

pub(crate) fn set_image(stage: &Stage, revision: usize) {
    let image = format!("app=example.com/app:{revision}");
    stage.kubectl(&["set", "image", "deployment/web", &image]);
}

/// Waits until a pod of this revision is pending, and no other pod.
fn until_waits(stage: &Stage, revision: usize) {
    let image = format!("example.com/app:{revision}");
    harness::until("the next revision to wait", stage::PATIENCE, || {
        let images = images(stage, &["--field-selector=status.phase=Pending"]);
        harness::seen(images == image, images)
    });
}

/// The images of these pods.
pub(crate) fn images(stage: &Stage, of: &[&str]) -> String {
    let path = "jsonpath={.items[*].spec.containers[0].image}";
    stage.kubectl(&[&["get", "pods", "-o", path], of].concat())
}

/// The image in the Deployment's template.
pub(crate) fn image(stage: &Stage) -> String {
    stage.field("deployment/web", ".spec.template.spec.containers[0].image")
}

/// Tries each way out of a rollout that cannot end, one after the other.
fn each_way_out(stage: &Stage, cause: &str, stick: impl Fn(usize), heal: impl Fn(usize)) {
    for way in 0..3 {
        stick(way);
        let case = stage.until(cause);
        let ways = stage::ways_out(&case);
        assert_eq!(ways.len(), 3, "{case:#}");
        for before in stage::commands(&case, "before") {
            stage.run(&before);
        }
        stage.run(&ways[way]);
        stage.until_nothing_waits();
        stage.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
        heal(way);
    }
}

/// Two rollouts get stuck in sequence, and the second one is paused.
pub(crate) fn a_rollout_that_overlaps(stage: &Stage) {
    let web = deployment("web", &json!({}));
    stage.starts(&web);
    each_way_out(
        stage,
        "rollout-overlap",
        |way| {
            roll_out(stage, 10 * way + 2);
            stage.until("rollout-overlap");
            set_image(stage, 10 * way + 3);
            until_waits(stage, 10 * way + 3);
            stage.kubectl(&["rollout", "pause", "deployment/web"]);
        },
        |way| {
            let expected = [1, 13, 23][way];
            assert_eq!(image(stage), format!("example.com/app:{expected}"));
            stage.uncordon();
            // Reverts the way out before the next one.
            roll_again(stage);
        },
    );
}

/// The scheduler assigns no node to a second pod of a ReadWriteOncePod volume.
pub(crate) fn a_rollout_of_a_volume_for_one_pod(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    stage.kubectl(&["set", "image", "deployment/web", "app=example.com/app:2"]);
    let case = stage.until_case("rollout-overlap", "the words of the scheduler", |case| {
        let message = case["waiting"][0]["message"].as_str().unwrap_or_default();
        message.contains("ReadWriteOncePod")
    });
    assert!(case["waiting"][0]["node"].is_null(), "{case:#}");
    // First the command that the runbook gives for this message, then the strategy.
    let undo = documents::printed("runbook", |it| it.ends_with("rollout undo deployment/NAME"));
    let undo = undo.replace("NAMESPACE", &stage.namespace);
    stage.run(&undo.replace("NAME", "web"));
    stage.until_nothing_waits();
    stage.kubectl(&["set", "image", "deployment/web", "app=example.com/app:2"]);
    let case = stage.until("rollout-overlap");
    stage.run(&stage::ways_out(&case)[1]);
    stage.until_nothing_waits();
    stage.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
}

pub(crate) fn an_update_that_moves_the_pod(stage: &Stage) {
    let on = |node: &str| deployment("web", &stage::on(node));
    stage.starts(&on(&stage.nodes[0]));
    each_way_out(
        stage,
        "moved-pin",
        |_| {
            let elsewhere = stage.other_node(&stage.node_of("web"));
            stage.apply(&on(&elsewhere));
        },
        |_| roll_again(stage),
    );
}

pub(crate) fn a_volume_on_its_way(stage: &Stage) {
    let slow = json!({"pod": {"terminationGracePeriodSeconds": 40}});
    stage.starts(&deployment("web", &stage::merged(one_by_one(), &slow)));
    roll_out(stage, 2);
    let case = stage.until("delay");
    let watch = stage.watch();
    stage.leads_out(&case);
    // `--watch` ends by itself once no pod waits.
    let output = watch.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("(delay)"), "{text}");
    assert!(text.ends_with("No pod waits for a volume.\n"), "{text}");
    stage.uncordon();
}
