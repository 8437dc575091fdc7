//! Steps that do not end: pods that do not terminate, volumes that nobody attaches or unmounts.

use serde_json::{Value, json};

use crate::harness::NodeSpec;
use crate::harness::fake_nodes::HANGS;
use crate::rollouts::set_image;
use crate::stage::{self, Stage, beside_web, deployment, merged, on, workload};

/// A strategy that replaces each pod by the next one and never has two.
pub(crate) fn one_by_one() -> Value {
    json!({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}})
}

pub(crate) fn a_pod_that_does_not_end(stage: &Stage) {
    stage.starts(&workload("StatefulSet", "web", &json!({})));
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
    stage.starts(&deployment("web", &one_by_one()));
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
        is_unmanaged: true,
        ..stage.node(&node)
    }]);
    stage.apply(&deployment("web", &merged(one_by_one(), &on(&node))));
    let case = stage.until_late("stalled");
    let shown = stage.look(&stage::commands(&case, "check")[0]);
    assert!(!shown.contains("true"), "{shown}");
    let managed = "volumes.kubernetes.io/controller-managed-attach-detach=true";
    stage.kubectl(&["annotate", "node", &node, managed]);
    stage.leads_out(&case);
}

/// A pod that requests this number of processors, in shorthand.
fn requests(cpus: &str) -> Value {
    json!({"container": {"resources": {"requests": {"cpu": cpus}}}})
}

/// A Job that must run beside a pod on a full node.
pub(crate) fn a_job_beside_a_pod_on_a_full_node(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    let node = stage.node_of("web");
    let all_of_it = merged(merged(on(&node), &requests("8")), &json!({"uses": []}));
    let hog = deployment("hog", &all_of_it);
    stage.starts(&hog);
    let job = merged(beside_web(), &requests("1"));
    stage.apply(&workload("Job", "dump", &job));
    let case = stage.until("follower");
    let shown = stage.look(&stage::commands(&case, "check")[0]);
    assert!(shown.contains("Allocated resources"), "{shown}");
    stage.delete(&hog);
    stage.leads_out(&case);
    stage.until_runs("dump");
}
