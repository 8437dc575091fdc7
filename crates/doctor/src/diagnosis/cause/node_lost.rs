//! The node that has the volume does not answer.
//!
//! Kubernetes cannot distinguish a machine that is off from one that is cut off and still writes:
//! it keeps the volume attached until somebody confirms that the machine is off.

use super::{Judgement, Purpose, SuggestedAction, describe, wait};
use crate::diagnosis::command;
use crate::diagnosis::health::{Examined, Health, SHUT_DOWN};
use crate::diagnosis::span;
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;
use engine::model::node::OUT_OF_SERVICE;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    if let Some(node) = waiting.lost_node() {
        let explanation = explanation(waiting, &node)?;
        return Some(Judgement { explanation, steps: steps(waiting, &node) });
    }
    // A pod that starts on a lost node keeps the volume from every other node.
    let own = waiting.pod.node.as_deref().filter(|_| waiting.holding_nodes().is_empty())?;
    let node = Examined::of(waiting.index, own);
    let is_lost = node.health == Health::Lost && !node.out_of_service;
    let part = format!("is the one on which pod {} is to start, and", waiting.pod.meta.name);
    is_lost.then(|| Judgement {
        explanation: format!(
            "{} Nothing mounts the volume there before the node is back. Kubernetes deletes the pod some minutes after a node falls silent, but the pod is gone, and its volume free, only once the kubelet answers or somebody confirms that the machine is off.",
            unheard(&node, &part)
        ),
        steps: steps(waiting, &node),
    })
}

fn explanation(waiting: &WaitingPod<'_>, node: &Examined) -> Option<String> {
    let name = &node.name;
    // Kubernetes has already released the volume; the driver's own message is more exact.
    if !waiting.stays_on(name)
        && waiting.shown_attachments().any(|attachment| {
            attachment.node == *name
                && attachment.metadata.is_being_deleted()
                && attachment.detach_error.is_some()
        })
    {
        return None;
    }
    let mut users = users(waiting, node);
    let outlook = node.outlook(waiting.index.facts);
    if node.health == Health::Gone {
        return Some(format!(
            "Node {name} has the volume, and there is no such Node any more. {outlook}"
        ));
    }
    if node.out_of_service {
        let exception = users.find(|pod| stays(pod)).map_or_else(String::new, |pod| {
            format!(
                " But {} tolerates it and is not terminating, so that it keeps the volume.",
                describe(pod)
            )
        });
        return Some(format!("Node {name} has the volume and is lost. {outlook}{exception}"));
    }
    let end = match users.next() {
        Some(_) => {
            "Kubernetes keeps it there, as the machine may still write, until somebody acts."
                .to_owned()
        }
        None => format!("No pod of it is left. {outlook}"),
    };
    Some(format!("{} {end}", unheard(node, "has the volume and")))
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

/// The condition of [`taint`]. To bring the machine back costs least, so it is named first.
pub(in crate::diagnosis) fn power(node: &Examined) -> SuggestedAction {
    let name = &node.name;
    let known = if node.taints.iter().any(|taint| taint.starts_with(SHUT_DOWN)) {
        "The taint node.cloudprovider.kubernetes.io/shutdown says that the cloud has shut it down; make sure that it stays down."
    } else {
        "Neither Kubernetes nor this program can see that."
    };
    SuggestedAction::condition(&format!(
        "Bring the machine back if you can: nothing is lost then. If you cannot, {name} must be powered off: look at the machine itself. {known}"
    ))
}

/// The command to run once the machine is off.
pub(in crate::diagnosis) fn taint_command(kubectl: &str, name: &str) -> String {
    let taint = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
    command::line(kubectl, &["taint", "node", name, &taint])
}

/// The step with [`taint_command`], and the damage if it is run too early.
fn taint(waiting: &WaitingPod<'_>, name: &str) -> SuggestedAction {
    SuggestedAction::way_out(
        taint_command(waiting.index.facts.kubectl, name),
        &format!(
            "Pods of {name} are deleted. If {name} is on, two nodes write to one disk and data is lost."
        ),
    )
}

fn steps(waiting: &WaitingPod<'_>, node: &Examined) -> Vec<SuggestedAction> {
    let name = node.name.as_str();
    let delete = |purpose| {
        users(waiting, node).filter(|pod| stays(pod)).map(move |pod| {
            SuggestedAction::new(
                purpose,
                waiting.in_namespace(&["delete", &format!("pod/{}", pod.meta.name), "--wait=false"]),
                "The pod tolerates the taint, so that Kubernetes does not delete it. On a machine that is off nothing is lost.",
            )
        })
    };
    if node.health == Health::Gone || node.out_of_service {
        let wait = wait(
            waiting,
            "Time. Do not delete the VolumeAttachment by hand: if the machine still runs, both nodes write to one disk.",
        );
        let mut steps: Vec<_> =
            delete(Purpose::WayOut).filter(|_| node.out_of_service).chain([wait]).collect();
        if steps.len() > 1 {
            steps.insert(0, power(node));
        }
        return steps;
    }
    let look = SuggestedAction::new(
        Purpose::Before,
        waiting.kubectl(&["get", "node", name, "-o", "wide"]),
        "Nothing. Where the node is Ready again, the volume is released by itself.",
    );
    let untaint = SuggestedAction::new(
        Purpose::Afterwards,
        waiting.kubectl(&["taint", "node", name, &format!("{OUT_OF_SERVICE}-")]),
        "Nothing. When the machine has been restarted, pods may run there again.",
    );
    let owner = waiting
        .owner_pod()
        .filter(|owner| users(waiting, node).any(|pod| pod.meta.name == **owner));
    let owned = owner.map(|owner| {
        SuggestedAction::condition(&format!(
            "Claim \"{}\" belongs to pod {owner} on {name}, whose ephemeral volume it backs: the taint deletes that pod, and the claim and its data with it.",
            waiting.claim
        ))
    });
    [look, power(node)]
        .into_iter()
        .chain(owned)
        .chain([taint(waiting, name)])
        .chain(delete(Purpose::Afterwards))
        .chain([untaint])
        .collect()
}
