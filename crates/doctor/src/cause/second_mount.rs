//! The driver refuses to mount the volume for a second pod, even on the same node.

use serde_json::json;

use super::{Judgement, describe};
use crate::waiting_pod::WaitingPod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    if !waiting.refuses_second_mount() {
        return None;
    }
    let mounter = waiting.users().find(|user| user.node == waiting.pod.node).map(describe);
    let refused = waiting.told("second-mount", json!({ "mounter": mounter }));
    Some(match waiting.exclusive_use() {
        Some(Judgement { explanation, steps }) => {
            Judgement { explanation: format!("{} {explanation}", refused.explanation), steps }
        }
        None => refused,
    })
}
