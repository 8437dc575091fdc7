//! An update moved the pod to another node, and the old pod keeps the volume on its node.
//!
//! This resembles `rollout-overlap`, but strategy and placement looked safe: each revision is
//! pinned to one node, and the two nodes differ.

use super::Judgement;
use crate::waiting_pod::WaitingPod;
use engine::analysis::eligibility::Eligibility;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let old = waiting.old_pod()?;
    let node = old.node.as_ref()?;
    let new = waiting.pod.node.as_ref()?;
    let workload = waiting.workload()?;
    let left = waiting.view().node(node).found()?;
    let eligibility = Eligibility::new(&workload.template, [], waiting.index.facts.objects);
    if new == node || eligibility.admits(left) {
        return None;
    }
    Some(waiting.stuck_rollout("moved-pin", old))
}
