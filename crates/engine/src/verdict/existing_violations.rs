//! Whether an update is to blame for a hazard.

use super::Document;
use crate::analysis::{Analysis, Placement, affinity, users, volumes};
use crate::model::workload::{Workload, WorkloadKind};
use crate::rules::{Hazard, codes};

/// Whether the update brings `hazard` about, or makes it worse.
pub(super) fn is_new(hazard: &Hazard, before: &[Hazard]) -> bool {
    !before.iter().any(|old| hazard.is_covered_by(old))
}

/// Whether the update makes a controller replace running pods: the pod template
/// differs in any way. Where the documents cannot be compared, it is taken to. The end of
/// a pause is no reason to deny: what it rolls out was judged when it was written, and
/// somebody who has paused a rollout that hangs has no other way on. Kinds that leave
/// running pods alone start no rollout.
pub(super) fn starts_a_rollout(new: &Workload, document: &dyn Document) -> bool {
    match new.kind {
        WorkloadKind::Deployment
        | WorkloadKind::StatefulSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::Rollout
        | WorkloadKind::DeploymentConfig
        | WorkloadKind::CloneSet => document.changes_template(),
        WorkloadKind::ReplicaSet
        | WorkloadKind::Job
        | WorkloadKind::CronJob
        | WorkloadKind::ReplicationController
        | WorkloadKind::ScaledJob
        | WorkloadKind::Pod => false,
    }
}

/// Whether the update from `old` leaves a hazard as it is and yet brings its end closer:
/// of several workloads on one claim, one has to be the first that is kept beside the
/// others. `analysis` is that of the new object.
pub(super) fn is_a_step(analysis: &Analysis<'_>, old: &Workload, hazard: &Hazard) -> bool {
    if hazard.rule != codes::WORKLOADS_SHARE_VOLUME {
        return false;
    }
    let others = hazard
        .volumes
        .iter()
        .flat_map(|claim| users::others(analysis, claim));
    let facts = analysis.facts;
    let node_of = |workload: &Workload| {
        Placement::of(workload, None, &volumes::of(workload, facts), facts).one_node
    };
    let ours = &analysis.placement.one_node;
    let is_pinned_now = ours.is_some() && node_of(old).is_none();
    let mut others = others.peekable();
    others.peek().is_some()
        && others.all(|other| {
            let theirs = node_of(other);
            let joins_them = is_pinned_now && (theirs.is_none() || theirs == *ours);
            let follows = |workload: &Workload| {
                affinity::strays(workload, other, facts)
                    .is_some_and(|astray| astray.leaders.is_empty() && !astray.own)
            };
            joins_them || (follows(analysis.workload) && !follows(old))
        })
}
