//! A volume on its way from one node to another takes a while.

use serde_json::json;

use super::{Judgement, describe, maker};
use crate::health::Health;
use crate::report_case::state;
use crate::span::span;
use crate::told::merged;
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
    if waiting.is_over() || (has_word && !(is_expected && waiting.is_certain)) {
        return None;
    }
    let holder = waiting.holder();
    let due = holder.and_then(|pod| pod.meta.deletion_timestamp);
    let foreign = waiting.foreign_attachments().next();
    let attachment = foreign.or(waiting.own_attachment());
    let there = attachment.map(|attachment| attachment.node.as_str()).unwrap_or_default();
    let since = attachment.and_then(|attachment| attachment.metadata.deletion_timestamp);
    let more = json!({
        "asked": waiting.volume_of_another_claim().is_some(),
        "bound-soon": waiting.unbound_volume().is_some(),
        "has-no-volume": waiting.has_no_volume(),
        "holder": holder.map(describe),
        "ends": waiting.runs_to_its_end().is_some(),
        "leaving": due.is_some(),
        "left": due
            .filter(|due| *due >= waiting.index.facts.now)
            .map(|due| span(-waiting.index.since(due))),
        "elsewhere": foreign.is_some(),
        "state": attachment.map(state),
        "since": since.map(|since| span(waiting.index.since(since))),
        "unready": waiting.unready_node(),
        "attachable": waiting.is_attached(),
        "waited": span(waiting.waited().unwrap_or_default()),
    });
    Some(waiting.told("delay", merged(waiting.examined(there).values(), more)))
}

impl<'a> WaitingPod<'a> {
    /// Whether nothing has changed for so long that this is no longer a delay. A terminating pod counts
    /// from the end of its grace period.
    pub(super) fn is_over(&self) -> bool {
        let attachments = self
            .shown_attachments()
            .map(|attachment| &attachment.metadata)
            .flat_map(|metadata| [metadata.created(), metadata.deletion_timestamp]);
        if self.runs_to_its_end().is_some() {
            return false;
        }
        let ends = self.holders.iter().map(|holder| holder.meta.deletion_timestamp);
        let last =
            std::iter::once(self.pod.waits_since()).chain(attachments).chain(ends).flatten().max();
        let limit = match self.unready_node() {
            Some(_) => FORCED,
            None => SLOW,
        };
        last.is_some_and(|last| self.index.since(last) > limit)
    }

    /// The pod with which the volume is: one that stays, or one that is about to go.
    fn holder(&self) -> Option<&'a Pod> {
        self.runs_to_its_end()
            .or_else(|| self.staying().next())
            .or_else(|| self.holders.first().copied())
    }

    /// A pod of the same owner, of a kind that is not known, that has the volume until it ends.
    fn runs_to_its_end(&self) -> Option<&'a Pod> {
        self.siblings().find(|other| other.template.ends && maker(other).is_none())
    }

    /// The node that is not Ready and from which Kubernetes will detach the volume by force.
    fn unready_node(&self) -> Option<&'a str> {
        let attachment =
            self.foreign_attachments().next().filter(|attachment| attachment.is_settled())?;
        let is_unready = self.examined(&attachment.node).health == Health::NotReady;
        (is_unready && self.holders.is_empty()).then_some(attachment.node.as_str())
    }
}
