//! The volume says ReadWriteMany, and its driver attaches it to one node at a time.
//!
//! The attach-detach controller goes by the access modes of the PersistentVolume and lets the
//! second node try; the driver refuses.

use super::{Cause, Documents, Steps, SuggestedAction, exclusive_use};
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::Text;
use engine::model::live_pod::Pod;

pub(super) const CAUSE: Cause = Cause {
    code: "mislabelled-volume",
    title: "The driver cannot attach a ReadWriteMany volume twice",
    passes: false,
    judge: |stuck| judge(stuck),
    steps: Steps::WithDocuments(steps),
};

fn judge(stuck: &WaitingPod<'_>) -> Option<String> {
    let said = stuck.refusal().or(stuck.said)?;
    let node = &stuck.mislabelled()?.node;
    Some(format!(
        "{} The driver's words: \"{}\".",
        attached_to(stuck, node),
        said.trim().trim_end_matches('.')
    ))
}

/// Who has the disk, and that nobody else can have it.
pub(super) fn attached_to(stuck: &WaitingPod<'_>, node: &Text) -> String {
    let mut holders = stuck.holders.iter();
    let holder = holders.find(|pod| pod.node.as_ref() == Some(node));
    let holder = holder.map(|pod: &&Pod| format!(" (pod {})", pod.meta.name));
    let promise = match stuck.mislabelled() {
        Some(_) => ", whatever the volume's ReadWriteMany says",
        None => "",
    };
    format!(
        "The disk is attached to {node}{}. Its driver cannot attach it twice{promise}.",
        holder.unwrap_or_default()
    )
}

/// As for a volume that says what it is, and what makes it say so.
fn steps(stuck: &WaitingPod<'_>, documents: &Documents) -> Vec<SuggestedAction> {
    let ways = exclusive_use(stuck).map(|cause| cause.steps(stuck, documents));
    let mut steps = ways.unwrap_or_default();
    let volume = stuck.volume.as_deref().unwrap_or("the volume");
    steps.push(SuggestedAction::note(&format!(
        "Correct the accessModes of PersistentVolume {volume} to ReadWriteOnce, in its manifest and in the cluster: then Kubernetes keeps the second node away, and multi-attach-guard sees the conflict before it happens."
    )));
    steps
}
