//! Another PersistentVolume represents the same disk and is in use.
//!
//! The attach-detach controller identifies a disk by driver and volumeHandle
//! (`GetUniqueVolumeNameFromSpec` in `pkg/volume/util`), so it treats the two volumes as one.

use super::{Judgement, Purpose, SuggestedAction};
use crate::diagnosis::messages::IN_ANOTHER_NAMESPACE;
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;
use engine::model::volume::Volume;
use engine::model::volume_attachment::VolumeAttachment;

/// The other PersistentVolume of the disk, a pod that uses it, and its attachment.
struct Twin<'a> {
    volume: &'a Volume,
    pod: Option<&'a Pod>,
    attachment: Option<&'a VolumeAttachment>,
}

/// The twin whose users are on another node than the waiting pod.
fn twin<'a>(waiting: &WaitingPod<'a>) -> Option<Twin<'a>> {
    if !waiting.is_attached() {
        return None;
    }
    let view = waiting.view();
    let own = view.volume(waiting.volume.as_deref()?).found()?;
    view.twins(own).into_iter().find_map(|volume| {
        let index = waiting.index;
        let pod = volume
            .spec
            .claim_ref
            .as_ref()
            .map(|claim| index.users(&claim.namespace, &claim.name))
            .unwrap_or_default()
            .iter()
            .copied()
            .find(|pod| pod.is_living() && (pod.mounted || pod.phase == "Running"));
        let attachment = index
            .attachments(&volume.metadata.name)
            .iter()
            .copied()
            .find(|attachment| attachment.attached);
        let elsewhere = |node: &engine::model::Text| waiting.pod.node.as_ref() != Some(node);
        let is_elsewhere = attachment.is_some_and(|attachment| elsewhere(&attachment.node))
            || pod.is_some_and(|pod| pod.node.as_ref().is_some_and(elsewhere));
        is_elsewhere.then_some(Twin { volume, pod, attachment })
    })
}

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let Some(Twin { volume: twin, pod, attachment }) = twin(waiting) else {
        if !waiting.holders.is_empty() || !waiting.is_said(IN_ANOTHER_NAMESPACE) {
            return None;
        }
        let explanation = format!(
            "Pods of another namespace have the disk, which claim \"{}\" cannot give them: another PersistentVolume stands for the same disk, with the same driver and volumeHandle.",
            waiting.claim
        );
        let look = SuggestedAction::check(
            waiting.kubectl(&["get", "pv", "-o", HANDLES]),
            "Nothing. The two lines with the same driver and handle are the two volumes.",
        );
        let steps = vec![look, SuggestedAction::note(ONE_VOLUME)];
        return Some(Judgement { explanation, steps });
    };
    let own = waiting.volume.as_deref().unwrap_or_default();
    let claim = twin
        .spec
        .claim_ref
        .as_ref()
        .map(|claim| format!(" of claim {}/{}", claim.namespace, claim.name));
    let used = match pod {
        Some(pod) => format!("pod {}/{} uses it", pod.meta.namespace, pod.meta.name),
        None => "it is in use".to_owned(),
    };
    let node = attachment
        .map(|attachment| attachment.node.as_str())
        .or(pod.and_then(|pod| pod.node.as_deref()));
    let other = &twin.metadata.name;
    let explanation = format!(
        "PersistentVolumes {own} and {other}{} are one disk ({}, volumeHandle {}), and {used} on node {}. Kubernetes attaches a disk to one node at a time, however many PersistentVolumes it has.",
        claim.unwrap_or_default(),
        twin.csi_driver().unwrap_or_default(),
        twin.spec.handle,
        node.unwrap_or("that is not known"),
    );
    let retain = r#"{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}"#;
    let keep = waiting.kubectl(&["patch", "pv", own, other, "--type=merge", "-p", retain]);
    let steps = vec![
        SuggestedAction::check(
            waiting.kubectl(&["get", "pv", own, other]),
            "Nothing. It shows the claims of both, and their reclaim policies.",
        ),
        SuggestedAction::new(
            Purpose::Before,
            keep,
            "Nothing stops. With the policy Delete, deleting one of the two claims deletes the disk of both.",
        ),
        SuggestedAction::note(ONE_VOLUME),
    ];
    Some(Judgement { explanation, steps })
}

/// The columns that show the disk and the claim of each PersistentVolume.
const HANDLES: &str = "custom-columns=NAME:.metadata.name,DRIVER:.spec.csi.driver,HANDLE:.spec.csi.volumeHandle,NAMESPACE:.spec.claimRef.namespace,CLAIM:.spec.claimRef.name";

const ONE_VOLUME: &str = "A disk has one PersistentVolume. Stop the pods of one of the two, then remove that claim and its volume, whose reclaim policy must be Retain by then: with Delete the disk goes with it. Pods of one namespace can share the claim that is left.";
