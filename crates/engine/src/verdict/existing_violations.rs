//! Whether an update is to blame for a hazard.

use super::Document;
use crate::model::workload::{Workload, WorkloadKind};
use crate::rules::Hazard;

/// Whether the update brings `hazard` about, or makes it worse.
pub(super) fn is_new(hazard: &Hazard, before: &[Hazard]) -> bool {
    !before.iter().any(|old| hazard.is_covered_by(old))
}

/// Whether the update makes a controller replace running pods: the pod template
/// differs in any way, or a pause ends. Where the documents cannot be compared,
/// it is taken to. Kinds that leave running pods alone start no rollout.
pub(super) fn starts_a_rollout(new: &Workload, old: &Workload, document: &dyn Document) -> bool {
    match new.kind {
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {}
        WorkloadKind::ReplicaSet
        | WorkloadKind::Job
        | WorkloadKind::CronJob
        | WorkloadKind::ReplicationController
        | WorkloadKind::Pod => return false,
    }
    if old.paused && !new.paused {
        return true;
    }
    document.changes_template()
}
