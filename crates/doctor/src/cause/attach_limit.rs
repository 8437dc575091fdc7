//! No node that the pod may be on can attach another volume.

use std::cmp::Reverse;

use serde_json::json;

use super::{Judgement, NAMED};
use crate::messages::Statement;
use crate::waiting_pod::WaitingPod;
use engine::model::volume_attachment::VolumeAttachment;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let is_full = waiting.pod.node.is_none()
        && waiting.is_said(Statement::LimitOfNodes)
        && !waiting.is_said(Statement::TakenByAnotherPod);
    if !is_full {
        return None;
    }
    let attachments = &waiting.index.facts.observed.attachments;
    let mut counts: Vec<(usize, &str)> = waiting
        .nodes_of()
        .into_iter()
        .map(|node| {
            let there = |attachment: &&VolumeAttachment| attachment.node == node;
            (attachments.iter().filter(there).filter(|there| there.attached).count(), node)
        })
        .filter(|(count, _)| *count > 0)
        .collect();
    // The fullest node comes first; nodes without volumes are left out.
    counts.sort_by_key(|(count, _)| Reverse(*count));
    let fullest: Vec<String> =
        counts.iter().take(NAMED).map(|(count, node)| format!("{node} has {count}")).collect();
    let more = json!({"fullest": fullest, "cordoned": waiting.cordoned()});
    Some(waiting.told("attach-limit", more))
}
