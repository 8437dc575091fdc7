//! The claim has no volume, so its pod cannot start.

use super::{Judgement, SuggestedAction, delay};
use crate::diagnosis::command;
use crate::diagnosis::messages::{self, CLAIM_ENDS, NO_PLACE};
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::claim::ClaimPhase;
use engine::model::event::Event;
use engine::model::volume::Volume;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let Judgement { explanation, mut steps } = explain_missing(waiting)?;
    if waiting.found_claim().is_some() {
        let describe = SuggestedAction::check(
            waiting.in_namespace(&["describe", &format!("pvc/{}", waiting.claim)]),
            "Nothing. Its Events, which are kept for an hour, say why.",
        );
        steps.insert(0, describe);
    }
    Some(Judgement { explanation, steps })
}

/// Explains why the claim has no volume, and gives the steps without the look at the claim.
fn explain_missing(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let (pod, claim) = (&waiting.pod.meta.name, waiting.claim);
    let namespace = &waiting.pod.meta.namespace;
    let found = waiting.found_claim();
    if found.is_some_and(|found| found.metadata.is_being_deleted()) && waiting.is_said(CLAIM_ENDS) {
        return Some(Judgement {
            explanation: format!(
                "Claim \"{claim}\" is being deleted, and no new pod starts with a claim that is being deleted."
            ),
            steps: note(
                "A claim that is being deleted is gone once no pod uses it, and its data with it unless the reclaim policy of its volume is Retain. If the data is still needed, copy it before the last pod that runs is stopped.",
            ),
        });
    }
    if !waiting.has_no_volume() || !waiting.is_certain {
        return None;
    }
    let Some(found) = found else {
        let explanation = format!(
            "Pod {pod} mentions claim \"{claim}\", and namespace {namespace} has no claim of that name."
        );
        let list = SuggestedAction::check(
            waiting.in_namespace(&["get", "pvc"]),
            "Nothing. It lists the claims that exist; the name in the pod may be misspelt.",
        );
        let create = SuggestedAction::note(
            "Create the claim, or correct the name in the pod's template. The pod starts once the claim exists and has a volume.",
        );
        return Some(Judgement { explanation, steps: vec![list, create] });
    };
    let warning = waiting.claim_warning();
    if let Some(name) = waiting.volume.as_deref() {
        let taken = waiting.volume_of_another_claim();
        if let Some(volume) = waiting.unbound_volume().or(taken) {
            // Until the controller that binds claims has judged a claim, one that will be Lost is
            // still Pending, and a Pending claim needs other steps.
            let has_spoken = is_lost(waiting) || warning.is_some();
            let is_taken = taken.is_some() && !volume.metadata.is_being_deleted();
            let explain = if is_taken { of_another } else { wrong_volume };
            return (has_spoken || delay::is_over(waiting)).then(|| explain(waiting, volume));
        }
        let was_bound = is_lost(waiting) || !found.status.access_modes.is_empty();
        return Some(if was_bound {
            Judgement {
                explanation: format!(
                    "Claim \"{claim}\" is bound to PersistentVolume {name}, which does not exist any more."
                ),
                steps: note(
                    "If the disk still exists in the storage back end, create a PersistentVolume for it with the old name, whose claimRef has the namespace, name and uid of this claim. Otherwise delete the claim, create it anew and restore a backup into it.",
                ),
            }
        } else {
            Judgement {
                explanation: format!(
                    "Claim \"{claim}\" asks for PersistentVolume {name} in spec.volumeName, and there is none of that name."
                ),
                steps: note(
                    "A claim's spec.volumeName cannot be changed: delete the claim, as it holds no data, and create it with the name of a volume that exists or without one.",
                ),
            }
        });
    }
    // Time does not make room.
    let no_place = waiting.said.filter(|_| warning.is_none() && waiting.is_said(NO_PLACE));
    let is_known = warning.is_some() || no_place.is_some();
    if !is_known && waiting.pod.node.is_none() && !delay::is_over(waiting) {
        return None;
    }
    let (reason, steps) = match (no_place, warning.or_else(|| waiting.claim_event(|_| true))) {
        (Some(said), _) => (
            quoted("The scheduler", said),
            note(&messages::advice(said, "unbound-claim").unwrap_or_default()),
        ),
        (None, Some(event)) => (quote(event), steps_for(waiting, &event.message)),
        (None, None) => (
            format!(
                "No Event says why any more.{}",
                waiting
                    .class()
                    .map(|class| format!(" Its StorageClass is {class}."))
                    .unwrap_or_default()
            ),
            vec![
                classes(waiting),
                SuggestedAction::note(
                    "Check that the StorageClass exists and that its provisioner runs; for the rest, see the log of the container csi-provisioner.",
                ),
            ],
        ),
    };
    Some(Judgement {
        explanation: format!(
            "Claim \"{claim}\" has no volume, and pod {pod} does not start without one. {reason}"
        ),
        steps,
    })
}

fn note(text: &str) -> Vec<SuggestedAction> {
    vec![SuggestedAction::note(text)]
}

/// The claim requests a volume that belongs to another claim.
fn of_another(waiting: &WaitingPod<'_>, volume: &Volume) -> Judgement {
    let is_former = former_owner(waiting, volume);
    let owner = match &volume.spec.claim_ref {
        _ if is_former => "an earlier claim of the same name".to_owned(),
        Some(owner) => format!("claim {}/{}", owner.namespace, owner.name),
        None => "another claim".to_owned(),
    };
    let explanation = format!(
        "Claim \"{}\" asks for PersistentVolume {} in spec.volumeName, and that volume is still bound to {owner}.",
        waiting.claim, volume.metadata.name
    );
    let steps = if is_former {
        rebind(waiting, volume)
    } else {
        note(
            "Name another volume: delete this claim, as it holds no data, and create it with the name of a volume that is free. A volume becomes free once its own claim is deleted and its spec.claimRef is removed; look first whose data is on it.",
        )
    };
    Judgement { explanation, steps }
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
    let (claim, name) = (waiting.claim, &volume.metadata.name);
    let is_reserved = waiting.found_claim().is_some_and(|found| found.spec.volume_name.is_empty());
    let explanation = if is_reserved {
        format!(
            "PersistentVolume {name} is reserved for claim \"{claim}\" in spec.claimRef, and the claim is not bound to it. {reason}"
        )
    } else {
        format!(
            "Claim \"{claim}\" asks for PersistentVolume {name} in spec.volumeName, and is not bound to it. {reason}"
        )
    };
    let steps = if is_reserved {
        note(
            "The controller in kube-controller-manager binds the two where class, volumeMode, access modes and size fit; a populator that is still at work keeps them apart. Read the log of whichever wrote spec.claimRef. Do not delete the claim: with the reclaim policy Delete the disk goes too.",
        )
    } else if is_ending {
        note(
            "Delete the claim, as it holds no data, and create it with the name of a volume that stays, or without one.",
        )
    } else if is_lost(waiting) {
        rebind(waiting, volume)
    } else {
        note(
            "A claim fits a volume that has its class, its volumeMode, all of its access modes and at least its size. If this one does not fit, delete it, as it holds no data, and create it so that it fits.",
        )
    };
    Judgement { explanation, steps }
}

/// Whether the claim was once bound, but no longer is.
fn is_lost(waiting: &WaitingPod<'_>) -> bool {
    waiting.found_claim().is_some_and(|claim| claim.status.phase == ClaimPhase::Lost)
}

/// Whether the volume belonged to a deleted claim of the same name.
fn former_owner(waiting: &WaitingPod<'_>, volume: &Volume) -> bool {
    volume.spec.claim_ref.as_ref().is_some_and(|owner| {
        owner.namespace == waiting.pod.meta.namespace && owner.name == *waiting.claim
    })
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

/// The steps that release a volume so that it is bound to the claim.
fn rebind(waiting: &WaitingPod<'_>, volume: &Volume) -> Vec<SuggestedAction> {
    // A claim that was bound before can only be bound to a volume whose claimRef has its uid, or
    // that has no claimRef (syncBoundClaim in the controller that binds claims).
    let free = if is_lost(waiting) {
        r#"[{"op":"remove","path":"/spec/claimRef"}]"#
    } else {
        r#"[{"op":"remove","path":"/spec/claimRef/uid"}]"#
    };
    let volume = format!("pv/{}", volume.metadata.name);
    vec![
        SuggestedAction::way_out(
            waiting.kubectl(&["patch", &volume, "--type=json", "-p", free]),
            "Nothing stops. The volume is bound to the claim of today, with the data that is on it.",
        ),
        SuggestedAction::note(
            "Do not replace the claim with one without spec.volumeName: that one would get a new and empty volume.",
        ),
    ]
}

/// The steps for a message of the provisioner.
fn steps_for(waiting: &WaitingPod<'_>, said: &str) -> Vec<SuggestedAction> {
    let notes = messages::advice(said, "unbound-claim").into_iter().chain(source(waiting));
    [classes(waiting)].into_iter().chain(notes.map(|text| SuggestedAction::note(&text))).collect()
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

/// The command that shows the access modes that each class can give.
fn classes(waiting: &WaitingPod<'_>) -> SuggestedAction {
    SuggestedAction::check(
        command::own(waiting.index.facts.kubectl, &["capabilities"]),
        "Nothing. It lists which access modes each StorageClass of this cluster can give.",
    )
}
