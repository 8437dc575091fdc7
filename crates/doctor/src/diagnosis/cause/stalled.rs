//! The volume is overdue, and no message says why.
//!
//! This resembles `delay`, but the time for a delay is over.

use super::delay::{FORCED, SLOW};
use super::{Judgement, SuggestedAction, describe, wait};
use crate::diagnosis::health::{Examined, Health};
use crate::diagnosis::span;
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::node::OUT_OF_SERVICE;
use engine::model::volume_attachment::VolumeAttachment;

/// The output format that shows whether the attach-detach controller attaches the volumes of a
/// node.
const MANAGED: &str =
    r"jsonpath={.metadata.annotations.volumes\.kubernetes\.io/controller-managed-attach-detach}";

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let Stall { explanation, check, note } = stall(waiting)?;
    let wait = wait(waiting, "Time. The volume comes as soon as this is fixed.");
    Some(Judgement { explanation, steps: vec![check, SuggestedAction::note(&note), wait] })
}

/// The part that makes no progress: what it is, what to look at and what to do.
struct Stall {
    explanation: String,
    check: SuggestedAction,
    note: String,
}

fn stall(waiting: &WaitingPod<'_>) -> Option<Stall> {
    if let Some((pod, late)) = waiting.overdue_pod() {
        let next = if waiting.pod.is_ending() {
            " The next pod is not created until it is gone."
        } else {
            ""
        };
        let unready = pod
            .node
            .as_deref()
            .filter(|node| Examined::of(waiting.index, node).health == Health::NotReady)
            .map(|node| {
                format!(
                    " Node {node} is not Ready: its kubelet may end no pod before that is mended."
                )
            });
        return Some(Stall {
            explanation: format!(
                "The volume is with {}, which is terminating and should have been gone {} ago: its containers, a finalizer or its kubelet hold it.{}{next}",
                describe(pod),
                span(late),
                unready.unwrap_or_default()
            ),
            check: SuggestedAction::check(
                waiting.in_namespace(&["describe", &format!("pod/{}", pod.meta.name)]),
                "Nothing. Finalizers, and the Events of its containers, say what holds it.",
            ),
            note: "A finalizer goes when whoever set it has done its work. A container that does not end, or a kubelet that hangs, takes a restart of the kubelet or of the node. Do not delete the pod with --force: the volume may still be written to.".to_owned(),
        });
    }
    if !waiting.holders.is_empty() {
        return None;
    }
    let driver = waiting.driver();
    let silent = waiting
        .foreign_attachments()
        .chain(waiting.own_attachment())
        .find_map(|attachment| Some((attachment, silent(waiting, attachment)?)));
    if let Some((attachment, for_seconds)) = silent {
        return Some(Stall {
            explanation: format!(
                "The driver was asked {} ago to {} node {}, and has reported neither success nor an error. With a running external-attacher, that takes seconds.",
                span(for_seconds),
                if attachment.metadata.is_being_deleted() {
                    "detach the volume from"
                } else {
                    "attach the volume to"
                },
                attachment.node
            ),
            check: SuggestedAction::check(
                waiting.in_full(attachment),
                "Nothing. Where neither status.attachError nor status.detachError is there, nobody works on it.",
            ),
            note: format!(
                "Look whether the controller of {driver} runs: its container csi-attacher must be there and hold a Lease; its log says whether it does. Do not delete the VolumeAttachment: the disk may still be attached."
            ),
        });
    }
    let waited = waiting.waited()?;
    if waited > SLOW && is_attached_by_nobody(waiting) {
        let node = waiting.pod.node.as_deref()?;
        return Some(Stall {
            explanation: format!(
                "Node {node} waits for the volume, nobody else has it, and nothing attaches it: there is no VolumeAttachment for that node. The attach-detach controller makes one within seconds."
            ),
            check: SuggestedAction::check(
                waiting.kubectl(&["get", "node", node, "-o", MANAGED]),
                "Nothing. It must print true. Where it does not, the kubelet attaches volumes itself, and CSI drivers do not work.",
            ),
            note: "Look whether kube-controller-manager runs, whose attach-detach controller makes VolumeAttachments; its log says what it lacks.".to_owned(),
        });
    }
    // Nodes that keep a volume that none of their pods uses.
    waiting
        .foreign_attachments()
        .filter(|attachment| attachment.is_settled() && !is_used(waiting, attachment))
        .find_map(|attachment| never_detached(waiting, &attachment.node, waited))
}

/// Explains why a node keeps a volume that none of its pods uses, if it keeps it for too long.
fn never_detached(waiting: &WaitingPod<'_>, node: &str, waited: i64) -> Option<Stall> {
    let driver = waiting.driver();
    let examined = Examined::of(waiting.index, node);
    let outlook = examined.outlook(waiting.index.facts);
    match examined.health {
        Health::Alive if waited > SLOW => Some(Stall {
            explanation: format!(
                "No pod uses the volume on node {node}, but it is still there. {outlook}"
            ),
            check: SuggestedAction::check(
                waiting.kubectl(&["get", "node", node, "-o", "jsonpath={.status.volumesInUse}"]),
                "Nothing. Volumes in this list are still mounted.",
            ),
            note: format!(
                "The logs of the kubelet of {node}, and of the node plugin of {driver} there, say why it is still mounted. A restart of the kubelet often helps; a drain and a restart of {node} always does."
            ),
        }),
        Health::NotReady if waited > FORCED => Some(Stall {
            explanation: format!(
                "No pod uses the volume on node {node}, which is not Ready. {outlook} Those 6 minutes are over."
            ),
            check: SuggestedAction::check(
                waiting.kubectl(&["describe", "node", node]),
                "Nothing. Its conditions say what it lacks.",
            ),
            note: format!(
                "Bring node {node} back to Ready: its kubelet then lets the volume go. If that is not possible, power the machine off and check that it is off; after that, the taint {OUT_OF_SERVICE} on {node} has its pods deleted and its volumes detached."
            ),
        }),
        _ => None,
    }
}

/// The number of seconds for which the driver has reported nothing of the attachment, if that is
/// too long.
fn silent(waiting: &WaitingPod<'_>, attachment: &VolumeAttachment) -> Option<i64> {
    let meta = &attachment.metadata;
    let is_reported = attachment.attach_error.is_some() || attachment.detach_error.is_some();
    let since = match (meta.deletion_timestamp, attachment.attached) {
        (Some(deleted), _) => deleted,
        (None, false) => meta.created()?,
        (None, true) => return None,
    };
    let for_seconds = waiting.index.facts.now.as_second() - since.as_second();
    (for_seconds > SLOW && !is_reported).then_some(for_seconds)
}

/// Whether the volume has no attachment, although all attachments can be seen.
fn is_attached_by_nobody(waiting: &WaitingPod<'_>) -> bool {
    waiting.is_csi()
        && waiting.is_attached()
        && waiting.index.facts.observed.has_read("volumeattachments")
        && waiting.shown_attachments().next().is_none()
}

/// Whether a pod on the node of the attachment uses the volume.
fn is_used(waiting: &WaitingPod<'_>, attachment: &VolumeAttachment) -> bool {
    waiting.users().any(|user| user.node.as_ref() == Some(&attachment.node))
}
