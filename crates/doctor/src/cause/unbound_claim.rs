//! The claim has no volume, so its pod cannot start.

use serde_json::{Value, json};

use super::{Judgement, delay};
use crate::messages::{self, CLAIM_ENDS, NO_PLACE};
use crate::waiting_pod::WaitingPod;
use engine::model::claim::ClaimPhase;
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
        return unprovisioned(waiting);
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
fn unprovisioned(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let warning = waiting.claim_warning();
    // Time does not make room.
    let no_place = waiting.said.filter(|_| warning.is_none() && waiting.is_said(NO_PLACE));
    let is_known = warning.is_some() || no_place.is_some();
    if !is_known && waiting.pod.node.is_none() && !delay::is_over(waiting) {
        return None;
    }
    let event = warning.or_else(|| waiting.claim_event(|_| true)).filter(|_| no_place.is_none());
    let class = waiting.class().map(|class| format!(" Its StorageClass is {class}."));
    let reason = match (no_place, event) {
        (Some(said), _) => quoted("The scheduler", said),
        (None, Some(event)) => quote(event),
        (None, None) => format!("No Event says why any more.{}", class.unwrap_or_default()),
    };
    let said = no_place.or(event.map(|event| event.message.as_str()));
    let advice = said.and_then(|said| messages::advice(said, "unbound-claim"));
    let more = json!({
        "reason": reason,
        "provisioned": no_place.is_none(),
        "advice": advice,
        "silent": said.is_none(),
        "source": source(waiting),
    });
    Some(waiting.told("unbound-claim", more))
}

/// The claim requests a volume that belongs to another claim.
fn of_another(waiting: &WaitingPod<'_>, volume: &Volume) -> Judgement {
    let is_former = volume.spec.claim_ref.as_ref().is_some_and(|owner| {
        owner.namespace == waiting.pod.meta.namespace && owner.name == *waiting.claim
    });
    let (name, owner) = match &volume.spec.claim_ref {
        _ if is_former => {
            ("claim-of-earlier-volume", "an earlier claim of the same name".to_owned())
        }
        Some(owner) => {
            ("claim-of-taken-volume", format!("claim {}/{}", owner.namespace, owner.name))
        }
        None => ("claim-of-taken-volume", "another claim".to_owned()),
    };
    waiting.told(name, json!({"owner": owner, "lost": is_lost(waiting)}))
}

/// The claim requests this volume, but is not bound to it.
fn wrong_volume(waiting: &WaitingPod<'_>, volume: &Volume) -> Judgement {
    let is_ending = volume.metadata.is_being_deleted();
    let event = waiting.claim_warning().or_else(|| waiting.claim_event(|_| true));
    let reason = match event {
        _ if is_ending => "That volume is being deleted.".to_owned(),
        Some(event) => quote(event),
        None => "No Event says why any more.".to_owned(),
    };
    let is_lost = is_lost(waiting);
    let name = match waiting.found_claim() {
        Some(found) if found.spec.volume_name.is_empty() => "claim-reserved",
        _ if is_ending => "claim-of-ending-volume",
        _ if is_lost => "claim-lost",
        _ => "claim-does-not-fit",
    };
    waiting.told(name, json!({"reason": reason, "lost": is_lost}))
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
    format!("{reporter} says: \"{}\".", message.trim().trim_end_matches('.'))
}

/// The advice for a claim whose volume another object fills.
fn source(waiting: &WaitingPod<'_>) -> Option<String> {
    let kind = waiting.found_claim()?.data_source()?.kind.as_str();
    Some(match kind {
        "VolumeSnapshot" => "The volume is made from the VolumeSnapshot in the claim's spec.dataSource: see that it exists, and that its status.readyToUse is true.".to_owned(),
        "PersistentVolumeClaim" => "The volume is a copy of the claim in spec.dataSource: see that it exists and is bound.".to_owned(),
        _ => format!("A populator fills the volume from the {kind} in the claim's spec.dataSourceRef: see that the object exists, and that a controller for that kind runs. Without it the claim stays Pending."),
    })
}
