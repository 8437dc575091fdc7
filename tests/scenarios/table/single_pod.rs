//! S7, X7–X9: ReadWriteOncePod.

use serde_json::json;

use super::*;
use crate::harness::fake_nodes::SHARED_DRIVER;
use crate::manifests::Volume;

pub(super) fn scenarios() -> Vec<Scenario> {
    let one = || Volume::new(&[RWOP]);
    let rollout = |name, title, volume, workload: Workload| {
        Scenario::new(name, title)
            .volume(volume)
            .apply(&workload)
            .roll_out(&NEW_IMAGE)
    };
    vec![
        rollout("S7", "RWOP, default RollingUpdate", one(), web()).ends(&[Deadlock]),
        rollout(
            "S7u",
            "RWOP, maxSurge 0, maxUnavailable 1",
            one(),
            web().rolling(&json!(0), &json!(1)),
        )
        .ends(&[Nothing]),
        rollout("S7r", "RWOP, Recreate", one(), web().recreate()).ends(&[Nothing]),
        rollout(
            "X7s",
            "RWOP, attachRequired: false",
            one().driver(SHARED_DRIVER),
            web(),
        )
        .ends(&[Deadlock]),
        rollout("X7n", "RWOP, one node", one(), web())
            .zones(&["zone-1"])
            .ends(&[Deadlock]),
        rollout(
            "X7l",
            "RWOP, a volume of one node",
            one().on_node("a"),
            web(),
        )
        .ends(&[Deadlock]),
        rollout("X7a", "RWOP, self affinity", one(), web().near_itself()).ends(&[Deadlock]),
        rollout(
            "X8",
            "RWOP, maxSurge 1, maxUnavailable 1",
            one(),
            web().rolling(&json!(1), &json!(1)),
        )
        .ends(&[Nothing]),
        Scenario::new("X9", "RWOP shared by two Deployments")
            .volume(one())
            .apply(&web().recreate())
            .apply(&Workload::deployment("api").recreate())
            .ends(&[Stuck]),
    ]
}
