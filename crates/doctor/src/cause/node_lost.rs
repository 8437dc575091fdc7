//! The node that has the volume does not answer.
//!
//! Kubernetes cannot distinguish a machine that is off from one that is cut off and still writes:
//! it keeps the volume attached until somebody confirms that the machine is off.

use serde_json::json;

use super::{Judgement, describe};
use crate::health::{Examined, Health};
use crate::told::merged;
use crate::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let Some(node) = waiting.lost_node() else {
        // A pod that starts on a lost node keeps the volume from every other node.
        let own = waiting.pod.node.as_deref().filter(|_| waiting.holding_nodes().is_empty())?;
        let node = waiting.examined(own);
        let is_lost = node.health == Health::Lost && !node.out_of_service;
        return is_lost.then(|| waiting.judgement(&node, "node-lost-own"));
    };
    // Kubernetes has already released the volume; the driver's own message is more exact.
    let is_released = !waiting.stays_on(&node.name)
        && waiting.shown_attachments().any(|attachment| {
            attachment.node == *node.name
                && attachment.metadata.is_being_deleted()
                && attachment.detach_error.is_some()
        });
    (!is_released).then(|| waiting.judgement(&node, "node-lost"))
}

impl WaitingPod<'_> {
    fn judgement(&self, node: &Examined, name: &str) -> Judgement {
        let own = self.pod.is_ending().then_some(self.pod);
        let users: Vec<&Pod> =
            self.users().chain(own).filter(|pod| pod.node.as_deref() == Some(&node.name)).collect();
        let is_gone = node.health == Health::Gone;
        let staying = users.iter().filter(|pod| stays(pod) && (node.out_of_service || !is_gone));
        let owner =
            self.owner_pod().filter(|owner| users.iter().any(|pod| pod.meta.name == **owner));
        let told = |part: &str, pod: Option<&&Pod>| {
            let more = json!({
                "staying": pod.map(|pod| &pod.meta.name),
                "staying-pod": pod.map(|pod| describe(pod)),
                "used-there": !users.is_empty(),
                "last": is_gone || node.out_of_service,
                "owner": owner,
            });
            self.told(part, merged(node.values(), more))
        };
        let mut judgement = told(name, staying.clone().next());
        judgement.steps.extend(staying.flat_map(|pod| told("pod-stays", Some(pod)).steps));
        judgement.steps.extend(told("node-back", None).steps);
        judgement
    }
}

/// Whether the out-of-service taint does not remove the pod: the pod tolerates the taint and is not
/// terminating. Kubernetes removes terminating pods (`gcTerminating` in `pkg/controller/podgc`).
fn stays(pod: &Pod) -> bool {
    pod.stays_out_of_service() && !pod.is_ending()
}
