//! No other cause applies: the message of Kubernetes is passed on unchanged.

use super::{Judgement, SuggestedAction};
use crate::diagnosis::messages::KUBELET_WAITS;
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::claim::ClaimPhase;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    Some(Judgement { explanation: explanation(waiting), steps: steps(waiting) })
}

fn explanation(waiting: &WaitingPod<'_>) -> String {
    let pod = &waiting.pod.meta.name;
    let volume = whereabouts(waiting);
    match waiting.words() {
        Some(said) => format!(
            "Pod {pod} has not started. {volume} Kubernetes says: \"{}\".",
            said.trim().trim_end_matches('.')
        ),
        None => format!("Pod {pod} has not started, and Kubernetes does not say why. {volume}"),
    }
}

/// Describes how far the volume has come.
fn whereabouts(waiting: &WaitingPod<'_>) -> String {
    let claim = waiting.claim;
    match &waiting.pod.node {
        None if waiting.has_no_volume() => {
            format!("Claim \"{claim}\" gets its volume once the scheduler has chosen a node.")
        }
        None => {
            let bound = match &waiting.volume {
                Some(name)
                    if waiting
                        .found_claim()
                        .is_some_and(|found| found.status.phase == ClaimPhase::Other) =>
                {
                    format!("claim \"{claim}\" is bound to {name}")
                }
                _ => format!("whether claim \"{claim}\" is bound could not be seen"),
            };
            format!(
                "The scheduler has chosen no node. Its words were searched for the place, the limit and the users of the volume, and none was found; {bound}."
            )
        }
        Some(node) if waiting.is_attached_to_its_node() => {
            format!("The volume of claim \"{claim}\" is attached to its node {node}.")
        }
        Some(node) if !waiting.is_attached() => {
            format!(
                "The volume of claim \"{claim}\" needs no attaching; the kubelet of {node} mounts it."
            )
        }
        Some(node) => format!(
            "Whether the volume of claim \"{claim}\" is attached to its node {node} could not be seen."
        ),
    }
}

fn steps(waiting: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    let mut steps = vec![SuggestedAction::check(
        waiting.in_namespace(&["describe", &format!("pod/{}", waiting.pod.meta.name)]),
        "Nothing. Its conditions and Events say how far it has come; Events are kept for an hour.",
    )];
    if let Some(node) = &waiting.pod.node {
        let is_kubelet = waiting.words().is_none_or(|said| KUBELET_WAITS.is_in(said));
        steps.extend(is_kubelet.then(|| {
            SuggestedAction::note(&format!(
                "The logs of the kubelet of {node} and of the driver's node plugin there say what is done with the volume. A Secret or ConfigMap that does not exist keeps a pod in ContainerCreating too."
            ))
        }));
    }
    steps
}
