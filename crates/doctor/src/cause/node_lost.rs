//! The node that has the volume does not answer.
//!
//! Kubernetes cannot distinguish a machine that is off from one that is cut off and still writes:
//! it keeps the volume attached until somebody confirms that the machine is off.

use serde_json::{Value, json};

use super::{Judgement, SuggestedAction, describe};
use crate::health::{Examined, Health};
use crate::waiting_pod::WaitingPod;
use engine::model::Text;
use engine::model::live_pod::Pod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    if let Some(node) = waiting.lost_node() {
        let explanation = explanation(waiting, &node)?;
        return Some(Judgement { explanation, steps: steps(waiting, &node) });
    }
    // A pod that starts on a lost node keeps the volume from every other node.
    let own = waiting.pod.node.as_deref().filter(|_| waiting.holding_nodes().is_empty())?;
    let node = Examined::of(waiting.index, own);
    (node.health == Health::Lost && !node.out_of_service).then(|| Judgement {
        steps: steps(waiting, &node),
        ..waiting.told_of_node(&node, "node-lost-own", Value::Null)
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
    Some(waiting.told_of_node(node, name, json!({ "staying": staying })).explanation)
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

fn steps(waiting: &WaitingPod<'_>, node: &Examined) -> Vec<SuggestedAction> {
    let is_gone = node.health == Health::Gone;
    let owner = waiting
        .owner_pod()
        .filter(|owner| users(waiting, node).any(|pod| pod.meta.name == **owner));
    let told = |name, staying: Option<&Text>| {
        let last = is_gone || node.out_of_service;
        let more = json!({"staying": staying, "last": last, "owner": owner});
        waiting.told_of_node(node, name, more).steps
    };
    let (first, last) = if is_gone || node.out_of_service {
        ("node-given-up", "node-to-wait-for")
    } else {
        ("node-lost", "node-back")
    };
    let staying: Vec<&Text> = users(waiting, node)
        .filter(|pod| stays(pod) && (node.out_of_service || !is_gone))
        .map(|pod| &pod.meta.name)
        .collect();
    let mut steps = told(first, staying.first().copied());
    steps.extend(staying.into_iter().flat_map(|pod| told("pod-stays", Some(pod))));
    steps.extend(told(last, None));
    steps
}
