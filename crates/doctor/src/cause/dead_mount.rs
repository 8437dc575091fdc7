//! A mount of the volume on the pod's node is dead, and does not come back by itself.
//!
//! The driver mounts a volume once for a node (`NodeStageVolume`) and once for each pod. A pod gets
//! a new mount when it is made anew, and the node when no pod of it uses the volume any more.

use serde_json::json;

use super::{Judgement, describe};
use crate::waiting_pod::WaitingPod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    waiting.dead_mount()?;
    let node = waiting.pod.node.as_ref().filter(|_| !waiting.pod.is_ending())?;
    let other = waiting.users().find(|user| user.node.as_ref() == Some(node)).map(describe);
    Some(waiting.told("dead-mount", json!({ "other": other })))
}
