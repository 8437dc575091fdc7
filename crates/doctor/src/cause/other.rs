//! No other cause applies: the message of Kubernetes is passed on unchanged.

use serde_json::json;

use super::Judgement;
use crate::messages::KUBELET_WAITS;
use crate::waiting_pod::WaitingPod;
use engine::model::claim::ClaimPhase;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let words = waiting.words();
    let more = json!({
        "whereabouts": whereabouts(waiting),
        "said": words.map(|said| said.trim().trim_end_matches('.')),
        "of-kubelet": words.is_none_or(|said| KUBELET_WAITS.is_in(said)),
    });
    Some(waiting.told(if words.is_some() { "other" } else { "other-unsaid" }, more))
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
