//! The claim has no volume, so its pod cannot start.

use serde_json::{Value, json};

use super::Judgement;
use crate::messages::{self, Statement, quotable};
use crate::waiting_pod::WaitingPod;
use engine::model::claim::{Claim, ClaimPhase};
use engine::model::event::Event;
use engine::model::volume::Volume;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let found = waiting.found_claim();
    if found.is_some_and(|found| found.metadata.is_being_deleted())
        && waiting.is_said(Statement::ClaimEnds)
    {
        return Some(waiting.told("claim-ends", Value::Null));
    }
    if !waiting.has_no_volume() || !waiting.is_certain {
        return None;
    }
    let Some(found) = found else {
        return Some(waiting.told("claim-missing", Value::Null));
    };
    if waiting.volume.is_none() {
        return waiting.unprovisioned(found);
    }
    let taken = waiting.volume_of_another_claim();
    if let Some(volume) = waiting.unbound_volume().or(taken) {
        // Until the controller that binds claims has judged a claim, one that will be Lost is
        // still Pending, and a Pending claim needs other steps.
        let has_spoken = waiting.is_lost() || waiting.claim_warning().is_some();
        let is_taken = taken.is_some() && !volume.metadata.is_being_deleted();
        return (has_spoken || waiting.is_over())
            .then(|| waiting.bound_to_another(found, volume, is_taken));
    }
    let was_bound = waiting.is_lost() || !found.status.access_modes.is_empty();
    let name = if was_bound { "claim-of-lost-volume" } else { "claim-of-no-volume" };
    Some(waiting.told(name, Value::Null))
}

impl WaitingPod<'_> {
    /// The claim requests no volume by name.
    fn unprovisioned(&self, found: &Claim) -> Option<Judgement> {
        let warning = self.claim_warning();
        // Time does not make room.
        let no_place = self.said.filter(|_| warning.is_none() && self.is_said(Statement::NoPlace));
        let is_known = warning.is_some() || no_place.is_some();
        if !is_known && self.pod.node.is_none() && !self.is_over() {
            return None;
        }
        let event = warning.or_else(|| self.claim_event(|_| true)).filter(|_| no_place.is_none());
        let said = no_place.or(event.map(|event| event.message.as_str()));
        let more = json!({
            "reporter": event.map(Event::reporter),
            "words": said.map(quoted),
            "no-place": no_place.is_some(),
            "advice": said.and_then(|said| messages::advice(said, "unbound-claim")),
            "source-kind": found.data_source().map(|source| &source.kind),
        });
        Some(self.told("unbound-claim", more))
    }

    /// The claim requests this volume, which belongs to another claim, or to which it is not bound.
    fn bound_to_another(&self, found: &Claim, volume: &Volume, is_taken: bool) -> Judgement {
        let is_ending = volume.metadata.is_being_deleted();
        let event = self.claim_warning().or_else(|| self.claim_event(|_| true));
        let event = event.filter(|_| !is_ending);
        let owner = volume.spec.claim_ref.as_ref();
        let is_former = owner.is_some_and(|owner| {
            owner.namespace == self.pod.meta.namespace && owner.name == *self.claim
        });
        let name = match (is_taken, is_former) {
            (true, true) => "claim-of-earlier-volume",
            (true, false) => "claim-of-taken-volume",
            _ if found.spec.volume_name.is_empty() => "claim-reserved",
            _ if is_ending => "claim-of-ending-volume",
            _ if self.is_lost() => "claim-lost",
            _ => "claim-does-not-fit",
        };
        let more = json!({
            "former": is_former,
            "owner": owner.map(|owner| format!("{}/{}", owner.namespace, owner.name)),
            "volume-ends": is_ending,
            "reporter": event.map(Event::reporter),
            "words": event.map(|event| quoted(&event.message)),
            "lost": self.is_lost(),
        });
        self.told(name, more)
    }

    /// Whether the claim was once bound, but no longer is.
    fn is_lost(&self) -> bool {
        self.found_claim().is_some_and(|claim| claim.status.phase == ClaimPhase::Lost)
    }
}

fn quoted(message: &str) -> String {
    format!("\"{}\".", quotable(message))
}
