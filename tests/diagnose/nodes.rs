//! Lost and drained nodes, and failing drivers.

use serde_json::{Value, json};

use crate::rollouts::roll_out;
use crate::stage::{self, Stage, beside_web, deployment, merged, workload};

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

pub(crate) fn a_drain_that_the_scheduler_does_not_notice(stage: &Stage) {
    let beside = merged(beside_web(), &json!({"strategy": "Recreate"}));
    stage.starts(&deployment("web", &beside));
    let node = stage.node_of("web");
    stage.kubectl(&["cordon", &node]);
    stage.kubectl(&["delete", "pod", "-l", "app=web", "--wait=false"]);
    let case = stage.until("drain-with-co-location");
    stage.leads_out(&case);
    stage.until_runs("web");
    stage.uncordon();
}

pub(crate) fn a_node_that_is_lost_of_a_deployment(stage: &Stage) {
    a_node_that_is_lost(stage, &deployment("web", &json!({})));
}

/// A StatefulSet makes no second pod with the same name, so no pod is Pending.
pub(crate) fn a_node_that_is_lost_of_a_set(stage: &Stage) {
    a_node_that_is_lost(stage, &workload("StatefulSet", "web", &json!({})));
}

fn a_node_that_is_lost(stage: &Stage, object: &Value) {
    stage.starts(object);
    let node = stage.node_of("web");
    stage.world.nodes.die(&node);
    let case = stage.until("node-lost");
    assert!(is(&case, &node, "lost"), "{case:#}");
    stage.look(&stage::commands(&case, "check")[0]);
    let way_out = &stage::ways_out(&case)[0];
    stage.run(way_out);
    stage.until_nothing_waits();
    stage.until_runs("web");
    stage.world.nodes.revive(&node);
    stage.run(&stage::commands(&case, "afterwards")[0]);
    let taints = stage.field(&format!("node/{node}"), ".spec.taints[*].key");
    assert!(!taints.contains("out-of-service"), "{taints}");
    stage.end("the node takes pods");
}

/// Whether a case gives the node this health.
fn is(case: &Value, node: &str, health: &str) -> bool {
    let mut nodes = case["nodes"].as_array().unwrap().iter();
    nodes.any(|it| it["name"] == *node && it["health"] == health)
}

/// No controller deletes a pod that tolerates its node's silence and the out-of-service taint.
pub(crate) fn a_lost_node_whose_pod_stays(stage: &Stage) {
    let tolerations = json!([
        {"key": "stage", "value": "{namespace}", "effect": "NoSchedule"},
        {"operator": "Exists", "effect": "NoExecute"},
    ]);
    let stays = json!({"pod": {"tolerations": tolerations}});
    stage.starts(&deployment("web", &stays));
    let node = stage.node_of("web");
    stage.world.nodes.die(&node);
    roll_out(stage, 2);
    let case = stage.until("node-lost");
    stage.run(&stage::ways_out(&case)[0]);
    stage.end("the node is out of service");
    let case = stage.until_case(
        "node-lost",
        "only the pod to be left",
        |case| matches!(&*stage::ways_out(case), [delete, _] if delete.contains("delete pod/")),
    );
    for command in stage::ways_out(&case) {
        stage.run(&command);
    }
    stage.until_nothing_waits();
    stage.world.nodes.revive(&node);
    stage.kubectl(&["taint", "node", &node, &format!("{OUT_OF_SERVICE}-")]);
    stage.uncordon();
}

/// The machine is gone, so the driver cannot detach the disk from it.
pub(crate) fn a_disk_whose_machine_is_gone(stage: &Stage) {
    stage.starts(&deployment("web", &json!({})));
    let node = stage.node_of("web");
    let nodes = &stage.world.nodes;
    nodes.refuse_detach(&stage.volume, "no such instance");
    nodes.die(&node);
    let case = stage.until("node-lost");
    stage.run(&stage::ways_out(&case)[0]);
    stage.until("driver-error");
    stage.end("the driver says why it cannot detach the volume");
    stage.kubectl(&["delete", "node", &node]);
    let case = stage.until_case("driver-error", "the node to be gone", |case| {
        case.to_string().contains("finalizers")
    });
    stage.run(&stage::in_texts(&case, "finalizers"));
    stage.leads_out(&case);
    nodes.allow_detach(&stage.volume);
}

pub(crate) fn a_driver_that_cannot_detach(stage: &Stage) {
    stage.starts(&stage::recreated("web"));
    let nodes = &stage.world.nodes;
    nodes.refuse_detach(&stage.volume, "the disk is busy");
    roll_out(stage, 2);
    let case = stage.until("driver-error");
    stage::says(&case, "\"the disk is busy\"");
    stage.look(&stage::commands(&case, "check")[0]);
    nodes.allow_detach(&stage.volume);
    stage.leads_out(&case);
    stage.uncordon();
}
