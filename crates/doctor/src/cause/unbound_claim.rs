//! The claim has no volume, so its pod cannot start.

use serde_json::{Value, json};

use super::{Judgement, delay};
use crate::messages::{self, CLAIM_ENDS, NO_PLACE, quotable};
use crate::waiting_pod::WaitingPod;
use engine::model::claim::{Claim, ClaimPhase};
use engine::model::event::Event;
use engine::model::volume::Volume;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let found = waiting.found_claim();
    if found.is_some_and(|found| found.metadata.is_being_deleted()) && waiting.is_said(CLAIM_ENDS) {
        return Some(waiting.told("claim-ends", Value::Null));
    }
    if !waiting.has_no_volume() || !waiting.is_certain {
        return None;
    }
    let Some(found) = found else {
        return Some(waiting.told("claim-missing", Value::Null));
    };
    if waiting.volume.is_none() {
        return unprovisioned(waiting, found);
    }
    let taken = waiting.volume_of_another_claim();
    if let Some(volume) = waiting.unbound_volume().or(taken) {
        // Until the controller that binds claims has judged a claim, one that will be Lost is
        // still Pending, and a Pending claim needs other steps.
        let has_spoken = is_lost(waiting) || waiting.claim_warning().is_some();
        let is_taken = taken.is_some() && !volume.metadata.is_being_deleted();
        let explain = if is_taken { of_another } else { wrong_volume };
        return (has_spoken || delay::is_over(waiting)).then(|| explain(waiting, volume));
    }
    let was_bound = is_lost(waiting) || !found.status.access_modes.is_empty();
    let name = if was_bound { "claim-of-lost-volume" } else { "claim-of-no-volume" };
    Some(waiting.told(name, Value::Null))
}

/// The claim requests no volume by name.
fn unprovisioned(waiting: &WaitingPod<'_>, found: &Claim) -> Option<Judgement> {
    let warning = waiting.claim_warning();
    // Time does not make room.
    let no_place = waiting.said.filter(|_| warning.is_none() && waiting.is_said(NO_PLACE));
    let is_known = warning.is_some() || no_place.is_some();
    if !is_known && waiting.pod.node.is_none() && !delay::is_over(waiting) {
        return None;
    }
    let event = warning.or_else(|| waiting.claim_event(|_| true)).filter(|_| no_place.is_none());
    let reason = match no_place {
        Some(said) => Some(quoted("The scheduler", said)),
        None => event.map(quote),
    };
    let said = no_place.or(event.map(|event| event.message.as_str()));
    let advice = said.and_then(|said| messages::advice(said, "unbound-claim"));
    let more = json!({
        "reason": reason,
        "class": waiting.class().map(|class| format!(" Its StorageClass is {class}.")),
        "provisioned": no_place.is_none(),
        "advice": advice,
        "silent": said.is_none(),
        "source-kind": found.data_source().map(|source| &source.kind),
    });
    Some(waiting.told("unbound-claim", more))
}

/// The claim requests a volume that belongs to another claim.
fn of_another(waiting: &WaitingPod<'_>, volume: &Volume) -> Judgement {
    let is_former = volume.spec.claim_ref.as_ref().is_some_and(|owner| {
        owner.namespace == waiting.pod.meta.namespace && owner.name == *waiting.claim
    });
    let name = if is_former { "claim-of-earlier-volume" } else { "claim-of-taken-volume" };
    let owner = volume.spec.claim_ref.as_ref();
    let more = json!({
        "former": is_former,
        "owner": owner.map(|owner| format!("{}/{}", owner.namespace, owner.name)),
        "lost": is_lost(waiting),
    });
    waiting.told(name, more)
}

/// The claim requests this volume, but is not bound to it.
fn wrong_volume(waiting: &WaitingPod<'_>, volume: &Volume) -> Judgement {
    let is_ending = volume.metadata.is_being_deleted();
    let event = waiting.claim_warning().or_else(|| waiting.claim_event(|_| true));
    let reason = event.filter(|_| !is_ending).map(quote);
    let is_lost = is_lost(waiting);
    let name = match waiting.found_claim() {
        Some(found) if found.spec.volume_name.is_empty() => "claim-reserved",
        _ if is_ending => "claim-of-ending-volume",
        _ if is_lost => "claim-lost",
        _ => "claim-does-not-fit",
    };
    waiting.told(name, json!({"reason": reason, "volume-ends": is_ending, "lost": is_lost}))
}

/// Whether the claim was once bound, but no longer is.
fn is_lost(waiting: &WaitingPod<'_>) -> bool {
    waiting.found_claim().is_some_and(|claim| claim.status.phase == ClaimPhase::Lost)
}

/// The words of an Event, and who says them.
fn quote(event: &Event) -> String {
    let reporter = match event.reporter() {
        "" => "Kubernetes",
        name => name,
    };
    quoted(reporter, &event.message)
}

fn quoted(reporter: &str, message: &str) -> String {
    format!("{reporter} says: \"{}\".", quotable(message))
}
