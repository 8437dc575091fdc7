//! Whether an update is to blame for a hazard.

use super::Document;
use crate::analysis::eligible_nodes::one_node_of;
use crate::analysis::{Analysis, affinity, users};
use crate::model::workload::{Workload, WorkloadKind};
use crate::rules::{Hazard, codes};

/// Whether the update causes `hazard` or makes it worse.
pub(super) fn is_new(hazard: &Hazard, before: &[Hazard]) -> bool {
    !before.iter().any(|old| hazard.is_covered_by(old))
}

/// Whether the update from `old` makes a controller replace running pods, as any change of the pod
/// template does. Documents that cannot be compared count as changed. The end of a pause does not
/// count: the template was judged when it was written, and resuming may be the only way out of a
/// rollout that hangs. Kinds whose pods have no revisions do not replace running pods, so they start
/// no rollout. Only Argo Rollouts starts pods of the old template if there were none.
pub(super) fn starts_a_rollout(old: &Workload, new: &Workload, document: &dyn Document) -> bool {
    new.kind.revision_label().is_some()
        && new.replicas > 0
        && (old.replicas > 0 || new.kind == WorkloadKind::Rollout)
        && document.changes_template()
}

/// Whether the update from `old` keeps a hazard and yet is a step towards its end: if several
/// workloads share a claim, one of them must be the first to get affinity to the others. `analysis`
/// is that of the new object.
pub(super) fn is_a_step(analysis: &Analysis<'_>, old: &Workload, hazard: &Hazard) -> bool {
    if hazard.rule != codes::WORKLOADS_SHARE_VOLUME {
        return false;
    }
    let facts = analysis.facts;
    let ours = &analysis.placement.one_node;
    let is_pinned_now = ours.is_some() && one_node_of(old, facts).is_none();
    let mut others =
        hazard.volumes.iter().flat_map(|claim| users::others(analysis, claim)).peekable();
    others.peek().is_some()
        && others.all(|other| {
            let theirs = one_node_of(other, facts);
            let joins_them = is_pinned_now && (theirs.is_none() || theirs == *ours);
            let follows = |workload: &Workload| {
                affinity::other_targets(workload, other, facts)
                    .is_some_and(|targets| targets.leaders.is_empty() && !targets.own)
            };
            joins_them || (follows(analysis.workload) && !follows(old))
        })
}
