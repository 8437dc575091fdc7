//! No node that the pod may be on can attach another volume.

use super::driver_error::DRIVERS;
use super::{Cause, Steps, SuggestedAction, no_node, wait};
use crate::diagnosis::messages::{LIMIT_OF_NODES, TAKEN_BY_ANOTHER_POD};
use crate::diagnosis::waiting_pod::WaitingPod;

pub(super) const CAUSE: Cause = Cause {
    code: "attach-limit",
    title: "The nodes have as many volumes as they can attach",
    passes: false,
    judge,
    steps: Steps::FromFacts(steps),
};

/// The largest number of nodes that the message names.
const NAMED: usize = 5;

fn judge(waiting: &WaitingPod<'_>) -> Option<String> {
    let is_full = waiting.pod.node.is_none()
        && waiting.is_said(LIMIT_OF_NODES)
        && !waiting.is_said(TAKEN_BY_ANOTHER_POD);
    if !is_full {
        return None;
    }
    let counts = counts(waiting);
    let shown: Vec<String> = counts
        .iter()
        .take(NAMED)
        .map(|(node, count)| format!("{node} has {count}"))
        .collect();
    let shown = if shown.is_empty() {
        String::new()
    } else {
        format!(" Attached are: {}.", shown.join(", "))
    };
    Some(format!(
        "Pod {} has no node: those that could take it have as many volumes as their driver or machine type can attach, and no other node is possible.{shown}",
        waiting.pod.meta.name
    ))
}

/// The nodes from which the volume can be reached, each with the number of volumes attached to it.
/// The fullest node comes first; nodes without volumes are left out.
fn counts(waiting: &WaitingPod<'_>) -> Vec<(String, usize)> {
    let attachments = &waiting.index.facts.observed.attachments;
    let count = |node: &str| {
        let on_it = attachments
            .iter()
            .filter(|it| it.attached && it.node == node);
        on_it.count()
    };
    let nodes = no_node::nodes_of(waiting).into_iter();
    let mut counts: Vec<_> = nodes
        .map(|node| {
            let count = count(&node);
            (node, count)
        })
        .filter(|(_, count)| *count > 0)
        .collect();
    counts.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
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
