//! `drop-leftover`: drop the `rollingUpdate` block that was left beside Recreate.

use super::{Remedy, recreate};
use crate::model::workload::WorkloadKind;
use crate::rules::codes;

pub(super) const REMEDY: Remedy = Remedy {
    name: "drop-leftover",
    cost: "None: the API server would refuse the object otherwise.",
    change: "drop the rollingUpdate block",
    effect: "the rollingUpdate block left beside strategy Recreate was dropped",
    cures: &[codes::LEFTOVER_ROLLING_UPDATE],
    kinds: &[WorkloadKind::Deployment, WorkloadKind::StatefulSet],
    works: |_| true,
    // It replaces the whole strategy. A `remove` of the block would fail the request if another
    // webhook was faster.
    patch: recreate::patch,
};
