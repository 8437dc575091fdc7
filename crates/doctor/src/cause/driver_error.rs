//! The storage driver reports the error itself.

use serde_json::json;

use super::Judgement;
use crate::messages::{self, Statement, quotable};
use crate::told::merged;
use crate::waiting_pod::WaitingPod;
use engine::model::volume_attachment::VolumeAttachment;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let fault = waiting.fault().filter(|fault| !waiting.is_held_elsewhere(fault))?;
    let said = quotable(fault.message);
    // The attacher or the kubelet reports this, not the driver.
    if fault.state != DETACHING && Statement::NodeWithoutDriver.is_in(fault.message) {
        return Some(waiting.told("driver-missing", json!({"there": fault.node, "said": said})));
    }
    let more = json!({
        "state": fault.state,
        "health": waiting.examined(fault.node).health,
        "there": fault.node,
        "said": said,
        "attachment": fault.attachment.map(|found| &found.metadata.name),
        "here-again": waiting.pod.node.as_deref() == Some(fault.node),
    });
    let advice = match waiting.attached_elsewhere(&fault).next() {
        Some(other) => waiting.attached_to(&other.node),
        None => json!({"advice": messages::advice(fault.message, "driver-error")}),
    };
    Some(waiting.told("driver-error", merged(more, advice)))
}

impl<'a> WaitingPod<'a> {
    /// Whether the driver's error only follows from another cause: a pod on the other node has the
    /// volume. The attach-detach controller requests a second attachment if it does not know about the
    /// first one yet, for example if two pods start at once (`reconcileDesiredState` in
    /// `pkg/controller/volume/attachdetach/reconciler`, which reads its own cache).
    fn is_held_elsewhere(&self, fault: &Fault<'_>) -> bool {
        fault.state == ATTACHING
            && self.attached_elsewhere(fault).any(|attachment| self.stays_on(&attachment.node))
            && self.exclusive_use().is_some()
    }

    /// The attachments that the driver may mean if it says that the disk is already attached.
    fn attached_elsewhere(&self, fault: &Fault<'_>) -> impl Iterator<Item = &'a VolumeAttachment> {
        let says_so = Statement::AttachedElsewhere.is_in(fault.message);
        self.foreign_attachments().filter(move |attachment| says_so && attachment.is_settled())
    }

    fn fault(&self) -> Option<Fault<'a>> {
        let fault = |state, message: Option<&'a str>, attachment: Option<&'a VolumeAttachment>| {
            let elsewhere = attachment.map(|attachment| &attachment.node);
            Some(Fault {
                state,
                node: elsewhere.or(self.pod.node.as_ref())?,
                message: message?,
                attachment,
            })
        };
        let attach = |attachment: &'a VolumeAttachment| {
            fault(ATTACHING, attachment.attach_error.as_deref(), Some(attachment))
        };
        // Kubernetes does not detach a volume while a pod on the node uses it.
        let detach = |attachment: &'a VolumeAttachment| {
            fault(DETACHING, attachment.detach_error.as_deref(), Some(attachment))
                .filter(|_| !self.stays_on(&attachment.node))
        };
        // If the volume cannot be detached, it cannot be attached either: after a failed detach the
        // attach-detach controller tries to attach it all the same (`GenerateDetachVolumeFunc` in
        // `pkg/volume/util/operationexecutor`), and the driver refuses.
        let own = self.own_attachment();
        // If no pod has the volume, an attachment that fails on another node counts: it is the one that
        // Kubernetes tries.
        let elsewhere =
            || self.foreign_attachments().find_map(attach).filter(|_| self.holders.is_empty());
        let leaving = own.filter(|attachment| attachment.metadata.is_being_deleted());
        // A fault that only an Event reports, because no VolumeAttachment can be seen or the driver's
        // attacher reports nothing. While another node has the volume, the pod does not wait because of
        // an earlier fault.
        let is_said = || {
            leaving.is_none()
                && self.is_said(Statement::AttachFailed)
                && self.holding_nodes().is_empty()
        };
        self.foreign_attachments()
            .chain(leaving)
            .find_map(detach)
            .or_else(|| own.and_then(attach))
            .or_else(elsewhere)
            .or_else(|| fault("mounting", self.mount_failed(), None))
            .or_else(|| fault(ATTACHING, self.said.filter(|_| is_said()), own))
    }
}

const ATTACHING: &str = "attaching";
const DETACHING: &str = "detaching";

/// An operation on the volume that failed.
struct Fault<'a> {
    state: &'static str,
    node: &'a str,
    message: &'a str,
    attachment: Option<&'a VolumeAttachment>,
}
