//! No node that the pod may be on can attach another volume.

use serde_json::json;

use super::{Judgement, NAMED, no_node};
use crate::messages::{LIMIT_OF_NODES, TAKEN_BY_ANOTHER_POD};
use crate::waiting_pod::WaitingPod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let is_full = waiting.pod.node.is_none()
        && waiting.is_said(LIMIT_OF_NODES)
        && !waiting.is_said(TAKEN_BY_ANOTHER_POD);
    if !is_full {
        return None;
    }
    let fullest: Vec<String> = counts(waiting)
        .into_iter()
        .take(NAMED)
        .map(|(count, node)| format!("{node} has {count}"))
        .collect();
    let attached = if fullest.is_empty() {
        String::new()
    } else {
        format!(" Attached are: {}.", fullest.join(", "))
    };
    let more = json!({"attached": attached, "cordoned": no_node::cordoned(waiting)});
    Some(waiting.told("attach-limit", more))
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
