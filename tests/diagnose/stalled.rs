//! What should be over and is not: pods that do not end, volumes that nobody attaches or
//! unmounts.

use serde_json::{Value, json};

use crate::harness::NodeSpec;
use crate::harness::fake_nodes::HANGS;
use crate::rollouts::set_image;
use crate::stage::{self, Stage, beside_web, deployment, merged, on, stateful_set};

/// In place of a pod, the next one comes; its strategy never has two.
fn one_by_one() -> Value {
    deployment(
        "web",
        &json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}}),
    )
}

pub(crate) fn a_pod_that_does_not_end(stage: &Stage) {
    stage.starts(&stateful_set());
    stage.kubectl(&["annotate", "pod/web-0", &format!("{HANGS}=yes")]);
    stage.kubectl(&["delete", "pod/web-0", "--wait=false"]);
    let case = stage.until("stalled");
    let shown = stage.look(&stage::commands(&case, "check")[0]);
    assert!(shown.contains("Terminating"), "{shown}");
    std::thread::scope(|scope| {
        scope.spawn(|| stage.run(&stage::ways_out(&case)[0]));
        stage.kubectl(&["annotate", "pod/web-0", &format!("{HANGS}-")]);
    });
    stage.until_nothing_waits();
    stage.until_runs("web");
}

pub(crate) fn a_volume_that_stays_mounted(stage: &Stage) {
    stage.starts(&one_by_one());
    stage.world.nodes.keep_mounted(&stage.volume);
    stage.kubectl(&["cordon", &stage.node_of("web")]);
    set_image(stage, 2);
    let case = stage.until_late("stalled");
    let shown = stage.look(&stage::commands(&case, "check")[0]);
    assert!(shown.contains(&stage.volume), "{shown}");
    stage.world.nodes.let_go(&stage.volume);
    stage.leads_out(&case);
    stage.uncordon();
}

pub(crate) fn a_node_to_which_nobody_attaches(stage: &Stage) {
    let node = format!("{}-c", stage.namespace);
    stage.world.nodes.add(&[NodeSpec {
        name: node.clone(),
        taints: vec![json!({"key": "stage", "value": stage.namespace, "effect": "NoSchedule"})],
        cpus: 8,
        is_unmanaged: true,
        ..NodeSpec::default()
    }]);
    stage.apply(&merged(one_by_one(), &on(&node)));
    let case = stage.until_late("stalled");
    let shown = stage.look(&stage::commands(&case, "check")[0]);
    assert!(!shown.contains("true"), "{shown}");
    let managed = "volumes.kubernetes.io/controller-managed-attach-detach=true";
    stage.kubectl(&["annotate", "node", &node, managed]);
    stage.leads_out(&case);
}

/// The scheduler names no volume, and the pod fits nowhere.
pub(crate) fn a_pod_that_is_too_large(stage: &Stage) {
    let requests = json!({"resources": {"requests": {"cpu": "100"}}});
    let mut web = deployment("web", &json!({}));
    json_patch::merge(
        &mut web["spec"]["template"]["spec"]["containers"][0],
        &requests,
    );
    stage.apply(&web);
    let case = stage.until("other");
    stage::says(&case, "Insufficient cpu");
    let shown = stage.look(&stage::commands(&case, "check")[0]);
    assert!(shown.contains("FailedScheduling"), "{shown}");
}

/// A Job that must run where a pod runs whose node is full.
pub(crate) fn a_job_beside_a_pod_on_a_full_node(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    let node = stage.node_of("web");
    let all_of_it = json!({"spec": {"template": {"spec": {"volumes": [], "containers": [
        {"name": "app", "image": "example.com/app:1", "resources": {"requests": {"cpu": "8"}}},
    ]}}}});
    let hog = merged(deployment("hog", &on(&node)), &all_of_it);
    stage.starts(&hog);
    let mut job = stage::workload("Job", "dump", &beside_web());
    job["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "1"}});
    stage.apply(&job);
    let case = stage.until("follower");
    let shown = stage.look(&stage::commands(&case, "check")[0]);
    assert!(shown.contains("Allocated resources"), "{shown}");
    stage.delete(&hog);
    stage.leads_out(&case);
    stage.until_runs("dump");
}
