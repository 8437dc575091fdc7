//! A volume on its way from one node to another takes a while.

use super::{Judgement, another_storage, describe, is_made_again};
use crate::health::{Examined, Health};
use crate::span::span;
use crate::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;

/// The number of seconds for which a delay is normal: drivers attach and detach within seconds.
pub(crate) const SLOW: i64 = 300;

/// The number of seconds after which the attach-detach controller has detached by force from a node
/// that is not Ready: 6 minutes (`ReconcilerMaxWaitForUnmountDuration` in
/// `pkg/controller/volume/attachdetach`), and one minute for the driver.
pub(crate) const FORCED: i64 = 420;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    // A scheduler's message is no delay, unless a holder will leave or the claim will be bound.
    let is_expected = !waiting.holders.is_empty() || waiting.has_no_volume();
    let has_word = waiting.pod.node.is_none() && waiting.said.is_some();
    if is_over(waiting) || (has_word && !(is_expected && waiting.is_certain)) {
        return None;
    }
    let waited = span(waiting.waited().unwrap_or_default());
    let name = if waiting.volume_of_another_claim().is_some() { "delay-asked" } else { "delay" };
    let more = [
        ("reason", &*reason(waiting)),
        ("waited", &waited),
        ("there", unready_node(waiting).unwrap_or_default()),
    ];
    let mut judgement = waiting.told(name, &more);
    judgement.steps.extend(runs_to_its_end(waiting).map(|_| another_storage(waiting)));
    Some(judgement)
}

/// Whether nothing has changed for so long that this is no longer a delay. A terminating pod counts
/// from the end of its grace period.
pub(super) fn is_over(waiting: &WaitingPod<'_>) -> bool {
    let attachments = waiting
        .shown_attachments()
        .map(|attachment| &attachment.metadata)
        .flat_map(|metadata| [metadata.created(), metadata.deletion_timestamp]);
    if runs_to_its_end(waiting).is_some() {
        return false;
    }
    let ends = waiting.holders.iter().map(|holder| holder.meta.deletion_timestamp);
    let last =
        std::iter::once(waiting.pod.waits_since()).chain(attachments).chain(ends).flatten().max();
    let limit = match unready_node(waiting) {
        Some(_) => FORCED,
        None => SLOW,
    };
    last.is_some_and(|last| waiting.index.facts.now.as_second() - last.as_second() > limit)
}

fn reason(waiting: &WaitingPod<'_>) -> String {
    let claim = waiting.claim;
    if let Some(volume) = waiting.volume_of_another_claim() {
        return format!(
            "Kubernetes has not said yet whether claim \"{claim}\" gets PersistentVolume {}, which was bound to another claim.",
            volume.metadata.name
        );
    }
    if let Some(volume) = waiting.unbound_volume() {
        return format!(
            "Claim \"{claim}\" is about to be bound to PersistentVolume {}.",
            volume.metadata.name
        );
    }
    if waiting.has_no_volume() {
        return format!("Claim \"{claim}\" has no volume yet; its provisioner is making one.");
    }
    if let Some(other) = runs_to_its_end(waiting) {
        return format!(
            "The volume is with {}, which runs to its end (its restartPolicy is not Always), and this pod gets it then. Nothing else is known here about {} {}.",
            describe(other),
            other.workload().0,
            other.workload().1
        );
    }
    if let Some(old) = waiting.staying().next() {
        return format!(
            "The volume is with {}, which its controller is about to stop.",
            describe(old)
        );
    }
    let now = waiting.index.facts.now.as_second();
    if let Some(old) = waiting.holders.first() {
        let left = old.meta.deletion_timestamp.map(|due| due.as_second() - now);
        return match left {
            Some(left @ 0..) => format!(
                "The volume is with {}, which is terminating and has up to {} left.",
                describe(old),
                span(left)
            ),
            _ => format!(
                "The volume is with {}, which is terminating and should be gone shortly.",
                describe(old)
            ),
        };
    }
    let Some(attachment) = waiting.foreign_attachments().next() else {
        return arriving(waiting);
    };
    let node = &attachment.node;
    match attachment.metadata.deletion_timestamp {
        Some(since) => format!(
            "No pod uses the volume on node {node} any more, and the driver has been detaching it for {}.",
            span(now - since.as_second())
        ),
        None if unready_node(waiting).is_some() => format!(
            "No pod uses the volume on node {node} any more, but that node is not Ready and may not have unmounted it. {}",
            Examined::of(waiting.index, node).outlook(waiting.index.facts)
        ),
        None => format!(
            "No pod seems to use the volume on node {node}; it is detached as soon as the kubelet there has unmounted it."
        ),
    }
}

/// A pod of the same owner, of a kind that is not known, that has the volume until it ends.
fn runs_to_its_end<'a>(waiting: &WaitingPod<'a>) -> Option<&'a Pod> {
    waiting.siblings().find(|other| other.template.ends && !is_made_again(other))
}

/// Describes the progress of a volume that nothing else holds on its way to the pod's node.
fn arriving(waiting: &WaitingPod<'_>) -> String {
    match waiting.own_attachment() {
        Some(own) if own.metadata.is_being_deleted() => format!(
            "The driver is detaching the volume from node {}, where an earlier pod had it, and attaches it again for this one.",
            own.node
        ),
        Some(own) if own.is_settled() => mounting(&own.node),
        Some(own) => format!(
            "Nobody else has the volume, and the driver is attaching it to node {}.",
            own.node
        ),
        None => match &waiting.pod.node {
            None => "The scheduler has yet to choose a node for the pod.".to_owned(),
            Some(node) if !waiting.is_attached() => mounting(node),
            Some(_) => "Nobody else has the volume; it is yet to be attached.".to_owned(),
        },
    }
}

fn mounting(node: &str) -> String {
    format!(
        "The volume is there for node {node}, whose kubelet mounts it and starts the containers."
    )
}

/// The node that is not Ready and from which Kubernetes will detach the volume by force.
fn unready_node<'a>(waiting: &WaitingPod<'a>) -> Option<&'a str> {
    let attachment =
        waiting.foreign_attachments().next().filter(|attachment| attachment.is_settled())?;
    let is_unready = Examined::of(waiting.index, &attachment.node).health == Health::NotReady;
    (is_unready && waiting.holders.is_empty()).then_some(attachment.node.as_str())
}
