//! Lost and drained nodes, and failing drivers.

use serde_json::{Value, json};

use crate::incident::{self, Incident, beside_web, deployment, merged, workload};
use crate::rollouts::roll_out;

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

pub(crate) fn a_drain_that_the_scheduler_does_not_notice(incident: &Incident) {
    let beside = merged(beside_web(), &json!({"strategy": "Recreate"}));
    incident.starts(&deployment("web", &beside));
    let node = incident.node_of("web");
    incident.kubectl(&["cordon", &node]);
    incident.kubectl(&["delete", "pod", "-l", "app=web", "--wait=false"]);
    let case = incident.until("drain-with-co-location");
    incident.leads_out(&case);
    incident.until_runs("web");
    incident.uncordon();
}

pub(crate) fn a_node_that_is_lost_of_a_deployment(incident: &Incident) {
    a_node_that_is_lost(incident, &deployment("web", &json!({})));
}

/// A StatefulSet makes no second pod with the same name, so no pod is Pending.
pub(crate) fn a_node_that_is_lost_of_a_set(incident: &Incident) {
    a_node_that_is_lost(incident, &workload("StatefulSet", "web", &json!({})));
}

fn a_node_that_is_lost(incident: &Incident, object: &Value) {
    incident.starts(object);
    let node = incident.node_of("web");
    incident.cluster.nodes.die(&node);
    let case = incident.until("node-lost");
    assert!(is(&case, &node, "lost"), "{case:#}");
    incident.look(&incident::commands(&case, "before")[0]);
    let way_out = &incident::ways_out(&case)[0];
    incident.run(way_out);
    incident.until_nothing_waits();
    incident.until_runs("web");
    incident.cluster.nodes.revive(&node);
    incident.run(&incident::commands(&case, "afterwards")[0]);
    let taints = incident.field(&format!("node/{node}"), ".spec.taints[*].key");
    assert!(!taints.contains("out-of-service"), "{taints}");
    incident.end("the node takes pods");
}

/// Whether a case gives the node this health.
fn is(case: &Value, node: &str, health: &str) -> bool {
    let mut nodes = case["nodes"].as_array().unwrap().iter();
    nodes.any(|entry| entry["name"] == *node && entry["health"] == health)
}

/// No controller deletes a pod that tolerates its node's silence and the out-of-service taint.
pub(crate) fn a_lost_node_whose_pod_stays(incident: &Incident) {
    let tolerations = json!([
        {"key": "stage", "value": "{namespace}", "effect": "NoSchedule"},
        {"operator": "Exists", "effect": "NoExecute"},
    ]);
    let stays = json!({"pod": {"tolerations": tolerations}});
    incident.starts(&deployment("web", &stays));
    let node = incident.node_of("web");
    incident.cluster.nodes.die(&node);
    roll_out(incident, 2);
    let lost = incident.until("node-lost");
    incident.run(&incident::ways_out(&lost)[0]);
    incident.end("the node is out of service");
    let rest = incident.until_case(
        "node-lost",
        "only the pod to be left",
        |case| matches!(&*incident::ways_out(case), [delete, _] if delete.contains("delete pod/")),
    );
    for command in incident::ways_out(&rest) {
        incident.run(&command);
    }
    incident.until_nothing_waits();
    incident.cluster.nodes.revive(&node);
    incident.kubectl(&["taint", "node", &node, &format!("{OUT_OF_SERVICE}-")]);
    incident.uncordon();
}

/// The machine is gone, so the driver cannot detach the disk from it.
pub(crate) fn a_disk_whose_machine_is_gone(incident: &Incident) {
    incident.starts(&deployment("web", &json!({})));
    let node = incident.node_of("web");
    let nodes = &incident.cluster.nodes;
    nodes.refuse_detach(&incident.volume, "no such instance");
    nodes.die(&node);
    let lost = incident.until("node-lost");
    incident.run(&incident::ways_out(&lost)[0]);
    incident.until("driver-error");
    incident.end("the driver says why it cannot detach the volume");
    incident.kubectl(&["delete", "node", &node]);
    let undetachable = incident.until_case("driver-error", "the node to be gone", |case| {
        case.to_string().contains("finalizers")
    });
    incident.run(&incident::in_texts(&undetachable, "finalizers"));
    incident.leads_out(&undetachable);
    nodes.allow_detach(&incident.volume);
}

pub(crate) fn a_driver_that_cannot_detach(incident: &Incident) {
    incident.starts(&incident::recreated("web"));
    let nodes = &incident.cluster.nodes;
    nodes.refuse_detach(&incident.volume, "the disk is busy");
    roll_out(incident, 2);
    let case = incident.until("driver-error");
    incident::says(&case, "\"the disk is busy\"");
    incident.look(&incident::commands(&case, "check")[0]);
    nodes.allow_detach(&incident.volume);
    incident.leads_out(&case);
    incident.uncordon();
}
