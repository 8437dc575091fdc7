//! A volume on its way from one node to another takes a while.

use serde_json::json;

use super::{Judgement, describe, is_made_again, owner};
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
    let holder = holder(waiting);
    let due = holder.and_then(|pod| pod.meta.deletion_timestamp);
    let attachment = waiting.foreign_attachments().chain(waiting.own_attachment()).next();
    let there = attachment.map(|attachment| attachment.node.as_str()).unwrap_or_default();
    let since = attachment.and_then(|attachment| attachment.metadata.deletion_timestamp);
    let more = json!({
        "waited": span(waiting.waited().unwrap_or_default()),
        "holder": holder.map(describe),
        "owner": holder.map(owner),
        "left": due.map(|due| span(-waiting.index.since(due))),
        "since": since.map(|since| span(waiting.index.since(since))),
        "unready": unready_node(waiting),
        "ends": runs_to_its_end(waiting).is_some(),
    });
    Some(waiting.told_of_node(&Examined::of(waiting.index, there), stage(waiting), more))
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
    last.is_some_and(|last| waiting.index.since(last) > limit)
}

/// The pod with which the volume is: one that stays, or one that is about to go.
fn holder<'a>(waiting: &WaitingPod<'a>) -> Option<&'a Pod> {
    runs_to_its_end(waiting)
        .or_else(|| waiting.staying().next())
        .or_else(|| waiting.holders.first().copied())
}

/// How far the volume has come, as the name of the judgement.
fn stage(waiting: &WaitingPod<'_>) -> &'static str {
    if waiting.volume_of_another_claim().is_some() {
        return "delay-asked";
    }
    if waiting.unbound_volume().is_some() {
        return "delay-binding";
    }
    if waiting.has_no_volume() {
        return "delay-provisioning";
    }
    if let Some(holder) = holder(waiting) {
        return match holder.meta.deletion_timestamp {
            _ if runs_to_its_end(waiting).is_some() => "delay-until-end",
            None => "delay-until-stop",
            Some(due) if due >= waiting.index.facts.now => "delay-until-gone",
            Some(_) => "delay-gone-shortly",
        };
    }
    if let Some(attachment) = waiting.foreign_attachments().next() {
        return match attachment.metadata.deletion_timestamp {
            Some(_) => "delay-detaching",
            None if unready_node(waiting).is_some() => "delay-unready",
            None => "delay-unmounting",
        };
    }
    match (waiting.own_attachment(), &waiting.pod.node) {
        (Some(own), _) if own.metadata.is_being_deleted() => "delay-detaching-here",
        (Some(own), _) if !own.is_settled() => "delay-attaching",
        (None, None) => "delay-unscheduled",
        (None, Some(_)) if waiting.is_attached() => "delay-unattached",
        _ => "delay-mounting",
    }
}

/// A pod of the same owner, of a kind that is not known, that has the volume until it ends.
fn runs_to_its_end<'a>(waiting: &WaitingPod<'a>) -> Option<&'a Pod> {
    waiting.siblings().find(|other| other.template.ends && !is_made_again(other))
}

/// The node that is not Ready and from which Kubernetes will detach the volume by force.
fn unready_node<'a>(waiting: &WaitingPod<'a>) -> Option<&'a str> {
    let attachment =
        waiting.foreign_attachments().next().filter(|attachment| attachment.is_settled())?;
    let is_unready = Examined::of(waiting.index, &attachment.node).health == Health::NotReady;
    (is_unready && waiting.holders.is_empty()).then_some(attachment.node.as_str())
}
