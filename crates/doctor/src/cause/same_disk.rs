//! Another PersistentVolume represents the same disk and is in use.
//!
//! The attach-detach controller identifies a disk by driver and volumeHandle
//! (`GetUniqueVolumeNameFromSpec` in `pkg/volume/util`), so it treats the two volumes as one.

use serde_json::{Value, json};

use super::Judgement;
use crate::messages::Statement;
use crate::waiting_pod::WaitingPod;
use engine::model::Text;
use engine::model::live_pod::Pod;
use engine::model::volume::Volume;
use engine::model::volume_attachment::VolumeAttachment;

impl<'a> WaitingPod<'a> {
    /// The other PersistentVolume of the disk, whose users are on another node than the waiting pod, a
    /// pod that uses it, and its attachment.
    fn twin(&self) -> Option<(&'a Volume, Option<&'a Pod>, Option<&'a VolumeAttachment>)> {
        if !self.is_attached() {
            return None;
        }
        self.view().twins(self.found_volume()?).into_iter().find_map(|volume| {
            let index = self.index;
            let pod = volume
                .spec
                .claim_ref
                .iter()
                .flat_map(|claim| index.users(&claim.namespace, &claim.name))
                .copied()
                .find(|pod| pod.is_living() && (pod.mounted || pod.phase == "Running"));
            let attachment = index
                .attachments(&volume.metadata.name)
                .iter()
                .copied()
                .find(|attachment| attachment.attached);
            let elsewhere = |node: &Text| self.pod.node.as_ref() != Some(node);
            let is_elsewhere = attachment.is_some_and(|attachment| elsewhere(&attachment.node))
                || pod.is_some_and(|pod| pod.node.as_ref().is_some_and(elsewhere));
            is_elsewhere.then_some((volume, pod, attachment))
        })
    }
}

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let Some((twin, pod, attachment)) = waiting.twin() else {
        let is_it = waiting.holders.is_empty() && waiting.is_said(Statement::InAnotherNamespace);
        return is_it.then(|| waiting.told("same-disk-elsewhere", Value::Null));
    };
    let claim = twin.spec.claim_ref.as_ref();
    let node = attachment
        .map(|attachment| attachment.node.as_str())
        .or(pod.and_then(|pod| pod.node.as_deref()));
    let more = json!({
        "twin": twin.metadata.name,
        "twin-claim": claim.map(|claim| format!("{}/{}", claim.namespace, claim.name)),
        "driver-of-twin": twin.csi_driver(),
        "handle": twin.spec.handle,
        "twin-user": pod.map(|pod| format!("{}/{}", pod.meta.namespace, pod.meta.name)),
        "twin-node": node.unwrap_or("that is not known"),
    });
    Some(waiting.told("same-disk", more))
}
