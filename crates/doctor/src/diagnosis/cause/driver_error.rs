//! The storage driver says itself what is wrong.

use super::mislabelled::attached_to;
use super::{Cause, Purpose, Steps, SuggestedAction, exclusive_use, wait};
use crate::diagnosis::health::{Examined, Health};
use crate::diagnosis::messages::{
    ATTACH_FAILED, ATTACHED_ELSEWHERE, LIMIT_REACHED, NODE_WITHOUT_DRIVER, Phrase,
};
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::volume_attachment::VolumeAttachment;
use engine::model::workload::WorkloadKind;

pub(super) const CAUSE: Cause = Cause {
    code: "driver-error",
    title: "The storage driver cannot attach, detach or mount the volume",
    passes: false,
    judge,
    steps: Steps::FromFacts(steps),
};

fn judge(waiting: &WaitingPod<'_>) -> Option<String> {
    let fault = fault(waiting).filter(|fault| !is_held_elsewhere(waiting, fault))?;
    let said = fault.message.trim().trim_end_matches('.');
    if lacks_driver(&fault) {
        return Some(format!(
            "Node {} does not have {}: the node plugin, a pod of the driver's DaemonSet, is not there or does not run. Kubernetes says: \"{said}\".",
            fault.node,
            waiting.driver(),
        ));
    }
    let (who, attached) = match fault.verb {
        MOUNT => ("kubelet", "The volume is attached, but the "),
        _ => ("driver", "The "),
    };
    Some(format!(
        "{attached}{who} could not {} node {}: \"{said}\". Kubernetes keeps retrying; it will fail until this is fixed.{}",
        fault.verb,
        fault.node,
        if is_back(waiting, &fault) {
            " The pod is on that node again, and the volume is attached to it once this old attachment is gone."
        } else {
            ""
        }
    ))
}

/// Whether the node of the fault has no plugin of the driver. The attacher says so, not the
/// driver.
fn lacks_driver(fault: &Fault<'_>) -> bool {
    fault.verb == ATTACH && NODE_WITHOUT_DRIVER.is_in(fault.message)
}

/// Whether the volume cannot be detached from the node on which the pod waits for it.
fn is_back(waiting: &WaitingPod<'_>, fault: &Fault<'_>) -> bool {
    fault.verb == DETACH && waiting.pod.node.as_deref() == Some(fault.node)
}

/// Whether the driver only says what another cause explains: a pod on the other node has the
/// volume. The attach-detach controller asks for a second attachment where it does not know of the
/// first yet, as for two pods that start at once (`reconcileDesiredState` in
/// `pkg/controller/volume/attachdetach/reconciler`, which looks into its own cache).
fn is_held_elsewhere(waiting: &WaitingPod<'_>, fault: &Fault<'_>) -> bool {
    fault.verb == ATTACH
        && attached_elsewhere(waiting, fault).any(|it| waiting.stays_on(&it.node))
        && exclusive_use(waiting).is_some()
}

/// The attachments that the driver may mean where it says that the disk is attached already.
fn attached_elsewhere<'a>(
    waiting: &WaitingPod<'a>,
    fault: &Fault<'_>,
) -> impl Iterator<Item = &'a VolumeAttachment> {
    let says_so = ATTACHED_ELSEWHERE.is_in(fault.message);
    let foreign = waiting.foreign_attachments();
    foreign.filter(move |it| says_so && it.is_settled())
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

fn fault<'a>(waiting: &WaitingPod<'a>) -> Option<Fault<'a>> {
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
        if waiting.stays_on(&it.node) {
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
    let own = waiting.own_attachment();
    // An attachment that fails elsewhere counts where nobody has the volume: it is the one
    // that Kubernetes tries.
    let elsewhere = || {
        let mut foreign = waiting.foreign_attachments();
        foreign
            .find_map(attach)
            .filter(|_| waiting.holders.is_empty())
    };
    let leaving = own.filter(|it| it.metadata.is_being_deleted());
    let mut detached = waiting.foreign_attachments().chain(leaving);
    detached
        .find_map(detach)
        .or_else(|| own.and_then(attach))
        .or_else(elsewhere)
        .or_else(|| {
            Some(Fault {
                verb: MOUNT,
                node: waiting.pod.node.as_deref()?,
                message: waiting.mount_failed()?,
                attachment: None,
            })
        })
        .or_else(|| from_event(waiting).filter(|_| leaving.is_none()))
}

/// A fault that only an Event reports: where no VolumeAttachment can be seen, or where the
/// driver's attacher says nothing at all. While somebody else has the volume, an earlier
/// fault is not what the pod waits for.
fn from_event<'a>(waiting: &WaitingPod<'a>) -> Option<Fault<'a>> {
    let message = waiting.said.filter(|_| waiting.is_said(ATTACH_FAILED))?;
    let is_free = waiting.holding_nodes().is_empty();
    Some(Fault {
        verb: ATTACH,
        node: waiting.pod.node.as_deref().filter(|_| is_free)?,
        message,
        attachment: waiting.own_attachment(),
    })
}

/// What the errors of many drivers have in common, and what to do about it.
struct Known {
    phrase: Phrase,
    /// What failed.
    verbs: &'static [&'static str],
    advice: &'static str,
}

static KNOWN: [Known; 2] = [
    Known {
        phrase: ATTACHED_ELSEWHERE,
        verbs: &[ATTACH, MOUNT],
        advice: "No VolumeAttachment of this cluster accounts for that: the disk is on a machine that Kubernetes does not know it to be on. Find that machine in the console of your storage or cloud. Once nothing there writes to the disk, detach it there; the driver does not do so by itself.",
    },
    Known {
        phrase: LIMIT_REACHED,
        verbs: &[ATTACH],
        advice: "The node has as many volumes as it can attach. Cordon it and delete the pod, which has not started: its controller makes another one, which goes elsewhere.",
    },
];

/// For everything else.
const UNKNOWN: &str = "A controller that does not run, credentials, a quota and a disk that the back end has lost are the usual reasons.";

fn steps(waiting: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    let Some(fault) = fault(waiting) else {
        return Vec::new();
    };
    if lacks_driver(&fault) {
        return elsewhere(waiting, &fault);
    }
    let look = look(waiting, &fault);
    let mut known = KNOWN.iter();
    let known = known.find(|it| it.verbs.contains(&fault.verb) && it.phrase.is_in(fault.message));
    let other = attached_elsewhere(waiting, &fault).next();
    let orphaned = orphaned(waiting, &fault);
    let driver = waiting.driver();
    let log = match fault.verb {
        MOUNT => format!(
            "For the rest, see the log of {driver}'s node plugin on {}.",
            fault.node
        ),
        _ => format!(
            "For the rest, see the log of {driver}'s controller, in the container csi-attacher."
        ),
    };
    let advice = match other {
        Some(other) => attached_to(waiting, &other.node),
        None => known.map_or(UNKNOWN, |known| known.advice).to_owned(),
    };
    let mut steps = vec![look, SuggestedAction::note(&format!("{advice} {log}"))];
    steps.extend(orphaned);
    if let Some(attachment) = fault.attachment.filter(|_| is_back(waiting, &fault)) {
        steps.push(SuggestedAction::note(&format!(
            "Do not remove the finalizer of VolumeAttachment {} before the console of your storage shows that the disk is attached to no machine.",
            attachment.metadata.name
        )));
    }
    steps.push(
        wait(
            waiting,
            "Time. Once the reason is fixed the next try succeeds, within minutes. Do not delete the VolumeAttachment: the disk may still be attached.",
        ),
    );
    steps
}

/// Where the driver's words stand.
fn look(waiting: &WaitingPod<'_>, fault: &Fault<'_>) -> SuggestedAction {
    match fault.attachment {
        Some(attachment) => SuggestedAction::check(
            waiting.kubectl(&[
                "get",
                "volumeattachment",
                &attachment.metadata.name,
                "-o",
                "yaml",
            ]),
            "Nothing. status.attachError and status.detachError hold the driver's words and when they were said.",
        ),
        None => SuggestedAction::check(
            waiting.in_namespace(&["describe", &format!("pod/{}", waiting.pod.meta.name)]),
            "Nothing. Its Events hold the words, and when they were said.",
        ),
    }
}

/// What lets the pod start on another node than the one without the driver.
fn elsewhere(waiting: &WaitingPod<'_>, fault: &Fault<'_>) -> Vec<SuggestedAction> {
    let mut steps = vec![
        SuggestedAction::check(
            waiting.kubectl(&["get", "csinode", "-o", DRIVERS]),
            "Nothing. It shows which drivers each node has.",
        ),
        SuggestedAction::note(&format!(
            "Neither credentials nor a quota is the reason. See why the DaemonSet of {} has no pod on {} that runs: a taint that it does not tolerate, its node selector, its image.",
            waiting.driver(),
            fault.node
        )),
    ];
    let is_made_again = waiting.workload().is_some_and(|it| {
        let kinds = [
            WorkloadKind::Deployment,
            WorkloadKind::StatefulSet,
            WorkloadKind::ReplicaSet,
        ];
        kinds.contains(&it.kind)
    });
    if is_made_again && waiting.owner_pod().is_none() && !waiting.used.keeps_its_node() {
        let pod = format!("pod/{}", waiting.pod.meta.name);
        steps.extend([
            SuggestedAction::new(
                Purpose::Before,
                waiting.kubectl(&["cordon", fault.node]),
                "Nothing stops. The node takes no new pods; uncordon it once it has the driver.",
            ),
            SuggestedAction::new(
                Purpose::WayOut,
                waiting.in_namespace(&["delete", &pod]),
                "The pod has not started. Its controller makes another one, which goes to a node that has the driver.",
            ),
        ]);
    }
    steps
}

/// What shows which drivers and limits each node has.
const DRIVERS: &str = "custom-columns=NODE:.metadata.name,DRIVERS:.spec.drivers[*].name,LIMITS:.spec.drivers[*].allocatable.count";

/// What is left to do where the machine is gone, and the driver can detach from it no more.
fn orphaned(waiting: &WaitingPod<'_>, fault: &Fault<'_>) -> Option<SuggestedAction> {
    let attachment = fault.attachment.filter(|_| fault.verb == DETACH)?;
    let is_gone = Examined::of(waiting.index, fault.node).health == Health::Gone;
    let command = waiting.kubectl(&[
        "patch",
        "volumeattachment",
        &attachment.metadata.name,
        "--type=json",
        "-p",
        r#"[{"op":"remove","path":"/metadata/finalizers"}]"#,
    ]);
    is_gone.then(|| {
        SuggestedAction::note(&format!(
            "Node {} is gone. If the console shows that the disk is attached to no machine, and the driver still cannot detach it, remove the VolumeAttachment: `{command}`",
            fault.node
        ))
    })
}
