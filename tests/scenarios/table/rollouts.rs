//! S1–S6, S8–S10, X10, X12, X15: one Deployment, one volume.

use serde_json::json;

use super::*;
use crate::harness::fake_nodes::SHARED_DRIVER;
use crate::manifests::{Binding, Volume};

pub(super) fn scenarios() -> Vec<Scenario> {
    let one = || Volume::new(&[RWO]);
    let to_recreate = Action::Kubectl(vec![
        "patch",
        "deployment/web",
        "--type=merge",
        r#"--patch={"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}"#,
    ]);
    vec![
        Scenario::new(
            "S1",
            "default RollingUpdate, new pod on another node; S1u: then Recreate",
        )
        .volume(one())
        .apply(&web())
        .roll_out(&NEW_IMAGE)
        .ends(&[Deadlock])
        .recovers(vec![to_recreate]),
        Scenario::new("S2", "Recreate, new pod on another node")
            .volume(one())
            .apply(&web().recreate())
            .then(Action::Find("web"))
            .then(Action::KubectlAtOnce(vec!["cordon", "{node}"]))
            .roll_out(&NEW_IMAGE)
            .ends(&[Nothing]),
        Scenario::new("S3", "RollingUpdate with self affinity")
            .volume(one())
            .apply(&web().near_itself())
            .roll_out(&NEW_IMAGE)
            .ends(&[Nothing]),
        Scenario::new("S3u", "RollingUpdate, self affinity added by the update")
            .volume(one())
            .apply(&web())
            .apply(&web().near_itself())
            .ends(&[Nothing]),
        Scenario::new("S4", "maxSurge 0, maxUnavailable 1")
            .volume(one())
            .apply(&web().rolling(&json!(0), &json!(1)).ends_slowly())
            .roll_out(&NEW_IMAGE)
            .ends(&[Delay]),
        Scenario::new("S4p", "maxSurge 0, maxUnavailable 25%")
            .volume(one())
            .apply(&web().rolling(&json!(0), &json!("25%")).ends_slowly())
            .roll_out(&NEW_IMAGE)
            .ends(&[Delay]),
        Scenario::new("S4a", "maxSurge 0, maxUnavailable 1 with self affinity")
            .volume(one())
            .apply(&web().rolling(&json!(0), &json!(1)).near_itself())
            .roll_out(&NEW_IMAGE)
            .ends(&[Nothing]),
        Scenario::new("S5", "two replicas, Recreate, over two nodes")
            .volume(one())
            .apply(&web().recreate().replicas(2))
            .ends(&[Stuck]),
        Scenario::new("S6", "three replicas with self affinity")
            .volume(one())
            .apply(&web().replicas(3).near_itself())
            .roll_out(&NEW_IMAGE)
            .ends(&[Nothing]),
        Scenario::new("S8", "a driver with attachRequired: false, two replicas")
            .volume(one().driver(SHARED_DRIVER))
            .apply(&web().replicas(2))
            .roll_out(&NEW_IMAGE)
            .ends(&[Nothing]),
        Scenario::new("S9", "a CSI volume that exists on one node")
            .volume(one().on_node("a"))
            .apply(&web())
            .roll_out(&NEW_IMAGE)
            .ends(&[Nothing]),
        Scenario::new("S9l", "a local volume, two replicas")
            .volume(one().local().on_node("a"))
            .apply(&web().replicas(2))
            .roll_out(&NEW_IMAGE)
            .ends(&[Nothing]),
        Scenario::new(
            "S10",
            "the volume can RWX, the claim asks for RWO, two replicas",
        )
        .volume(Volume::new(&[RWO, RWX]).asking(&[RWO]))
        .apply(&web().replicas(2))
        .roll_out(&NEW_IMAGE)
        .ends(&[Nothing]),
        Scenario::new(
            "S10o",
            "the volume can ROX, the claim asks for RWO, two replicas",
        )
        .volume(Volume::new(&[RWO, ROX]).asking(&[RWO]))
        .apply(&web().replicas(2))
        .roll_out(&NEW_IMAGE)
        .ends(&[Nothing])
        .engine_says(
            Stuck,
            "the simulated attacher takes ReadWriteOnce with ReadOnlyMany, which the external-attacher refuses",
        ),
        Scenario::new(
            "S10c",
            "the volume can RWO, a pre-bound claim asks for RWX too",
        )
        .volume(one().asking(&[RWO, RWX]).binding(Binding::Both))
        .apply(&web())
        .roll_out(&NEW_IMAGE)
        .ends(&[Deadlock]),
        Scenario::new("X10", "no replicas")
            .volume(one())
            .apply(&web().replicas(0))
            .roll_out(&NEW_IMAGE)
            .ends(&[Nothing]),
        unbound(
            "X12",
            "an unbound claim for RWO beside a volume that can RWX, two replicas",
            &[RWO, RWX],
        )
        .ends(&[Nothing]),
        unbound(
            "X12o",
            "an unbound claim for RWO beside a volume that can RWO, two replicas",
            &[RWO],
        )
        .ends(&[Stuck]),
        Scenario::new("X15", "rollingUpdate: null beside Recreate")
            .volume(one())
            .apply(&web().spec(
                "strategy",
                json!({ "type": "Recreate", "rollingUpdate": null }),
            ))
            .roll_out(&NEW_IMAGE)
            .ends(&[Nothing]),
    ]
}

/// Claim and Deployment in one file; the volume lies ready but names no claim.
fn unbound(name: &'static str, title: &'static str, volume_modes: &[&'static str]) -> Scenario {
    let volume = Volume::new(volume_modes)
        .asking(&[RWO])
        .binding(Binding::None)
        .unclaimed();
    let request = volume.request();
    Scenario::new(name, title)
        .volume(volume)
        .then(Action::Apply(vec![
            request,
            web().recreate().replicas(2).manifest(),
        ]))
}
