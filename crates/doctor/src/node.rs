//! What a node still has: the gate before its reboot, its upgrade or its removal.

use serde::Serialize;

use super::cause::{DRAIN, describe, power, sentence, taint_command};
use super::command;
use super::diagnosis::DiagnosisInput;
use super::health::{Examined, Health};
use super::index::Index;
use engine::model::Text;
use engine::model::live_pod::Pod;
use engine::model::volume_attachment::VolumeAttachment;

/// The volumes that a node still has.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeEntry {
    /// The node and its health.
    pub node: Examined,
    /// What is attached or mounted there and who has it: sentences. Empty if nothing is.
    pub volumes: Vec<String>,
    /// How to empty the node, in sentences.
    pub way_out: Option<String>,
}

/// The volumes of the node `name`; `None` if nothing that was read mentions it.
pub fn node(facts: DiagnosisInput<'_>, name: &str) -> Option<NodeEntry> {
    let index = Index::of(facts);
    let observed = facts.observed;
    let node = Examined::of(&index, name);
    let attachments: Vec<&VolumeAttachment> =
        observed.attachments.iter().filter(|attachment| attachment.node == *name).collect();
    let pods: Vec<&Pod> = observed
        .pods
        .iter()
        .filter(|pod| {
            pod.node.as_deref() == Some(name) && pod.is_living() && !pod.claims.is_empty()
        })
        .collect();
    if node.health == Health::Gone && attachments.is_empty() && pods.is_empty() {
        return None;
    }
    let has = |pod: &Pod, volume: &str| {
        pod.claims.iter().any(|claim| {
            let found = facts.objects.view.claim(&pod.meta.namespace, claim).found();
            found.is_some_and(|found| found.spec.volume_name == *volume)
        })
    };
    let attached = attachments.iter().map(|attachment| {
        let users: Vec<String> = pods
            .iter()
            .filter(|pod| has(pod, &attachment.volume))
            .map(|pod| format!("{} in {}", describe(pod), pod.meta.namespace))
            .collect();
        let who = match users.as_slice() {
            [] => "no pod of the node that was read uses it".to_owned(),
            users => format!("{} has it", users.join(" and ")),
        };
        let error = attachment.detach_error.as_ref();
        let error = error.map(|said| format!(" The driver says: \"{said}\"."));
        format!(
            "Volume {} is {}; {who}.{}",
            attachment.volume,
            state(attachment),
            error.unwrap_or_default()
        )
    });
    let is_attached =
        |pod: &&Pod| attachments.iter().any(|attachment| has(pod, &attachment.volume));
    let mounted = pods.iter().copied().filter(|pod| !is_attached(pod)).map(|pod| {
        format!(
            "{} in {} uses claim {}; no VolumeAttachment of it was seen here.",
            sentence(&describe(pod)),
            pod.meta.namespace,
            pod.claims.iter().map(Text::as_str).collect::<Vec<_>>().join(", ")
        )
    });
    let in_use = index.nodes.get(name).map_or(0, |known| known.status.volumes_in_use.len());
    let kubelet = (in_use > 0).then(|| {
        format!("The kubelet reports {in_use} attachable volumes that are mounted, or were when it last reported.")
    });
    let volumes: Vec<String> = attached.chain(mounted).chain(kubelet).collect();
    let way_out = (!volumes.is_empty()).then(|| way_out(facts, &node, !pods.is_empty()));
    Some(NodeEntry { node, volumes, way_out })
}

/// The state of an attachment, after "is".
pub(super) const fn state(attachment: &VolumeAttachment) -> &'static str {
    match (attachment.metadata.is_being_deleted(), attachment.attached) {
        (true, _) => "being detached",
        (false, true) => "attached",
        (false, false) => "being attached",
    }
}

/// How to empty the node. Nothing that is safe on a live machine only is advised for another one.
fn way_out(facts: DiagnosisInput<'_>, node: &Examined, has_pods: bool) -> String {
    let name = node.name.as_str();
    let outlook = node.outlook(facts);
    match node.health {
        Health::Alive if has_pods => format!(
            "`{}` moves its pods to other nodes, and their volumes follow. Wait until nothing is left here before the machine is stopped.",
            command::line(facts.kubectl, &[&["drain", name][..], &DRAIN].concat())
        ),
        Health::Alive => format!("{outlook} If it stays for minutes, the kubelet's log says why. Do not delete a VolumeAttachment: the disk may still be mounted."),
        Health::NotReady => "Mend the node first: only its kubelet can unmount what is here. Do not stop the machine before, and do not delete pods by force.".to_owned(),
        Health::Lost if !node.out_of_service => {
            format!("{} Only then `{}`.", power(node), taint_command(facts.kubectl, name))
        }
        Health::Lost | Health::Gone => format!("{outlook} If it stays, the log of the driver's container csi-attacher says why. Do not delete a VolumeAttachment before the console of your storage shows that the disk is attached to no machine."),
        Health::Unknown => "The node's state could not be read: do not stop the machine on this answer.".to_owned(),
    }
}
