//! Y1, Y6, Y19–Y22: where pods may be, and an update that moves them.

use serde_json::json;

use super::*;
use crate::manifests::{HOSTNAME, Volume, ZONE, in_values};

const GPU: &str = "example.com/gpu";

pub(super) fn scenarios() -> Vec<Scenario> {
    let one = || Volume::new(&[RWO]);
    let moved = |name, title, before: Workload, after: Workload| {
        Scenario::new(name, title)
            .volume(one())
            .apply(&before)
            .apply(&after)
    };
    let rollout = |name, title, workload: Workload| {
        Scenario::new(name, title)
            .volume(one())
            .apply(&workload)
            .roll_out(&NEW_IMAGE)
    };
    let set = || Workload::stateful_set("web");
    let zero_surge = || web().rolling(&json!(0), &json!(1)).ends_slowly();
    let elsewhere = json!([{ "key": HOSTNAME, "operator": "NotIn", "values": ["{node}"] }]);
    vec![
        moved(
            "Y1",
            "nodeSelector moved to another node",
            web().on_node("a"),
            web().on_node("b"),
        )
        .ends(&[Deadlock]),
        moved(
            "Y1r",
            "the same with Recreate",
            web().recreate().on_node("a"),
            web().recreate().on_node("b"),
        )
        .ends(&[Nothing]),
        moved(
            "Y1z",
            "the same with maxSurge 0",
            zero_surge().on_node("a"),
            zero_surge().on_node("b"),
        )
        .ends(&[Delay]),
        moved(
            "Y1s",
            "nodeSelector replaced by a node affinity to the same node",
            web().on_node("a"),
            web().on_nodes(&json!([in_values(HOSTNAME, "{run}-a")])),
        )
        .ends(&[Nothing]),
        moved(
            "Y1n",
            "nodeSelector replaced by the nodeName of another node",
            web().on_node("a"),
            web().bound_to("b"),
        )
        .ends(&[Deadlock]),
        Scenario::new("Y1a", "self affinity replaced by a node affinity elsewhere")
            .volume(one())
            .apply(&web().near_itself())
            .then(Action::Find("web"))
            .apply(&web().on_nodes(&elsewhere))
            .ends(&[Deadlock]),
        moved(
            "Y1k",
            "self affinity kept beside a nodeSelector for another node",
            web().near_itself().on_node("a"),
            web().near_itself().on_node("b"),
        )
        .ends(&[Deadlock]),
        moved(
            "Y1t",
            "a toleration dropped, the old pod on the node with the taint",
            tolerant().rather_on_node("b", 100),
            on_a_or_b().rather_on_node("b", 100),
        )
        .zones(&["zone-1"])
        .foreign_zones(&["zone-1"])
        .ends(&[Deadlock]),
        moved(
            "Y1w",
            "a StatefulSet of two on one claim moved to another node",
            set().replicas(2).on_node("a"),
            set().replicas(2).on_node("b"),
        )
        .ends(&[Deadlock]),
        moved(
            "Y1v",
            "a StatefulSet of one moved to another node",
            set().on_node("a"),
            set().on_node("b"),
        )
        .ends(&[Nothing]),
        Scenario::new("Y6", "two Deployments on one node, one by its name, one by its hostname label, which differs")
            .volume(one())
            .hostnames(&["{run}-host"])
            .apply(&web().bound_to("a").recreate())
            .apply(&Workload::deployment("api").recreate().pod("nodeSelector", json!({ HOSTNAME: "{run}-host" })))
            .ends(&[Nothing]),
        Scenario::new("Y6o", "two Deployments on two nodes, one with the other's name as its hostname label")
            .volume(one())
            .hostnames(&["{run}-host", "{run}-a"])
            .apply(&web().bound_to("a").recreate())
            .apply(&Workload::deployment("api").recreate().on_node("a"))
            .ends(&[Stuck]),
        Scenario::new("Y19", "nodeName and hard hostname spread, two replicas")
            .volume(one())
            .apply(&web().bound_to("a").replicas(2).spread(HOSTNAME, &json!({})))
            .roll_out(&NEW_IMAGE)
            .ends(&[Nothing]),
        Scenario::new("Y19a", "two Deployments share a claim, one near the other but with the nodeName of another node")
            .volume(one())
            .apply(&web().recreate().on_node("a"))
            .apply(&Workload::deployment("api").recreate().near(json!({ "labelSelector": { "matchLabels": { "app": "web" } } })).bound_to("b"))
            .ends(&[Stuck]),
        rollout(
            "Y20",
            "a RuntimeClass whose nodeSelector leaves one node",
            web().pod("runtimeClassName", json!("{run}")),
        )
        .existing(json!({
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": { "name": "{run}" },
            "handler": "fake",
            "scheduling": { "nodeSelector": { HOSTNAME: "{run}-a" } },
        }))
        .ends(&[Nothing]),
        rollout(
            "Y21",
            "self affinity over zones, one node in each",
            web().near_over(ZONE, json!({ "labelSelector": { "matchLabels": { "app": "web" } } })),
        )
        .zones(&["zone-1", "zone-2", "zone-3"])
        .ends(&[Nothing]),
        rollout(
            "Y21z",
            "self affinity over zones, two nodes in one",
            web().near_over(ZONE, json!({ "labelSelector": { "matchLabels": { "app": "web" } } })).cpus(MOST_OF_A_NODE),
        )
        .zones(&["zone-1", "zone-1"])
        .ends(&[Deadlock]),
        rollout(
            "Y22",
            "the pod asks for a resource that one node has",
            web().resource(GPU, "1"),
        )
        .resources(&[(GPU, 2)])
        .ends(&[Nothing]),
        moved(
            "Y22m",
            "a resource that one node has asked for by an update, the old pod on another node",
            web().rather_on_node("b", 100),
            web().rather_on_node("b", 100).resource(GPU, "1"),
        )
        .resources(&[(GPU, 2)])
        .ends(&[Deadlock]),
    ]
}

/// Its node is one of the first two, whose taints it knows as far as they are the
/// scenario's.
fn on_a_or_b() -> Workload {
    let first_two =
        json!([{ "key": HOSTNAME, "operator": "In", "values": ["{run}-a", "{run}-b"] }]);
    web().on_nodes(&first_two)
}

fn tolerant() -> Workload {
    on_a_or_b().pod(
        "tolerations",
        json!([{ "key": "scenario", "operator": "Exists", "effect": "NoSchedule" }]),
    )
}
