//! The commands in denials, and those on the page to which a denial refers.

use serde_json::json;

use crate::documents;
use crate::harness::{seen, until};
use crate::printed::between_backticks;
use crate::rollouts::{image, roll_again};
use crate::stage::{self, PATIENCE, Stage, USUAL, deployment};
use crate::world::Mode;

const CHANGE: [&str; 4] = ["set", "image", "deployment/web", "app=example.com/app:2"];

/// The denial of a change in the namespace of the stage. If its guard does not refuse, the denial
/// of the same change in another namespace.
fn denial(stage: &Stage, change: &[&str]) -> String {
    if stage.mode == Mode::Deny {
        return refused(stage, change);
    }
    let twin = Stage::new("twin", USUAL, Mode::Deny).unwrap();
    twin.starts(&deployment("web", &json!({})));
    refused(&twin, change).replace(&twin.namespace, &stage.namespace)
}

fn refused(stage: &Stage, change: &[&str]) -> String {
    let dry = [change, &["--dry-run=server"]].concat();
    until("the guard to refuse", PATIENCE, || {
        let output = stage.user(&dry, None);
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
pub(crate) fn a_change_to_what_is_at_fault(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    let denial = denial(stage, &CHANGE);
    stage.kubectl(&["cordon", &stage.node_of("web")]);
    stage.run(&command(&denial));
    let output = stage.user(&CHANGE, None).success();
    assert!(!output.stderr.contains("Warning"), "{output:#?}");
    stage.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
    assert_eq!(image(stage), "example.com/app:2");
    stage.end("the change is live");
}

/// Only one of its two pods can be on the volume's node.
pub(crate) fn a_change_to_more_pods_than_the_volume_can_have(stage: &Stage) {
    stage.apply(&deployment("web", &json!({"replicas": 2})));
    let denial = refused(stage, &CHANGE);
    stage.run(&command(&denial));
    stage.until_runs("web");
    stage.user(&CHANGE, None).success();
    stage.until_runs("web");
}

/// Server-side apply cannot remove the block that the API server has filled in.
pub(crate) fn recreate_by_server_side_apply(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    let manifest = stage.fill(&stage::recreated("web"));
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    let refused = stage.user(&apply, Some(&manifest)).status != 0;
    // If the guard is called, it repairs the object.
    assert_eq!(refused, stage.mode == Mode::Absent);
    for page in ["policy", "gitops", "rules"] {
        roll_again(stage);
        let command = documents::printed(page, |it| it.contains("\"rollingUpdate\":null"));
        let command = command.replace("deployment NAME", "deployment web");
        let own = format!("-n {}", stage.namespace);
        let command = command
            .replace("-n shop", &own)
            .replace("-n NAMESPACE", &own);
        stage.run(&command);
        stage.user(&apply, Some(&manifest)).success();
        stage.end("server-side apply of Recreate passes");
    }
}

/// After a drain, the node may be declared out of service; an override allows it earlier.
pub(crate) fn what_is_done_to_a_node_that_is_alive(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    let node = stage.node_of("web");
    let out = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
    let taint = ["taint", "node", &node, out];
    let denial = refused(stage, &taint);

    let program = "multi-attach-guard rules fencing-live-node";
    let drain = between_backticks(&stage.look(program));
    let mut drain = drain.iter().filter(|it| it.starts_with("kubectl drain"));
    stage.run(&drain.next().unwrap().replace("NODE", &node));
    until_passes(stage, &taint);
    stage.end("the taint passes");

    let other = stage.other_node(&node);
    stage.kubectl(&["taint", "node", &node, "node.kubernetes.io/out-of-service-"]);
    stage.until_runs("web");
    let denial = denial.replace(&node, &other);
    let taint = ["taint", "node", &other, out];
    refused(stage, &taint);
    let command = command(&denial);
    // Unchanged, the command lacks the reason, which only a person can know, and has no effect.
    stage.shell(&command);
    refused(stage, &taint);
    let keys = ["ignore", "until", "reason"].map(|key| format!("multi-attach-guard.dev/{key}-"));
    let again = ["annotate", "node", &other];
    stage.kubectl(&[&again[..], &keys.each_ref().map(String::as_str)].concat());
    stage.run(&command.replace("how you know", "its power is off"));
    until_passes(stage, &taint);
    stage.end("the taint passes");
}

fn until_passes(stage: &Stage, change: &[&str]) {
    until("the guard to let it pass", PATIENCE, || {
        stage.user(change, None).done()
    });
}

/// Waits until the namespace's guard no longer refuses the change, but warns about it.
pub(crate) fn until_warned(stage: &Stage) {
    let dry: Vec<&str> = [&CHANGE[..], &["--dry-run=server"]].concat();
    until("the guard to warn", PATIENCE, || {
        let output = stage.user(&dry, None);
        let warned = output.stderr.contains("Warning: rolling-update-overlap");
        seen(output.status == 0 && warned, output)
    });
    stage.end("the change passes with a warning");
}

/// Makes a Deployment whose changes are refused.
pub(crate) fn at_fault(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    refused(stage, &CHANGE);
}
