//! `zero-surge`: keep the rolling update but let it stop a pod before it starts one.

use json_patch::Patch;
use serde_json::{Value, json};

use super::{Remedy, edit, recreate};
use crate::model::workload::{Workload, WorkloadKind};

pub(super) const REMEDY: Remedy = Remedy {
    name: "zero-surge",
    cost: "Each rollout has a short downtime, and a new pod on another node waits until the old one is gone. The strategy's type stays as it is, so server-side apply has nothing to undo.",
    change: "set maxSurge to 0 and maxUnavailable to 1",
    effect: "the rolling update was set to maxSurge 0 and maxUnavailable 1",
    cures: recreate::OF_ROLLOUTS,
    kinds: &[WorkloadKind::Deployment, WorkloadKind::Rollout],
    works: |_| true,
    patch,
};

/// The fields that make a rolling update stop a pod before it starts one.
const AMOUNTS: [(&str, i64); 2] = [("maxSurge", 0), ("maxUnavailable", 1)];

fn patch(workload: &Workload, raw: &Value, _pods_there: i64) -> Option<Patch> {
    if workload.kind == WorkloadKind::Rollout {
        return of_canary(raw);
    }
    let amounts: Value = AMOUNTS.into_iter().collect();
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": amounts});
    Some(edit::set(raw, &["spec", "strategy"], strategy))
}

/// The steps of a canary stay as they are. With a traffic router or `blueGreen`, the amounts change
/// nothing.
fn of_canary(raw: &Value) -> Option<Patch> {
    let canary = ["spec", "strategy", "canary"];
    if !raw.pointer("/spec/strategy/canary")?.is_object() {
        let amounts = AMOUNTS.into_iter().collect();
        return Some(edit::set(raw, &canary, amounts));
    }
    let operations = AMOUNTS.into_iter().flat_map(|(name, amount)| {
        let path = [canary[0], canary[1], canary[2], name];
        edit::set(raw, &path, json!(amount)).0
    });
    Some(Patch(operations.collect()))
}
