//! A volume on its way from one node to another takes a while.

use super::{Cause, Purpose, Steps, SuggestedAction, named, wait};
use crate::diagnosis::health::{Examined, Health};
use crate::diagnosis::span;
use crate::diagnosis::waiting_pod::WaitingPod;

pub(super) const CAUSE: Cause = Cause {
    code: "delay",
    title: "The volume is on its way",
    passes: true,
    judge,
    steps: Steps::FromFacts(steps),
};

/// For so many seconds nobody wonders: drivers attach and detach within seconds.
pub(super) const SLOW: i64 = 300;

/// After so many the attach-detach controller has detached by force from a node that is not
/// Ready: 6 minutes (`ReconcilerMaxWaitForUnmountDuration` in
/// `pkg/controller/volume/attachdetach`), and one for the driver.
pub(super) const FORCED: i64 = 420;

fn judge(stuck: &WaitingPod<'_>) -> Option<String> {
    // What the scheduler says of a pod is no delay, but that the claim has yet to be bound.
    let is_expected = !stuck.holders.is_empty() || stuck.has_no_volume();
    let has_word = stuck.pod.node.is_none() && stuck.said.is_some();
    if is_over(stuck) || (has_word && !(is_expected && stuck.is_certain)) {
        return None;
    }
    let now = stuck.index.facts.now;
    let since = stuck.pod.waits_since();
    let waited = since.map_or(0, |since| now.as_second() - since.as_second());
    Some(format!(
        "{} So far the pod has waited {}.",
        reason(stuck),
        span(waited)
    ))
}

/// Whether so much time has passed since anything changed that it is a delay no more. A pod
/// that ends has its grace period.
pub(super) fn is_over(stuck: &WaitingPod<'_>) -> bool {
    let attachments = stuck.shown_attachments().map(|it| &it.metadata);
    let changed = attachments.flat_map(|it| [it.created(), it.deleted]);
    let ends = stuck.holders.iter().map(|it| it.meta.deleted);
    let all = [stuck.pod.waits_since()].into_iter().chain(changed);
    let last = all.chain(ends).flatten().max();
    let limit = match unready_node(stuck) {
        Some(_) => FORCED,
        None => SLOW,
    };
    last.is_some_and(|last| stuck.index.facts.now.as_second() - last.as_second() > limit)
}

fn reason(stuck: &WaitingPod<'_>) -> String {
    if stuck.has_no_volume() {
        return format!(
            "Claim \"{}\" has no volume yet; its provisioner is making one.",
            stuck.claim
        );
    }
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
                "The volume is with {}, which is terminating and has up to {} left.",
                named(old),
                span(left)
            ),
            _ => format!(
                "The volume is with {}, which is terminating and should be gone shortly.",
                named(old)
            ),
        };
    }
    let Some(attachment) = stuck.foreign_attachments().next() else {
        return match stuck.own_attachment() {
            Some(own) if own.metadata.is_being_deleted() => format!(
                "The driver is detaching the volume from node {}, where an earlier pod had it, and attaches it again for this one.",
                own.node
            ),
            Some(own) if own.is_settled() => mounting(&own.node),
            Some(own) => format!(
                "Nobody else has the volume, and the driver is attaching it to node {}.",
                own.node
            ),
            None => match &stuck.pod.node {
                None => "The scheduler has yet to choose a node for the pod.".to_owned(),
                Some(node) if !stuck.is_attached() => mounting(node),
                Some(_) => "Nobody else has the volume; it is yet to be attached.".to_owned(),
            },
        };
    };
    let node = &attachment.node;
    match attachment.metadata.deleted {
        Some(since) => format!(
            "No pod uses the volume on node {node} any more, and the driver has been detaching it for {}.",
            span(now - since.as_second())
        ),
        None if unready_node(stuck).is_some() => format!(
            "No pod uses the volume on node {node} any more, but that node is not Ready and may not have unmounted it. Kubernetes detaches it by force 6 minutes after the last pod was gone, even if something there still writes to it."
        ),
        None => format!(
            "No pod seems to use the volume on node {node}; it is detached as soon as the kubelet there has unmounted it."
        ),
    }
}

fn mounting(node: &str) -> String {
    format!(
        "The volume is there for node {node}, whose kubelet mounts it and starts the containers."
    )
}

/// A node that is not Ready, from which Kubernetes is going to detach the volume by force.
fn unready_node<'a>(stuck: &WaitingPod<'a>) -> Option<&'a str> {
    let mut attachments = stuck.foreign_attachments();
    let attachment = attachments.next().filter(|it| it.is_settled())?;
    let is_unready = Examined::of(stuck.index, &attachment.node).health == Health::NotReady;
    (is_unready && stuck.holders.is_empty()).then_some(attachment.node.as_str())
}

fn steps(stuck: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    let wait = wait(
        stuck,
        Purpose::WayOut,
        "Time, and nothing else. Force is not needed: deleting pods with --force or a VolumeAttachment risks two writers on one disk.",
    );
    let look = unready_node(stuck).map(|node| {
        [
            SuggestedAction::new(
                Purpose::Check,
                stuck.kubectl(&["describe", "node", node]),
                "Nothing. Its conditions say what it lacks. Where it is Ready again, nothing is detached by force.",
            ),
            SuggestedAction::note(&format!(
                "If containers may still run on {node}, stop them or power the machine off within those 6 minutes: afterwards two machines may write to one disk."
            )),
        ]
    });
    look.into_iter().flatten().chain([wait]).collect()
}
