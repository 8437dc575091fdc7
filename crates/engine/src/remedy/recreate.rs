//! `recreate`: stop the old pod before the new one is started.

use json_patch::Patch;
use serde_json::json;

use super::{Remedy, Subject, edit};
use crate::model::workload::WorkloadKind;
use crate::rules::codes;

const KINDS: &[WorkloadKind] = &[WorkloadKind::Deployment, WorkloadKind::DeploymentConfig];

/// Whether the kind has the strategy.
pub(super) fn suits(kind: WorkloadKind) -> bool {
    KINDS.contains(&kind)
}

pub(super) const REMEDY: Remedy = Remedy {
    name: "recreate",
    cost: "Each rollout has a short downtime, and a new pod on another node waits a moment until the volume is detached from the old one.",
    effect: "spec.strategy was set to Recreate",
    cures: &[
        codes::ROLLING_UPDATE_OVERLAP,
        codes::UNGUARDED_VOLUME,
        codes::MISLABELLED_VOLUME,
        codes::SINGLE_POD_VOLUME,
        codes::CO_LOCATION_IMPOSSIBLE,
    ],
    kinds: KINDS,
    works: |_| true,
    patch,
};

/// The strategy is replaced as a whole: `rollingUpdate` beside `Recreate` is
/// refused by the API server.
fn patch(subject: &Subject<'_>) -> Option<Patch> {
    Some(edit::set(
        subject.raw,
        &["spec", "strategy"],
        json!({"type": "Recreate"}),
    ))
}
