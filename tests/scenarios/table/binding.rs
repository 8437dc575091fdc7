//! Y3–Y5, Y16, Y24: which volume a claim gets, and which nodes can have it.

use serde_json::json;

use super::*;
use crate::harness::fake_nodes::ZONAL_DRIVER;
use crate::manifests::{Binding, Class, Volume, ZONE, request};

pub(super) fn scenarios() -> Vec<Scenario> {
    let one = || Volume::new(&[RWO]);
    let zonal = || Class::new(&json!(ZONAL_DRIVER)).waiting();
    // Nobody has the volume before the first pod has a node.
    let provisioned = |name, title, class: Class, workload: Workload| {
        Scenario::new(name, title)
            .class(class)
            .then(Action::Apply(vec![
                request("data", &[RWO]),
                workload.manifest(),
            ]))
    };
    let zones = ["zone-1", "zone-2", "zone-3"];
    let reserved = Volume::new(&[RWO, RWX]).asking(&[RWO]).unclaimed();
    vec![
        provisioned(
            "Y3",
            "an unbound claim of zonal storage, one node in each zone",
            zonal(),
            web(),
        )
        .roll_out(&NEW_IMAGE)
        .zones(&zones)
        .ends(&[Nothing]),
        provisioned(
            "Y3r",
            "the same with two replicas",
            zonal(),
            web().replicas(2),
        )
        .zones(&zones)
        .ends(&[Nothing]),
        provisioned(
            "Y3z",
            "an unbound claim of zonal storage, two nodes in a zone",
            zonal(),
            web(),
        )
        .roll_out(&NEW_IMAGE)
        .zones(&["zone-1", "zone-1"])
        .ends(&[Deadlock]),
        provisioned(
            "Y3a",
            "the same, but the class allows only the zone with one node",
            zonal().in_zones(&["zone-1"]),
            web(),
        )
        .roll_out(&NEW_IMAGE)
        .zones(&["zone-1", "zone-2", "zone-2"])
        .ends(&[Nothing]),
        Scenario::new(
            "Y4",
            "an unbound claim for RWO and a volume for it that can RWX, two replicas",
        )
        .class(Class::new(&reserved.provisioner()).waiting())
        .then(Action::Apply(vec![
            reserved.request(),
            web().recreate().replicas(2).manifest(),
        ]))
        .volume(reserved)
        .ends(&[Nothing]),
        Scenario::new(
            "Y5",
            "a volume with a zone label, one node in the zone, two replicas",
        )
        .volume(one().labelled(json!({ ZONE: "zone-1" })))
        .zones(&zones)
        .apply(&web().replicas(2))
        .roll_out(&NEW_IMAGE)
        .ends(&[Nothing]),
        Scenario::new("Y5b", "the same with the beta label")
            .volume(one().labelled(json!({ "failure-domain.beta.kubernetes.io/zone": "zone-1" })))
            .zones(&zones)
            .apply(&web().replicas(2))
            .roll_out(&NEW_IMAGE)
            .ends(&[Nothing]),
        choice(
            "Y16",
            "a free volume with more modes beside a larger one, immediate binding, two replicas",
            |class| class,
        )
        .ends(&[Stuck]),
        choice("Y16d", "the same with delayed binding", Class::waiting).ends(&[Nothing]),
        Scenario::new(
            "Y24",
            "two claims whose volumes are the same disk, a Deployment each",
        )
        .volume(one())
        .volume(one().named("twin").same_disk_as("data"))
        .apply(&web().recreate())
        .apply(&Workload::deployment("api").recreate().claim("twin"))
        .ends(&[Stuck]),
    ]
}

/// A claim for RWO and two free volumes: a small one that can RWX too, and a large one
/// that cannot.
fn choice(name: &'static str, title: &'static str, binding: impl Fn(Class) -> Class) -> Scenario {
    let free = |volume: Volume| volume.asking(&[RWO]).binding(Binding::None).unclaimed();
    let small = free(Volume::new(&[RWO, RWX]));
    let large = free(Volume::new(&[RWO]).named("large").size("5Gi"));
    Scenario::new(name, title)
        .class(binding(Class::new(&small.provisioner())))
        .volume(small)
        .volume(large)
        .then(Action::Apply(vec![
            request("data", &[RWO]),
            web().recreate().replicas(2).manifest(),
        ]))
}
