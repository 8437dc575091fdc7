//! The volume is overdue, and no message says why.
//!
//! This resembles `delay`, but the time for a delay is over.

use serde_json::{Value, json};

use super::delay::{FORCED, SLOW};
use super::{Judgement, describe};
use crate::health::Health;
use crate::report_case::state;
use crate::span::span;
use crate::waiting_pod::WaitingPod;
use engine::model::volume_attachment::VolumeAttachment;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    if let Some((pod, late)) = waiting.overdue_pod() {
        let unready =
            pod.node.as_deref().filter(|node| waiting.examined(node).health == Health::NotReady);
        let more = json!({
            "holder": describe(pod),
            "holding": pod.meta.name,
            "late": span(late),
            "unready": unready,
        });
        return Some(waiting.told("stalled-pod", more));
    }
    if !waiting.holders.is_empty() {
        return None;
    }
    let silent = waiting
        .foreign_attachments()
        .chain(waiting.own_attachment())
        .find_map(|attachment| Some((attachment, waiting.silent(attachment)?)));
    if let Some((attachment, for_seconds)) = silent {
        let more = json!({
            "since": span(for_seconds),
            "state": state(attachment),
            "there": attachment.node,
            "attachment": attachment.metadata.name,
        });
        return Some(waiting.told("stalled-driver", more));
    }
    let waited = waiting.waited()?;
    if waited > SLOW && waiting.is_attached_by_nobody() {
        return Some(waiting.told("stalled-unattached", Value::Null));
    }
    // Nodes that keep a volume that none of their pods uses.
    let is_used = |node| waiting.users().any(|user| user.node.as_ref() == Some(node));
    waiting
        .foreign_attachments()
        .filter(|attachment| attachment.is_settled() && !is_used(&attachment.node))
        .find_map(|attachment| waiting.never_detached(&attachment.node, waited))
}

impl WaitingPod<'_> {
    /// Explains why a node keeps a volume that none of its pods uses, if it keeps it for too long.
    fn never_detached(&self, node: &str, waited: i64) -> Option<Judgement> {
        let examined = self.examined(node);
        let name = match examined.health {
            Health::Alive if waited > SLOW => "stalled-mounted",
            Health::NotReady if waited > FORCED => "stalled-unready",
            _ => return None,
        };
        Some(self.told(name, examined.values()))
    }

    /// The number of seconds for which the driver has reported nothing of the attachment, if that is
    /// too long.
    fn silent(&self, attachment: &VolumeAttachment) -> Option<i64> {
        let meta = &attachment.metadata;
        let is_reported = attachment.attach_error.is_some() || attachment.detach_error.is_some();
        let since = match (meta.deletion_timestamp, attachment.attached) {
            (Some(deleted), _) => deleted,
            (None, false) => meta.created()?,
            (None, true) => return None,
        };
        let for_seconds = self.index.since(since);
        (for_seconds > SLOW && !is_reported).then_some(for_seconds)
    }

    /// Whether the volume has no attachment, although all attachments can be seen.
    fn is_attached_by_nobody(&self) -> bool {
        self.has_known_attachments()
            && self.is_attached()
            && self.shown_attachments().next().is_none()
            && self.pod.node.is_some()
    }
}
