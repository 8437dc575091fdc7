//! Whether an update is to blame for a hazard.

use serde_json::Value;

use super::Raw;
use crate::model::workload::{Workload, WorkloadKind};
use crate::rules::Hazard;

/// Whether the update brings `hazard` about, or makes it worse.
pub(super) fn is_new(hazard: &Hazard, before: &[Hazard]) -> bool {
    !before.iter().any(|old| hazard.is_covered_by(old))
}

/// Whether the update makes the controller replace pods: its pod template
/// differs in any way, or a pause ends. Where the documents cannot be compared,
/// it is taken to.
pub(super) fn starts_a_rollout(new: &Workload, old: &Workload, raw: &dyn Raw) -> bool {
    if old.paused && !new.paused {
        return true;
    }
    match (raw.object(), raw.old()) {
        (Some(new_raw), Some(old_raw)) => {
            template(new_raw, new.kind) != template(old_raw, old.kind)
        }
        _ => true,
    }
}

fn template(object: &Value, kind: WorkloadKind) -> Option<&Value> {
    object.pointer(match kind {
        WorkloadKind::CronJob => "/spec/jobTemplate",
        WorkloadKind::Pod => "/spec",
        WorkloadKind::Deployment
        | WorkloadKind::ReplicaSet
        | WorkloadKind::StatefulSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::Job => "/spec/template",
    })
}
