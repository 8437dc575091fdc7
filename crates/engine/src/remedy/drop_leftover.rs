//! `drop-leftover`: drop the `rollingUpdate` block that was left beside Recreate.

use json_patch::Patch;
use serde_json::json;

use super::{Remedy, Subject, edit};
use crate::model::workload::WorkloadKind;
use crate::rules::codes;

pub(super) const REMEDY: Remedy = Remedy {
    name: "drop-leftover",
    cost: "None: the API server would refuse the object otherwise.",
    change: "drop the rollingUpdate block",
    effect: "the rollingUpdate block left beside strategy Recreate was dropped",
    cures: &[codes::LEFTOVER_ROLLING_UPDATE],
    kinds: &[WorkloadKind::Deployment],
    works: |_| true,
    patch,
};

/// Replaces the whole strategy. A `remove` would fail the request where another
/// webhook was faster.
fn patch(subject: &Subject<'_>) -> Option<Patch> {
    Some(edit::set(
        subject.raw,
        &["spec", "strategy"],
        json!({"type": "Recreate"}),
    ))
}
