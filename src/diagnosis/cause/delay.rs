//! A volume on its way from one node to another takes a while.

use super::{Cause, Purpose, Step, named, wait};
use crate::diagnosis::health::{Examined, Health};
use crate::diagnosis::span;
use crate::diagnosis::stuck::Stuck;

/// So many seconds the attach-detach controller waits for a node that is not healthy to
/// unmount (`maxWaitForUnmountDuration` in `pkg/controller/volume/attachdetach`).
const FORCE_DETACH: i64 = 360;

pub(super) const CAUSE: Cause = Cause {
    code: "delay",
    title: "The volume is on its way",
    passes: true,
    judge: |stuck| Some(judge(stuck)),
    steps: |stuck, _| steps(stuck),
};

fn judge(stuck: &Stuck<'_>) -> String {
    let now = stuck.index.facts.now;
    let since = stuck.pod.waits_since();
    let waited = since.map_or(0, |since| now.as_second() - since.as_second());
    format!(
        "{} So far the pod has waited {}.",
        reason(stuck),
        span(waited)
    )
}

fn reason(stuck: &Stuck<'_>) -> String {
    if let Some(old) = stuck.staying().next() {
        return format!(
            "The volume is with {}, which its controller is about to stop.",
            named(old)
        );
    }
    let now = stuck.index.facts.now.as_second();
    if let Some(old) = stuck.holders.first() {
        let left = old.meta.deleted.map(|due| due.as_second() - now);
        return match left {
            Some(left @ 0..) => format!(
                "The volume is with {}, which was told to end and has up to {} left.",
                named(old),
                span(left)
            ),
            Some(late) => format!(
                "The volume is with {}, which was told to end and should have been gone {} ago: its containers, a finalizer or its kubelet hold it.",
                named(old),
                span(-late)
            ),
            None => format!("The volume is with {}, which was told to end.", named(old)),
        };
    }
    let Some(attachment) = stuck.foreign_attachments().next() else {
        return match stuck.own_attachment() {
            Some(own) => format!(
                "Nobody else has the volume, and the driver is attaching it to node {}.",
                own.node
            ),
            None => "Nobody else has the volume; it is yet to be attached.".to_owned(),
        };
    };
    let node = Examined::of(stuck.index, &attachment.node);
    let name = &node.name;
    match (attachment.meta.deleted, node.health) {
        (Some(since), _) => format!(
            "No pod uses the volume on node {name} any more, and the driver has been detaching it for {}.",
            span(now - since.as_second())
        ),
        (None, Health::NotReady) => format!(
            "No pod uses the volume on node {name} any more, but that node is not Ready and may not have unmounted it. Kubernetes detaches it by force 6 minutes after the last pod was gone: in {} at the latest, if the node stays as it is.",
            span(FORCE_DETACH)
        ),
        (None, _) => format!(
            "No pod seems to use the volume on node {name}; it is detached as soon as the kubelet there has unmounted it. Kubernetes never detaches by force from a healthy node; from one that is not, it does so 6 minutes after the last pod was gone."
        ),
    }
}

fn steps(stuck: &Stuck<'_>) -> Vec<Step> {
    let mut steps = Vec::new();
    let now = stuck.index.facts.now;
    let late = |it: &&&crate::diagnosis::Pod| it.meta.deleted.is_some_and(|due| due < now);
    if let Some(old) = stuck.holders.iter().find(late) {
        steps.push(Step::new(
            Purpose::Check,
            stuck.in_namespace(&["describe", &format!("pod/{}", old.meta.name)]),
            "Nothing. Finalizers, and the Events of its containers, say what holds it.",
        ));
    }
    steps.push(wait(
        stuck,
        Purpose::WayOut,
        "Time, and nothing else. Force is not needed: deleting pods with --force or a VolumeAttachment risks two writers on one disk.",
    ));
    steps
}
