//! An update moved the pod to another node, and the old one keeps the volume where it is.
//!
//! As for `rollout-overlap`, but strategy and placement looked safe: both revisions are
//! held on one node each, and not on the same one.

use super::rollout_overlap::{end_rollout, old_pod, rolled_out};
use super::{Cause, Steps, limit, named, sentence};
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::analysis::eligibility::Eligibility;
use engine::model::Text;
use engine::snapshot::NodeHint;

pub(super) const CAUSE: Cause = Cause {
    code: "moved-pin",
    title: "The update moves the pod to another node",
    passes: false,
    judge,
    steps: Steps::WithDocuments(end_rollout),
};

fn judge(waiting: &WaitingPod<'_>) -> Option<String> {
    let old = old_pod(waiting)?;
    let node = old.node.as_ref()?;
    let new = waiting.pod.node.as_ref()?;
    let workload = waiting.workload()?;
    if new == node
        || admits(waiting, &Eligibility::new(&workload.template, []), node) != Some(false)
    {
        return None;
    }
    Some(format!(
        "The template of {} no longer lets its pods on node {node}, where {} has the volume; pod {} must be on node {new}. {}, and the rollout stops the old pod only when the new one is ready.",
        rolled_out(waiting),
        named(old),
        waiting.pod.meta.name,
        sentence(&limit(waiting)),
    ))
}

/// Whether pods may be on that node; `None` where it is not known.
fn admits(waiting: &WaitingPod<'_>, eligibility: &Eligibility<'_>, name: &Text) -> Option<bool> {
    let hint = NodeHint {
        key: "metadata.name",
        values: std::slice::from_ref(name),
    };
    let mut admitted = None;
    let view = waiting.index.facts.objects.view;
    view.visit_nodes(Some(&hint), &mut |node| {
        admitted = Some(eligibility.admits(node));
        false
    });
    admitted
}
