//! The storage driver says itself what is wrong.

use super::{Cause, Purpose, SuggestedAction, wait};
use crate::diagnosis::health::{Examined, Health};
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::observed::VolumeAttachment;

/// What the attach-detach controller says when a driver fails (`GenerateAttachVolumeFunc` in
/// `pkg/volume/util/operationexecutor`), its attacher's silence included.
const ATTACH_FAILED: &str = "AttachVolume.Attach failed";

pub(super) const CAUSE: Cause = Cause {
    code: "driver-error",
    title: "The storage driver cannot attach, detach or mount the volume",
    passes: false,
    judge,
    steps: |stuck, _| steps(stuck),
};

fn judge(stuck: &WaitingPod<'_>) -> Option<String> {
    let fault = fault(stuck)?;
    let (who, attached) = match fault.verb {
        MOUNT => ("kubelet", "The volume is attached, but the "),
        _ => ("driver", "The "),
    };
    Some(format!(
        "{attached}{who} could not {} node {}: \"{}\". It is tried again and again, and fails until that is put right.",
        fault.verb,
        fault.node,
        fault.message.trim().trim_end_matches('.'),
    ))
}

const ATTACH: &str = "attach the volume to";
const DETACH: &str = "detach the volume from";
const MOUNT: &str = "mount it on";

/// What a driver could not do.
struct Fault<'a> {
    verb: &'static str,
    node: &'a str,
    message: &'a str,
    attachment: Option<&'a VolumeAttachment>,
}

fn fault<'a>(stuck: &WaitingPod<'a>) -> Option<Fault<'a>> {
    let attach = |it: &'a VolumeAttachment| {
        Some(Fault {
            verb: ATTACH,
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
            verb: DETACH,
            node: &it.node,
            message: it.detach_error.as_deref()?,
            attachment: Some(it),
        })
    };
    // Where it cannot be detached, it cannot be attached either: after a failed detach the
    // attach-detach controller tries all the same (`GenerateDetachVolumeFunc` in
    // `pkg/volume/util/operationexecutor`), and the driver refuses.
    let own = stuck.own_attachment();
    // An attachment that fails elsewhere counts where nobody has the volume: it is the one
    // that Kubernetes tries.
    let elsewhere = || {
        let mut foreign = stuck.foreign_attachments();
        foreign
            .find_map(attach)
            .filter(|_| stuck.holders.is_empty())
    };
    let leaving = own.filter(|it| it.meta.deleted.is_some());
    let mut detached = stuck.foreign_attachments().chain(leaving);
    detached
        .find_map(detach)
        .or_else(|| own.and_then(attach))
        .or_else(elsewhere)
        .or_else(|| {
            Some(Fault {
                verb: MOUNT,
                node: stuck.pod.node.as_deref()?,
                message: stuck.mount_failed()?,
                attachment: None,
            })
        })
        .or_else(|| told_by_event(stuck).filter(|_| leaving.is_none()))
}

/// A fault that only an Event tells: where no VolumeAttachment can be seen, or where the
/// driver's attacher says nothing at all. While somebody else has the volume, an earlier
/// fault is not what the pod waits for.
fn told_by_event<'a>(stuck: &WaitingPod<'a>) -> Option<Fault<'a>> {
    let message = stuck.said.filter(|said| said.contains(ATTACH_FAILED))?;
    let is_free = stuck.holding_nodes().is_empty();
    Some(Fault {
        verb: ATTACH,
        node: stuck.pod.node.as_deref().filter(|_| is_free)?,
        message,
        attachment: stuck.own_attachment(),
    })
}

/// What the errors of many drivers have in common, and what to do about it.
struct Known {
    /// Parts of their texts, in lower case.
    parts: &'static [&'static str],
    /// What failed.
    verbs: &'static [&'static str],
    advice: &'static str,
}

static KNOWN: [Known; 2] = [
    // DigitalOcean, Azure, Cinder and vSphere among others.
    Known {
        parts: &[
            "already attached",
            "attached to the wrong",
            "attached to another",
            "attached to a different",
            "still has volumeattachments",
            "dangling",
            "is still being used",
            "resource_in_use",
        ],
        verbs: &[ATTACH, MOUNT],
        advice: "The disk is on another machine, which Kubernetes does not know of. Find that machine in the console of your storage or cloud. Once nothing there writes to the disk, detach it there; the driver does not do so by itself.",
    },
    Known {
        parts: &[
            // The code that the CSI specification has for it.
            "resourceexhausted",
            "attachment limit",
            "attachmentlimitexceeded",
            "max number of volumes",
            "max number of attachments",
            "maximum number of volumes",
            "maximum number of data disks",
            "maximum_persistent_disks",
        ],
        verbs: &[ATTACH],
        advice: "The node has as many volumes as it may have. Cordon it and delete the pod, which has not started: its controller makes another one, which goes elsewhere.",
    },
];

/// For everything else.
const UNKNOWN: &str = "A controller that does not run, credentials, a quota and a disk that the back end has lost are the usual reasons.";

fn steps(stuck: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    let Some(fault) = fault(stuck) else {
        return Vec::new();
    };
    let look = match fault.attachment {
        Some(attachment) => SuggestedAction::new(
            Purpose::Check,
            stuck.kubectl(&[
                "get",
                "volumeattachment",
                &attachment.meta.name,
                "-o",
                "yaml",
            ]),
            "Nothing. status.attachError and status.detachError hold the driver's words and when they were said.",
        ),
        None => SuggestedAction::new(
            Purpose::Check,
            stuck.in_namespace(&["describe", &format!("pod/{}", stuck.pod.meta.name)]),
            "Nothing. Its Events hold the words, and when they were said.",
        ),
    };
    let message = fault.message.to_lowercase();
    let known = KNOWN
        .iter()
        .filter(|known| known.verbs.contains(&fault.verb))
        .find(|known| known.parts.iter().any(|part| message.contains(part)));
    let orphaned = orphaned(stuck, &fault);
    let driver = stuck.driver();
    let log = match fault.verb {
        MOUNT => format!(
            "The log of {driver}'s node plugin on {} says the rest.",
            fault.node
        ),
        _ => format!(
            "The log of {driver}'s controller, in the container csi-attacher, says the rest."
        ),
    };
    let advice = known.map_or(UNKNOWN, |known| known.advice);
    let mut steps = vec![look, SuggestedAction::told(&format!("{advice} {log}"))];
    steps.extend(orphaned);
    steps.push(
        wait(
            stuck,
            Purpose::WayOut,
            "Time. Once the reason is put right the next try succeeds, within minutes. Do not delete the VolumeAttachment: the disk may still be attached.",
        ),
    );
    steps
}

/// What is left to do where the machine is gone, and the driver can detach from it no more.
fn orphaned(stuck: &WaitingPod<'_>, fault: &Fault<'_>) -> Option<SuggestedAction> {
    let attachment = fault.attachment.filter(|_| fault.verb == DETACH)?;
    let is_gone = Examined::of(stuck.index, fault.node).health == Health::Gone;
    let command = stuck.kubectl(&[
        "patch",
        "volumeattachment",
        &attachment.meta.name,
        "--type=json",
        "-p",
        r#"[{"op":"remove","path":"/metadata/finalizers"}]"#,
    ]);
    is_gone.then(|| {
        SuggestedAction::told(&format!(
            "Node {} is gone. Only if the console shows that the disk is on no machine, and the driver still cannot detach it, is the VolumeAttachment in the way for nothing; then this removes it: `{command}`",
            fault.node
        ))
    })
}
