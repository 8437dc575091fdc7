//! What a node still has: the gate before its reboot, its upgrade or its removal.

use serde::Serialize;
use serde_json::json;

use super::cause::describe;
use super::diagnosis::DiagnosisInput;
use super::health::{Examined, Health};
use super::index::Index;
use super::report_case::state;
use super::told::merged;
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
        let more = json!({
            "volume": attachment.volume,
            "state": state(attachment),
            "users": users.join(" and "),
            "detach-error": attachment.detach_error.as_ref().map(|said| format!("\"{said}\"")),
        });
        facts.told("node-volume", more).explanation
    });
    let is_attached =
        |pod: &&Pod| attachments.iter().any(|attachment| has(pod, &attachment.volume));
    let mounted = pods.iter().copied().filter(|pod| !is_attached(pod)).map(|pod| {
        let user = describe(pod).replacen('p', "P", 1);
        let more = json!({"user": user, "namespace": pod.meta.namespace, "claims": pod.claims});
        facts.told("node-mount", more).explanation
    });
    let in_use = index.nodes.get(name).map_or(0, |known| known.status.volumes_in_use.len());
    let kubelet =
        (in_use > 0).then(|| facts.told("node-in-use", json!({ "in-use": in_use })).explanation);
    let volumes: Vec<String> = attached.chain(mounted).chain(kubelet).collect();
    let way_out = (!volumes.is_empty()).then(|| {
        let more = merged(node.values(), json!({ "has-pods": !pods.is_empty() }));
        facts.told("node-way-out", more).explanation
    });
    Some(NodeEntry { node, volumes, way_out })
}
