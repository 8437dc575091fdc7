//! The volume should have come long since, and nobody says why it does not.
//!
//! What follows is on its way as for `delay`, and is not any more: a pod that ends takes its
//! grace period, and drivers attach and detach within seconds.

use super::{Cause, Purpose, SuggestedAction, named, wait};
use crate::diagnosis::health::{Examined, Health};
use crate::diagnosis::span;
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::node::OUT_OF_SERVICE;
use engine::observed::Pod;
use engine::observed::VolumeAttachment;

/// For so many seconds nobody wonders.
const SLOW: i64 = 300;

/// After so many the attach-detach controller has detached by force from a node that is not
/// Ready: 6 minutes (`ReconcilerMaxWaitForUnmountDuration` in
/// `pkg/controller/volume/attachdetach`), and one for the driver.
const FORCED: i64 = 420;

/// What the attach-detach controller says of pods whose namespace is not the waiting one's
/// (`reportMultiAttachError` in `pkg/controller/volume/attachdetach/reconciler`). A claim
/// has a volume for itself, so that they use it by another PersistentVolume.
const OF_ANOTHER_CLAIM: &str = "in different namespaces";

pub(super) const CAUSE: Cause = Cause {
    code: "stalled",
    title: "The volume does not move any more",
    passes: false,
    judge,
    steps: |stuck, _| steps(stuck),
};

/// What does not move.
enum Stalled<'a> {
    /// A pod that should be gone, and for how many seconds.
    Pod(&'a Pod, i64),
    /// Another PersistentVolume of the same disk is in use.
    SameDisk,
    /// The driver says nothing for so many seconds.
    Driver {
        attachment: &'a VolumeAttachment,
        attaches: bool,
        for_seconds: i64,
    },
    /// A healthy node keeps what no pod of it uses.
    Node(&'a VolumeAttachment),
    /// A node that is not Ready keeps it longer than until it is detached by force.
    UnreadyNode(&'a VolumeAttachment),
}

fn judge(stuck: &WaitingPod<'_>) -> Option<String> {
    Some(match stalled(stuck)? {
        Stalled::Pod(pod, late) => {
            let next = match stuck.cannot_end() {
                true => " The next pod is not created until it is gone.",
                false => "",
            };
            format!(
                "The volume is with {}, which was told to end and should have been gone {} ago: its containers, a finalizer or its kubelet hold it.{next}",
                named(pod),
                span(late)
            )
        }
        Stalled::SameDisk => format!(
            "Pods of another namespace have the disk, which the claim \"{}\" cannot give them: another PersistentVolume stands for the same disk, with the same driver and volumeHandle.",
            stuck.claim
        ),
        Stalled::Driver {
            attachment,
            attaches,
            for_seconds,
        } => format!(
            "The driver has been asked for {} to {} node {}, and says neither that it has done so nor why not. Where its external-attacher runs, that takes seconds.",
            span(for_seconds),
            match attaches {
                true => "attach the volume to",
                false => "detach the volume from",
            },
            attachment.node
        ),
        Stalled::Node(attachment) => format!(
            "No pod uses the volume on node {0}, but the kubelet of {0} has not unmounted it, and Kubernetes never detaches by force from a healthy node.",
            attachment.node
        ),
        Stalled::UnreadyNode(attachment) => format!(
            "No pod uses the volume on node {}, which is not Ready, and Kubernetes should have detached it by force by now. Its controller manager may run with --disable-force-detach-on-timeout: then it never does.",
            attachment.node
        ),
    })
}

fn stalled<'a>(stuck: &WaitingPod<'a>) -> Option<Stalled<'a>> {
    if let Some((pod, late)) = stuck.overdue_pod() {
        return Some(Stalled::Pod(pod, late));
    }
    if !stuck.holders.is_empty() {
        return None;
    }
    if stuck
        .said
        .is_some_and(|said| said.contains(OF_ANOTHER_CLAIM))
    {
        return Some(Stalled::SameDisk);
    }
    let now = stuck.index.facts.now.as_second();
    let silent = |attachment: &'a VolumeAttachment| {
        let meta = &attachment.meta;
        let is_told = attachment.attach_error.is_some() || attachment.detach_error.is_some();
        let since = match (meta.deleted, attachment.attached) {
            (Some(deleted), _) => deleted,
            (None, false) => meta.made?,
            (None, true) => return None,
        };
        let for_seconds = now - since.as_second();
        (for_seconds > SLOW && !is_told).then_some(Stalled::Driver {
            attachment,
            attaches: meta.deleted.is_none(),
            for_seconds,
        })
    };
    let foreign = stuck.foreign_attachments();
    let own = stuck.own_attachment();
    if let Some(stalled) = stuck.foreign_attachments().chain(own).find_map(silent) {
        return Some(stalled);
    }
    let waited = now - stuck.pod.waits_since()?.as_second();
    let mut kept = foreign.filter(|it| it.is_settled() && !is_used(stuck, it));
    kept.find_map(|it| match Examined::of(stuck.index, &it.node).health {
        Health::Alive if waited > SLOW => Some(Stalled::Node(it)),
        Health::NotReady if waited > FORCED => Some(Stalled::UnreadyNode(it)),
        _ => None,
    })
}

/// Whether a pod of its node uses the volume.
fn is_used(stuck: &WaitingPod<'_>, attachment: &VolumeAttachment) -> bool {
    let mut users = stuck.users();
    users.any(|user| user.node.as_ref() == Some(&attachment.node))
}

fn steps(stuck: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    let Some(stalled) = stalled(stuck) else {
        return Vec::new();
    };
    let driver = stuck.driver();
    let (look, told) = match stalled {
        Stalled::Pod(pod, _) => (
            SuggestedAction::new(
                Purpose::Check,
                stuck.in_namespace(&["describe", &format!("pod/{}", pod.meta.name)]),
                "Nothing. Finalizers, and the Events of its containers, say what holds it.",
            ),
            "A finalizer goes when whoever set it has done its work. A container that does not end, or a kubelet that hangs, takes a restart of the kubelet or of the node. Do not delete the pod with --force: the volume may still be written to.".to_owned(),
        ),
        Stalled::SameDisk => (
            SuggestedAction::new(
                Purpose::Check,
                stuck.kubectl(&[
                    "get",
                    "pv",
                    "-o",
                    "custom-columns=NAME:.metadata.name,DRIVER:.spec.csi.driver,HANDLE:.spec.csi.volumeHandle,NAMESPACE:.spec.claimRef.namespace,CLAIM:.spec.claimRef.name",
                ]),
                "Nothing. Two lines with the same driver and handle are the two.",
            ),
            "A disk has one PersistentVolume. Stop the pods of one of the two, and remove that claim and its volume, whose reclaim policy must be Retain by then: with Delete the disk goes with it.".to_owned(),
        ),
        Stalled::Driver { attachment, .. } => (
            SuggestedAction::new(
                Purpose::Check,
                stuck.kubectl(&["get", "volumeattachment", &attachment.meta.name, "-o", "yaml"]),
                "Nothing. Where neither status.attachError nor status.detachError is there, nobody works on it.",
            ),
            format!("Look whether the controller of {driver} runs: its container csi-attacher must be there and hold a Lease, which its log tells. Do not delete the VolumeAttachment: the disk may still be attached."),
        ),
        Stalled::UnreadyNode(attachment) => (
            SuggestedAction::new(
                Purpose::Check,
                stuck.kubectl(&["describe", "node", &attachment.node]),
                "Nothing. Its conditions say what it lacks.",
            ),
            format!(
                "Bring node {0} back to Ready: its kubelet then lets the volume go. If that is not to be, power the machine off and see that it is off; after that, the taint {OUT_OF_SERVICE} on {0} has its pods deleted and its volumes detached.",
                attachment.node
            ),
        ),
        Stalled::Node(attachment) => (
            SuggestedAction::new(
                Purpose::Check,
                stuck.kubectl(&["get", "node", &attachment.node, "-o", "jsonpath={.status.volumesInUse}"]),
                "Nothing. What is listed there, the kubelet has not unmounted.",
            ),
            format!("The logs of the kubelet of {node}, and of the node plugin of {driver} there, say why it is still mounted. A restart of the kubelet often helps; a drain and a restart of {node} always does.", node = attachment.node),
        ),
    };
    let wait = wait(
        stuck,
        Purpose::WayOut,
        "Time. It comes as soon as that is put right.",
    );
    vec![look, SuggestedAction::told(&told), wait]
}
