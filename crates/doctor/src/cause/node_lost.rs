//! The node that has the volume does not answer.
//!
//! Kubernetes cannot distinguish a machine that is off from one that is cut off and still writes:
//! it keeps the volume attached until somebody confirms that the machine is off.

use serde_json::json;

use super::{Judgement, SuggestedAction, describe};
use crate::health::{Examined, Health, SHUT_DOWN};
use crate::span::span;
use crate::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    if let Some(node) = waiting.lost_node() {
        let explanation = explanation(waiting, &node)?;
        return Some(Judgement { explanation, steps: steps(waiting, &node) });
    }
    // A pod that starts on a lost node keeps the volume from every other node.
    let own = waiting.pod.node.as_deref().filter(|_| waiting.holding_nodes().is_empty())?;
    let node = Examined::of(waiting.index, own);
    let part = format!("is the one on which pod {} is to start, and", waiting.pod.meta.name);
    (node.health == Health::Lost && !node.out_of_service).then(|| Judgement {
        steps: steps(waiting, &node),
        ..waiting.told("node-lost-own", json!({"unheard": unheard(&node, &part)}))
    })
}

fn explanation(waiting: &WaitingPod<'_>, node: &Examined) -> Option<String> {
    // Kubernetes has already released the volume; the driver's own message is more exact.
    if !waiting.stays_on(&node.name)
        && waiting.shown_attachments().any(|attachment| {
            attachment.node == *node.name
                && attachment.metadata.is_being_deleted()
                && attachment.detach_error.is_some()
        })
    {
        return None;
    }
    let staying = users(waiting, node).find(|pod| stays(pod)).map(describe);
    let name = match node.health {
        Health::Gone => "node-gone",
        _ if node.out_of_service && staying.is_some() => "node-off-with-pod",
        _ if node.out_of_service => "node-off-by-taint",
        _ if users(waiting, node).next().is_some() => "node-silent",
        _ => "node-silent-without-pods",
    };
    let more = json!({
        "there": node.name,
        "outlook": node.outlook(waiting.index.facts),
        "staying": staying,
        "unheard": unheard(node, "has the volume and"),
    });
    Some(waiting.told(name, more).explanation)
}

/// The pods of the node that use the claim.
fn users<'a>(waiting: &WaitingPod<'a>, node: &Examined) -> impl Iterator<Item = &'a Pod> {
    let own = waiting.pod.is_ending().then_some(waiting.pod);
    waiting.users().chain(own).filter(move |pod| pod.node.as_deref() == Some(&node.name))
}

/// Whether the out-of-service taint does not remove the pod: the pod tolerates the taint and is not
/// terminating. Kubernetes removes terminating pods (`gcTerminating` in `pkg/controller/podgc`).
fn stays(pod: &Pod) -> bool {
    pod.stays_out_of_service() && !pod.is_ending()
}

/// Says that a node with this part in the case does not answer, and since when.
fn unheard(node: &Examined, part: &str) -> String {
    let name = &node.name;
    let lease = match node.lease_seconds {
        Some(age) => format!("its Lease was last renewed {} ago", span(age)),
        None => "it has no Lease that could be read".to_owned(),
    };
    let ready = node.ready.unwrap_or("Unknown");
    format!("Node {name} {part} does not answer: Ready is {ready}, and {lease}.")
}

/// The condition of the taint out-of-service. To bring the machine back costs least, so it is named
/// first.
pub(crate) fn power(node: &Examined) -> String {
    let name = &node.name;
    let known = if node.taints.iter().any(|taint| taint.starts_with(SHUT_DOWN)) {
        "The taint node.cloudprovider.kubernetes.io/shutdown says that the cloud has shut it down; make sure that it stays down."
    } else {
        "Neither Kubernetes nor this program can see that."
    };
    format!(
        "Bring the machine back if you can: nothing is lost then. If you cannot, {name} must be powered off: look at the machine itself. {known}"
    )
}

fn steps(waiting: &WaitingPod<'_>, node: &Examined) -> Vec<SuggestedAction> {
    let is_given_up = node.health == Health::Gone || node.out_of_service;
    let stay = users(waiting, node).filter(|pod| stays(pod)).flat_map(|pod| {
        let more = json!({"staying": pod.meta.name, "last": is_given_up});
        waiting.told("pod-stays", more).steps
    });
    if is_given_up {
        let stay: Vec<_> = stay.filter(|_| node.out_of_service).collect();
        let power = if stay.is_empty() { String::new() } else { power(node) };
        let mut steps = waiting.told("node-given-up", json!({ "power": power })).steps;
        let wait = steps.pop();
        return steps.into_iter().chain(stay).chain(wait).collect();
    }
    let owner = waiting
        .owner_pod()
        .filter(|owner| users(waiting, node).any(|pod| pod.meta.name == **owner));
    let back = waiting.told("node-back", json!({ "there": node.name })).steps;
    let more = json!({"there": node.name, "power": power(node), "owner": owner});
    waiting.told("node-lost", more).steps.into_iter().chain(stay).chain(back).collect()
}
