//! Y10–Y13, Y17, Y23: pods that have to share a node and may not.

use serde_json::json;

use super::*;
use crate::manifests::{HOSTNAME, Volume, ZONE};

const PORT: u16 = 8080;

pub(super) fn scenarios() -> Vec<Scenario> {
    let one = || Volume::new(&[RWO]);
    let local = || one().local().on_node("a");
    let rollout = |name, title, volume: Volume, workload: Workload| {
        Scenario::new(name, title)
            .volume(volume)
            .apply(&workload)
            .roll_out(&NEW_IMAGE)
    };
    let other_revisions = json!({
        "labelSelector": { "matchLabels": { "app": "web" } },
        "mismatchLabelKeys": ["pod-template-hash"],
    });
    let by_ordinal = json!({
        "labelSelector": { "matchLabels": { "app": "db" } },
        "matchLabelKeys": ["apps.kubernetes.io/pod-index"],
    });
    vec![
        rollout(
            "Y10",
            "self affinity and a hostPort",
            one(),
            web().near_itself().host_port(PORT),
        )
        .ends(&[Deadlock]),
        rollout(
            "Y10p",
            "one node selected and a hostPort",
            one(),
            web().on_node("a").host_port(PORT),
        )
        .ends(&[Deadlock]),
        rollout(
            "Y10n",
            "self affinity, the node's network and a port",
            one(),
            web().near_itself().host_network(PORT),
        )
        .ends(&[Deadlock]),
        rollout(
            "Y10o",
            "one node and a hostPort",
            one(),
            web().host_port(PORT),
        )
        .zones(&["zone-1"])
        .ends(&[Deadlock]),
        rollout(
            "Y10z",
            "self affinity, a hostPort, maxSurge 0",
            one(),
            web()
                .near_itself()
                .host_port(PORT)
                .rolling(&json!(0), &json!(1)),
        )
        .ends(&[Nothing]),
        Scenario::new(
            "Y10r",
            "self affinity and a hostPort, two replicas, Recreate",
        )
        .volume(one())
        .apply(&web().near_itself().host_port(PORT).recreate().replicas(2))
        .ends(&[Stuck]),
        Scenario::new(
            "Y10k",
            "self affinity and a hostPort, Recreate, scaled to two by kubectl",
        )
        .volume(one())
        .apply(&web().near_itself().host_port(PORT).recreate())
        .then(Action::Kubectl(vec![
            "scale",
            "deployment/web",
            "--replicas=2",
        ]))
        .ends(&[Stuck]),
        rollout(
            "Y11",
            "one node selected and anti-affinity to itself over zones",
            one(),
            web().on_node("a").apart_over(ZONE),
        )
        .ends(&[Deadlock]),
        Scenario::new(
            "Y11u",
            "one node selected, and anti-affinity to itself taken away",
        )
        .volume(one())
        .apply(&web().on_node("a").apart_over(HOSTNAME))
        .apply(&web().on_node("a"))
        .ends(&[Deadlock]),
        Scenario::new("Y11a", "anti-affinity to itself replaced by affinity")
            .volume(one())
            .apply(&web().apart_over(HOSTNAME))
            .apply(&web().near_itself())
            .ends(&[Deadlock]),
        Scenario::new("Y11r", "the same with Recreate from then on")
            .volume(one())
            .apply(&web().apart_over(HOSTNAME))
            .apply(&web().near_itself().recreate())
            .ends(&[Nothing]),
        rollout(
            "Y11m",
            "self affinity and anti-affinity to pods of other revisions (mismatchLabelKeys)",
            one(),
            web().near_itself().apart(HOSTNAME, other_revisions),
        )
        .ends(&[Deadlock]),
        rollout(
            "Y11d",
            "self affinity and a hard zone spread with minDomains above the zones there are",
            one(),
            web()
                .near_itself()
                .spread(ZONE, &json!({ "minDomains": 2 })),
        )
        .ends(&[Deadlock]),
        rollout(
            "Y12",
            "a local volume and anti-affinity to itself",
            local(),
            web().apart_over(HOSTNAME),
        )
        .ends(&[Deadlock]),
        rollout(
            "Y12s",
            "a local volume and hard hostname spread",
            local(),
            web().spread(HOSTNAME, &json!({})),
        )
        .ends(&[Deadlock]),
        rollout(
            "Y12p",
            "a local volume and a hostPort",
            local(),
            web().host_port(PORT),
        )
        .ends(&[Deadlock]),
        Scenario::new(
            "Y12r",
            "a local volume and a hostPort, two replicas, Recreate",
        )
        .volume(local())
        .apply(&web().host_port(PORT).recreate().replicas(2))
        .ends(&[Stuck]),
        Scenario::new("Y13", "a DaemonSet on one node, RWOP, maxSurge 1")
            .volume(Volume::new(&[RWOP]))
            .zones(&["zone-1"])
            .apply(&Workload::daemon_set("web").spec(
                "updateStrategy",
                json!({ "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } }),
            ))
            .roll_out(&["set", "image", "daemonset/web", "app=example.com/app:2"])
            .ends(&[Deadlock]),
        Scenario::new("Y17", "a StatefulSet of two, affinity within one ordinal")
            .volume(one())
            .apply(&Workload::stateful_set("db").replicas(2).near(by_ordinal))
            .ends(&[Stuck]),
        Scenario::new("Y23", "an iSCSI disk in the pod itself, one node selected")
            .apply(&inline_iscsi().on_node("a"))
            .roll_out(&NEW_IMAGE)
            .ends(&[Deadlock]),
        Scenario::new("Y23z", "the same with maxSurge 0")
            .apply(&inline_iscsi().on_node("a").rolling(&json!(0), &json!(1)))
            .roll_out(&NEW_IMAGE)
            .ends(&[Nothing]),
    ]
}

/// A disk that no claim stands for.
fn inline_iscsi() -> Workload {
    let disk = json!({
        "targetPortal": "192.0.2.1:3260",
        "iqn": "iqn.2001-04.com.example:{run}",
        "lun": 0,
    });
    web().pod("volumes", json!([{ "name": "data", "iscsi": disk }]))
}
