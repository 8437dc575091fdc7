//! The volume is declared ReadWriteMany, but its driver attaches it to one node at a time.
//!
//! The attach-detach controller trusts the access modes of the PersistentVolume and lets the second
//! node try; the driver refuses.

use serde_json::Value;

use super::{Judgement, exclusive_use};
use crate::waiting_pod::WaitingPod;
use engine::model::Text;

/// The steps are those for a volume that is declared exclusive, and the correction of its access
/// modes.
pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let said = waiting.refusal().or(waiting.said)?;
    let node = &waiting.mislabelled()?.node;
    let explanation = format!(
        "{} The driver's words: \"{}\".",
        attached_to(waiting, node),
        said.trim().trim_end_matches('.')
    );
    let mut steps = exclusive_use(waiting).unwrap_or_default().steps;
    steps.extend(waiting.told("mislabelled", Value::Null).steps);
    Some(Judgement { explanation, steps })
}

/// Says which node has the disk, and that no other node can have it.
pub(super) fn attached_to(waiting: &WaitingPod<'_>, node: &Text) -> String {
    let holder = waiting
        .holders
        .iter()
        .find(|pod| pod.node.as_ref() == Some(node))
        .map(|pod| format!(" (pod {})", pod.meta.name))
        .unwrap_or_default();
    let promise = match waiting.mislabelled() {
        Some(_) => ", whatever the volume's ReadWriteMany says",
        None => "",
    };
    format!("The disk is attached to {node}{holder}. Its driver cannot attach it twice{promise}.")
}
