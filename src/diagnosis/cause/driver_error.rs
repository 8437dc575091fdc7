//! The storage driver says itself what is wrong.

use super::{Cause, Purpose, Step, wait};
use crate::diagnosis::VolumeAttachment;
use crate::diagnosis::stuck::Stuck;

/// What the attach-detach controller says when a driver fails (`GenerateAttachVolumeFunc` in
/// `pkg/volume/util/operationexecutor`), its attacher's silence included.
const ATTACH_FAILED: &str = "AttachVolume.Attach failed";

pub(super) const CAUSE: Cause = Cause {
    code: "driver-error",
    title: "The storage driver cannot attach or detach the volume",
    passes: false,
    judge,
    steps: |stuck, _| steps(stuck),
};

fn judge(stuck: &Stuck<'_>) -> Option<String> {
    let fault = fault(stuck)?;
    Some(format!(
        "The driver could not {} node {}: \"{}\". It is tried again and again, and fails until that is put right.",
        fault.verb,
        fault.node,
        fault.message.trim().trim_end_matches('.'),
    ))
}

/// What a driver could not do.
struct Fault<'a> {
    verb: &'static str,
    node: &'a str,
    message: &'a str,
    attachment: Option<&'a VolumeAttachment>,
}

fn fault<'a>(stuck: &Stuck<'a>) -> Option<Fault<'a>> {
    let attach = |it: &'a VolumeAttachment| {
        Some(Fault {
            verb: "attach the volume to",
            node: &it.node,
            message: it.attach_error.as_deref()?,
            attachment: Some(it),
        })
    };
    let detach = |it: &'a VolumeAttachment| {
        // As long as a pod there uses it, nobody wants it detached.
        let mut staying = stuck.staying();
        if staying.any(|pod| pod.node.as_ref() == Some(&it.node)) {
            return None;
        }
        Some(Fault {
            verb: "detach the volume from",
            node: &it.node,
            message: it.detach_error.as_deref()?,
            attachment: Some(it),
        })
    };
    // Where it cannot be detached, it cannot be attached either: after a failed detach the
    // attach-detach controller tries all the same (`GenerateDetachVolumeFunc` in
    // `pkg/volume/util/operationexecutor`), and the driver refuses.
    let foreign = stuck.foreign_attachments().find_map(detach);
    foreign
        .or_else(|| stuck.own_attachment().and_then(attach))
        .or_else(|| told_by_event(stuck))
}

/// A fault that only an Event tells: where no VolumeAttachment can be seen, or where the
/// driver's attacher says nothing at all. While somebody else has the volume, an earlier
/// fault is not what the pod waits for.
fn told_by_event<'a>(stuck: &Stuck<'a>) -> Option<Fault<'a>> {
    let message = stuck.said.filter(|said| said.contains(ATTACH_FAILED))?;
    let is_free = stuck.holding_nodes().is_empty();
    Some(Fault {
        verb: "attach the volume to",
        node: stuck.pod.node.as_deref().filter(|_| is_free)?,
        message,
        attachment: stuck.own_attachment(),
    })
}

fn steps(stuck: &Stuck<'_>) -> Vec<Step> {
    let attachment = fault(stuck).and_then(|fault| fault.attachment);
    let look = attachment.map(|attachment| {
        let name = attachment.meta.name.as_str();
        Step::new(
            Purpose::Check,
            stuck.kubectl(&["get", "volumeattachment", name, "-o", "yaml"]),
            "Nothing. status.attachError and status.detachError hold the driver's words and when they were said.",
        )
    });
    let driver = match stuck.used.driver.as_str() {
        "" => "the driver",
        driver => driver,
    };
    let rest = [
        Step::told(&format!(
            "The log of {driver}'s controller, in the container csi-attacher, says the rest. A controller that does not run, credentials, a quota, a disk that the back end has lost and too many volumes on one node are the usual reasons.",
        )),
        wait(
            stuck,
            Purpose::WayOut,
            "Time. Once the reason is put right the next try succeeds, within minutes. Do not delete the VolumeAttachment: the disk may still be attached.",
        ),
    ];
    look.into_iter().chain(rest).collect()
}
