//! The claim has no volume, so that its pod gets none.

use super::{Cause, Purpose, Steps, SuggestedAction, delay};
use crate::diagnosis::command;
use crate::diagnosis::messages::{CLAIM_ENDS, Words};
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::analysis::binding;
use engine::model::storage_class::StorageClass;
use engine::snapshot::Lookup;

pub(super) const CAUSE: Cause = Cause {
    code: "unbound-claim",
    title: "The claim has no volume",
    passes: false,
    judge,
    steps: Steps::FromFacts(steps),
};

/// Why there is none.
enum Lack<'a> {
    /// There is no such claim.
    NoClaim,
    /// It is being deleted.
    Ends,
    /// Its volume is gone.
    Lost(&'a str),
    /// Its provisioner, or the controller that binds, says why.
    Reported(&'a str),
    /// Nobody says why.
    Silent,
}

fn lack<'a>(stuck: &'a WaitingPod<'_>) -> Option<Lack<'a>> {
    let view = stuck.index.facts.objects.view;
    let claim = view.claim(&stuck.pod.meta.namespace, stuck.claim);
    let is_ending = stuck
        .found_claim()
        .is_some_and(|it| it.metadata.is_being_deleted());
    if is_ending && stuck.is_said(CLAIM_ENDS) {
        return Some(Lack::Ends);
    }
    if !stuck.has_no_volume() || !stuck.is_certain {
        return None;
    }
    if matches!(claim, Lookup::Absent) {
        return Some(Lack::NoClaim);
    }
    if let Some(volume) = stuck.volume.as_deref() {
        return Some(Lack::Lost(volume));
    }
    if let Some(said) = stuck.claim_warning() {
        return Some(Lack::Reported(said));
    }
    if stuck.pod.node.is_none() && !delay::is_over(stuck) {
        return None;
    }
    let said = stuck.claim_event(|_| true);
    Some(said.map_or(Lack::Silent, Lack::Reported))
}

fn judge(stuck: &WaitingPod<'_>) -> Option<String> {
    let lack = lack(stuck)?;
    let (pod, claim) = (&stuck.pod.meta.name, stuck.claim);
    let namespace = &stuck.pod.meta.namespace;
    Some(match lack {
        Lack::NoClaim => format!(
            "Pod {pod} mentions claim \"{claim}\", and namespace {namespace} has no claim of that name."
        ),
        Lack::Ends => format!(
            "Claim \"{claim}\" is being deleted, and no new pod starts with a claim that is being deleted."
        ),
        Lack::Lost(volume) => format!(
            "Claim \"{claim}\" is bound to PersistentVolume {volume}, which does not exist any more."
        ),
        Lack::Reported(said) => format!(
            "Claim \"{claim}\" has no volume, and pod {pod} does not start without one. {}: \"{}\".",
            speaker(stuck),
            said.trim().trim_end_matches('.'),
        ),
        Lack::Silent => format!(
            "Claim \"{claim}\" has no volume, and pod {pod} does not start without one. No Event says why any more.{}",
            stuck
                .class
                .as_ref()
                .map(|class| format!(" Its StorageClass is {class}."))
                .unwrap_or_default()
        ),
    })
}

/// Who reports that there is no volume.
fn speaker(stuck: &WaitingPod<'_>) -> String {
    let objects = stuck.index.facts.objects;
    let claim = stuck.found_claim();
    let class = claim.and_then(|claim| binding::class_of(claim, objects).ok());
    match class.map(StorageClass::driver) {
        None | Some("") => "Kubernetes says".to_owned(),
        Some(driver) => format!("Its provisioner ({driver}) says"),
    }
}

/// What to do about a statement of a provisioner.
struct Known {
    words: Words,
    advice: &'static str,
}

/// The first that fits counts.
static KNOWN: [Known; 5] = [
    Known {
        words: Words(&[
            "not supported",
            "unsupported",
            "invalidargument",
            "volume capability",
        ]),
        advice: "The class cannot give what the claim requests. A claim cannot be changed: delete it, as it holds no data, and create it with an access mode and volumeMode that the class supports, or with another class.",
    },
    Known {
        words: Words(&["quota", "resourceexhausted", "exceeded", "out of capacity"]),
        advice: "The back end has no room, or a quota is used up. The claim gets its volume once there is room.",
    },
    Known {
        words: Words(&["no storage class is set", "no persistent volumes available"]),
        advice: "The claim names no StorageClass that provisions, and no PersistentVolume fits it: size, access modes, volumeMode, class and selector must all match.",
    },
    Known {
        words: Words(&["storageclass"]),
        advice: "See that the StorageClass exists. A claim's class cannot be changed: delete the claim, as it holds no data, and create it with another class, or create the class.",
    },
    Known {
        words: Words(&["waiting for a volume to be created", "external-provisioner"]),
        advice: "The provisioner has said nothing yet. See that its controller runs, and read its log, in the container csi-provisioner.",
    },
];

fn steps(stuck: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    let Some(lack) = lack(stuck) else {
        return Vec::new();
    };
    let claim = format!("pvc/{}", stuck.claim);
    let describe = SuggestedAction::new(
        Purpose::Check,
        stuck.in_namespace(&["describe", &claim]),
        "Nothing. Its Events hold what the provisioner says, for an hour.",
    );
    let note = |text: &str| SuggestedAction::note(text);
    match lack {
        Lack::NoClaim => vec![
            SuggestedAction::new(
                Purpose::Check,
                stuck.in_namespace(&["get", "pvc"]),
                "Nothing. It lists the claims that exist; the name in the pod may be misspelt.",
            ),
            note(
                "Create the claim, or correct the name in the pod's template. The pod starts once the claim exists and has a volume.",
            ),
        ],
        Lack::Ends => vec![
            describe,
            note(
                "A claim that is being deleted is gone once no pod uses it, and its data with it unless the reclaim policy of its volume is Retain. If the data is still needed, copy it before the last pod that runs is stopped.",
            ),
        ],
        Lack::Lost(_) => vec![
            describe,
            note(
                "If the disk still exists in the storage back end, create a PersistentVolume for it with the old name, whose claimRef names this claim. Otherwise delete the claim, create it anew and restore a backup into it.",
            ),
        ],
        Lack::Reported(said) => {
            let known = KNOWN.iter().find(|known| known.words.are_in(said));
            let advice = known.map(|known| note(known.advice));
            [describe, classes(stuck)]
                .into_iter()
                .chain(advice)
                .collect()
        }
        Lack::Silent => vec![
            describe,
            classes(stuck),
            note(
                "See that the StorageClass exists and that its provisioner runs; the log of the container csi-provisioner says the rest.",
            ),
        ],
    }
}

/// What shows what the classes can give.
fn classes(stuck: &WaitingPod<'_>) -> SuggestedAction {
    SuggestedAction::new(
        Purpose::Check,
        command::own(stuck.index.facts.kubectl, "capabilities", &[]),
        "Nothing. It lists which access modes each StorageClass of this cluster can give.",
    )
}
