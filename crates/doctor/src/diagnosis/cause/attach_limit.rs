//! No node that the pod may be on can attach another volume.

use super::driver_error::DRIVERS;
use super::{Judgement, SuggestedAction, no_node, wait};
use crate::diagnosis::messages::{LIMIT_OF_NODES, TAKEN_BY_ANOTHER_POD};
use crate::diagnosis::waiting_pod::WaitingPod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let is_full = waiting.pod.node.is_none()
        && waiting.is_said(LIMIT_OF_NODES)
        && !waiting.is_said(TAKEN_BY_ANOTHER_POD);
    if !is_full {
        return None;
    }
    let fullest: Vec<String> = counts(waiting)
        .into_iter()
        .take(no_node::NAMED)
        .map(|(count, node)| format!("{node} has {count}"))
        .collect();
    let attached = if fullest.is_empty() {
        String::new()
    } else {
        format!(" Attached are: {}.", fullest.join(", "))
    };
    let explanation = format!(
        "Pod {} has no node: those that could take it have as many volumes as their driver or machine type can attach, and no other node is possible.{attached}",
        waiting.pod.meta.name
    );
    Some(Judgement { explanation, steps: steps(waiting) })
}

/// The number of volumes attached to each node from which the volume can be reached. The fullest
/// node comes first; nodes without volumes are left out.
fn counts<'a>(waiting: &'a WaitingPod<'_>) -> Vec<(usize, &'a str)> {
    let attachments = &waiting.index.facts.observed.attachments;
    let attached_to = |node: &str| {
        attachments
            .iter()
            .filter(|attachment| attachment.attached && attachment.node == node)
            .count()
    };
    let mut counts: Vec<_> = no_node::nodes_of(waiting)
        .into_iter()
        .map(|node| (attached_to(node), node))
        .filter(|(count, _)| *count > 0)
        .collect();
    counts.sort_by(|(x, a), (y, b)| y.cmp(x).then(a.cmp(b)));
    counts
}

fn steps(waiting: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    let mut steps = vec![SuggestedAction::check(
        waiting.kubectl(&["get", "csinode", "-o", DRIVERS]),
        "Nothing. It shows how many volumes of each driver a node can attach.",
    )];
    steps.extend(no_node::uncordon(waiting));
    steps.push(SuggestedAction::note(
        "Add a node where the volume can be, or stop pods with volumes on a node that is full. A machine type that attaches more volumes, or fewer volumes for each pod, helps for good.",
    ));
    steps.push(wait(
        waiting,
        "Time. The scheduler places the pod as soon as a node has room for another volume.",
    ));
    steps
}
