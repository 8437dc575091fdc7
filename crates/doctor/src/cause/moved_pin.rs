//! An update moved the pod to another node, and the old pod keeps the volume on its node.
//!
//! This resembles `rollout-overlap`, but strategy and placement looked safe: each revision is
//! pinned to one node, and the two nodes differ.

use super::rollout_overlap::{end_rollout, old_pod, rolled_out};
use super::{Judgement, describe, limit, sentence};
use crate::waiting_pod::WaitingPod;
use engine::analysis::eligibility::Eligibility;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let old = old_pod(waiting)?;
    let node = old.node.as_ref()?;
    let new = waiting.pod.node.as_ref()?;
    let workload = waiting.workload()?;
    let left = waiting.view().node(node).found()?;
    let eligibility = Eligibility::new(&workload.template, [], waiting.index.facts.objects);
    if new == node || eligibility.admits(left) {
        return None;
    }
    let explanation = format!(
        "The template of {} no longer lets its pods on node {node}, where {} has the volume; pod {} must be on node {new}. {}, and the rollout stops the old pod only when the new one is ready.",
        rolled_out(waiting),
        describe(old),
        waiting.pod.meta.name,
        sentence(&limit(waiting)),
    );
    Some(Judgement { explanation, steps: end_rollout(waiting, old) })
}
