//! `zero-surge`: keep the rolling update but let it stop a pod before it starts one.

use json_patch::Patch;
use serde_json::json;

use super::{Remedy, Subject, edit};
use crate::model::workload::WorkloadKind;
use crate::rules::codes;

pub(super) const REMEDY: Remedy = Remedy {
    name: "zero-surge",
    cost: "Each rollout has a short downtime, and a new pod on another node waits until the old one is gone. The strategy's type stays as it is, so server-side apply has nothing to undo.",
    effect: "spec.strategy.rollingUpdate was set to maxSurge 0 and maxUnavailable 1",
    cures: &[
        codes::ROLLING_UPDATE_OVERLAP,
        codes::UNGUARDED_VOLUME,
        codes::MISLABELLED_VOLUME,
        codes::SINGLE_POD_VOLUME,
        codes::CO_LOCATION_IMPOSSIBLE,
    ],
    kinds: &[WorkloadKind::Deployment],
    works: |_| true,
    patch,
};

fn patch(subject: &Subject<'_>) -> Option<Patch> {
    Some(edit::set(
        subject.raw,
        &["spec", "strategy"],
        json!({
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        }),
    ))
}
