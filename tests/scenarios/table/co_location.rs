//! X2–X6: when affinity holds the pods together, and when it does not.

use serde_json::json;

use super::*;
use crate::manifests::{Volume, ZONE};

pub(super) fn scenarios() -> Vec<Scenario> {
    let one = || Volume::new(&[RWO]);
    let full = || web().near_itself().cpus(MOST_OF_A_NODE);
    let rollout = |name, title, workload: Workload| {
        Scenario::new(name, title)
            .volume(one())
            .apply(&workload)
            .roll_out(&NEW_IMAGE)
    };
    let spread = |key: &str| web().near_itself().spread(key, &json!({}));
    let by_revision = json!({
        "labelSelector": { "matchLabels": { "app": "web" } },
        "matchLabelKeys": ["pod-template-hash"],
    });
    let zones = ["zone-1", "zone-2", "zone-3"];
    vec![
        rollout("X2", "self affinity, the node is full", full())
            .ends(&[Deadlock])
            .engine_says(Nothing, "no manifest tells how full a node will be"),
        rollout(
            "X2u",
            "self affinity, the node is full, maxSurge 0",
            full().rolling(&json!(0), &json!(1)),
        )
        .ends(&[Nothing, Delay])
        .engine_says(Nothing, "no manifest tells how full a node will be"),
        rollout(
            "X3",
            "preferred self affinity, an idle cluster",
            web().rather_near_itself(),
        )
        .ends(&[Nothing])
        .engine_says(Deadlock, "a preference holds until it matters"),
        rollout(
            "X3p",
            "preferred self affinity, the node is full",
            web().rather_near_itself().cpus(MOST_OF_A_NODE),
        )
        .ends(&[Deadlock]),
        beside_others(
            "X4",
            "affinity to a label that other pods share",
            web().near(shared_label()),
        ),
        beside_others(
            "X4e",
            "affinity with an empty selector",
            web().near(json!({ "labelSelector": {} })),
        ),
        in_two_namespaces(),
        Scenario::new(
            "X4i",
            "affinity to a label that other pods share, room beside the old pod",
        )
        .volume(one())
        .apply(&web().near(shared_label()))
        .apply(&everywhere("agent"))
        .roll_out(&NEW_IMAGE)
        .ends(&[Nothing])
        .engine_says(
            Deadlock,
            "the scheduler prefers the old pod's node, but does not have to",
        ),
        rollout(
            "X5",
            "affinity within one revision",
            web().near(by_revision.clone()),
        )
        .ends(&[Deadlock]),
        rollout(
            "X5r",
            "affinity within one revision, two replicas, Recreate",
            web().near(by_revision).recreate().replicas(2),
        )
        .ends(&[Nothing]),
        rollout(
            "X6",
            "self affinity and hard hostname spread",
            spread("kubernetes.io/hostname"),
        )
        .ends(&[Deadlock]),
        rollout(
            "X6s",
            "self affinity, hard hostname spread that allows one pod more, and a larger surge",
            web()
                .near_itself()
                .replicas(2)
                .rolling(&json!("100%"), &json!(0))
                .spread("kubernetes.io/hostname", &json!({ "maxSkew": 3 })),
        )
        .ends(&[Nothing]),
        rollout("X6z", "self affinity and hard zone spread", spread(ZONE))
            .zones(&zones)
            .ends(&[Deadlock]),
        rollout(
            "X6t",
            "self affinity and hard zone spread, nodes of other zones are tainted",
            spread(ZONE),
        )
        .foreign_zones(&["zone-2"])
        .ends(&[Deadlock]),
        rollout(
            "X6h",
            "the same with nodeTaintsPolicy: Honor",
            web()
                .near_itself()
                .spread(ZONE, &json!({ "nodeTaintsPolicy": "Honor" })),
        )
        .foreign_zones(&["zone-2"])
        .ends(&[Nothing]),
        rollout(
            "X6i",
            "self affinity, one zone selected, hard zone spread with nodeAffinityPolicy: Ignore",
            web()
                .near_itself()
                .pod("nodeSelector", json!({ ZONE: "zone-1" }))
                .spread(
                    ZONE,
                    &json!({ "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor" }),
                ),
        )
        .zones(&zones)
        .ends(&[Deadlock]),
    ]
}

fn shared_label() -> Value {
    json!({ "labelSelector": { "matchLabels": { "part-of": "{run}" } } })
}

/// Pods on every node, so on others than the one that has the volume.
fn everywhere(name: &str) -> Workload {
    Workload::daemon_set(name).without_volume().cpus("100m")
}

/// A rollout while other pods that the affinity matches run on other nodes, which have
/// room, unlike the old pod's.
fn beside_others(name: &'static str, title: &'static str, app: Workload) -> Scenario {
    Scenario::new(name, title)
        .volume(Volume::new(&[RWO]))
        .apply(&app.cpus(MOST_OF_A_NODE))
        .apply(&everywhere("agent"))
        .roll_out(&NEW_IMAGE)
        .ends(&[Deadlock])
}

fn in_two_namespaces() -> Scenario {
    let mut others = everywhere("web").manifest();
    others["metadata"]["namespace"] = json!("{run}-other");
    let term = json!({
        "labelSelector": { "matchLabels": { "app": "web", "part-of": "{run}" } },
        "namespaceSelector": {},
    });
    let status = vec![
        "rollout",
        "status",
        "daemonset/web",
        "--namespace={run}-other",
    ];
    Scenario::new(
        "X4n",
        "affinity to a label that pods of other namespaces share",
    )
    .volume(Volume::new(&[RWO]))
    .apply(&web().near(term).cpus(MOST_OF_A_NODE))
    .then(Action::KubectlAtOnce(vec![
        "create",
        "namespace",
        "{run}-other",
    ]))
    .then(Action::Apply(vec![others]))
    .then(Action::KubectlAtOnce(status))
    .roll_out(&NEW_IMAGE)
    .ends(&[Deadlock])
}
