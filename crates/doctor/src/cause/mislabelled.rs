//! The volume is declared ReadWriteMany, but its driver attaches it to one node at a time.
//!
//! The attach-detach controller trusts the access modes of the PersistentVolume and lets the second
//! node try; the driver refuses.

use serde_json::{Value, json};

use super::Judgement;
use crate::messages::quotable;
use crate::waiting_pod::WaitingPod;
use engine::model::Text;

/// The steps are those for a volume that is declared exclusive, and the correction of its access
/// modes.
pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let said = waiting.refusal().or(waiting.said)?;
    let mut more = waiting.attached_to(&waiting.mislabelled()?.node);
    more["said"] = json!(quotable(said));
    let told = waiting.told("mislabelled-volume", more);
    let steps = waiting.exclusive_use().unwrap_or_default().steps;
    Some(Judgement { steps: [steps, told.steps].concat(), ..told })
}

impl WaitingPod<'_> {
    /// The values of the sentence that says which node has the disk.
    pub(super) fn attached_to(&self, node: &Text) -> Value {
        let holder = self.holders.iter().find(|pod| pod.node.as_ref() == Some(node));
        json!({
            "disk-node": node,
            "disk-pod": holder.map(|pod| &pod.meta.name),
            "mislabelled": self.mislabelled().is_some(),
        })
    }
}
