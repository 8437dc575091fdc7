//! The storage driver says itself what is wrong.

use super::{Cause, Purpose, Step, wait};
use crate::diagnosis::VolumeAttachment;
use crate::diagnosis::stuck::Stuck;

pub(super) const CAUSE: Cause = Cause {
    code: "driver-error",
    title: "The storage driver cannot attach or detach the volume",
    passes: false,
    judge,
    steps: |stuck, _| steps(stuck),
};

fn judge(stuck: &Stuck<'_>) -> Option<String> {
    let (attachment, verb, message) = fault(stuck)?;
    Some(format!(
        "The driver could not {verb} node {}: \"{}\". It tries again by itself, and fails until that is put right.",
        attachment.node,
        message.trim().trim_end_matches('.'),
    ))
}

/// The attachment at fault, what was to be done and what the driver said.
fn fault<'a>(stuck: &Stuck<'a>) -> Option<(&'a VolumeAttachment, &'static str, &'a str)> {
    let attach =
        |it: &'a VolumeAttachment| Some((it, "attach the volume to", it.attach_error.as_deref()?));
    let detach = |it: &'a VolumeAttachment| {
        // As long as a pod there uses it, nobody wants it detached.
        let in_use = stuck
            .staying()
            .any(|pod| pod.node.as_ref() == Some(&it.node));
        let message = it.detach_error.as_deref().filter(|_| !in_use)?;
        Some((it, "detach the volume from", message))
    };
    let own = stuck.own_attachment().and_then(attach);
    own.or_else(|| stuck.foreign_attachments().find_map(detach))
}

fn steps(stuck: &Stuck<'_>) -> Vec<Step> {
    let Some((attachment, ..)) = fault(stuck) else {
        return Vec::new();
    };
    let name = attachment.meta.name.as_str();
    vec![
        Step::new(
            Purpose::Check,
            stuck.kubectl(&["get", "volumeattachment", name, "-o", "yaml"]),
            "Nothing. status.attachError and status.detachError hold the driver's words and when they were said.",
        ),
        Step::told(&format!(
            "The log of {}'s controller, in the container csi-attacher, says the rest. Credentials, a quota, a disk that the back end has lost and too many volumes on one node are the usual reasons.",
            stuck.used.driver
        )),
        wait(
            stuck,
            Purpose::WayOut,
            "Time. Once the reason is put right the driver's next try succeeds, within minutes. Do not delete the VolumeAttachment: the disk may still be attached.",
        ),
    ]
}
