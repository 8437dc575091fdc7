//! S13–S15: a node dies, or is drained.

use super::*;
use crate::manifests::Volume;

/// The scheduler looks again at a pod that it was not woken for after five minutes;
/// a volume of a dead node is detached by force after six.
const PATIENCE: u64 = 480;

pub(super) fn scenarios() -> Vec<Scenario> {
    let delete_node = Action::KubectlAtOnce(vec!["delete", "node", "{node}"]);
    let force_delete = Action::KubectlAtOnce(vec![
        "delete",
        "pod",
        "{pod}",
        "--force",
        "--grace-period=0",
    ]);
    let out_of_service = Action::KubectlAtOnce(vec![
        "taint",
        "node",
        "{node}",
        "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
    ]);
    let recreate = || web().recreate();
    vec![
        node_loss(
            "S13d",
            "the node dies; then: Node deleted",
            &recreate(),
            delete_node,
        ),
        node_loss(
            "S13f",
            "the node dies; then: pod deleted by force",
            &recreate(),
            force_delete,
        ),
        drain(
            "S15",
            "self affinity, node cordoned, pod deleted",
            &recreate().near_itself(),
        )
        .ends(&[Stuck])
        .engine_says(Nothing, "the price of co-location is stated by the remedy")
        .alone()
        .recovers(vec![Action::Heal(PATIENCE)]),
        drain(
            "S15n",
            "no affinity, node cordoned, pod deleted",
            &recreate().ends_slowly(),
        )
        .ends(&[Delay])
        .engine_says(Nothing, "draining a node is no rollout"),
        node_loss(
            "S13",
            "the node dies; then: out-of-service taint",
            &recreate(),
            out_of_service.clone(),
        ),
        node_loss(
            "S13r",
            "the node dies, RollingUpdate; then: out-of-service taint",
            &web(),
            out_of_service.clone(),
        )
        .engine_says(Deadlock, "its own rollouts cannot end either"),
        node_loss(
            "S14",
            "the node dies, self affinity",
            &recreate().near_itself(),
            out_of_service,
        ),
    ]
}

fn node_loss(name: &'static str, title: &'static str, app: &Workload, way_out: Action) -> Scenario {
    Scenario::new(name, title)
        .volume(Volume::new(&[RWO]))
        .apply(&app.clone().leaving_dead_nodes_soon())
        .then(Action::Find("web"))
        .then(Action::Die)
        .ends(&[Stuck])
        .engine_says(Nothing, "no manifest tells when a node dies")
        .recovers(vec![way_out, Action::Heal(PATIENCE)])
}

fn drain(name: &'static str, title: &'static str, app: &Workload) -> Scenario {
    Scenario::new(name, title)
        .volume(Volume::new(&[RWO]))
        .apply(app)
        .then(Action::Find("web"))
        .then(Action::KubectlAtOnce(vec!["cordon", "{node}"]))
        .then(Action::Kubectl(vec![
            "delete",
            "pod",
            "{pod}",
            "--wait=false",
        ]))
}
