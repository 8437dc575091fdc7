//! The node on which the pod is to start is not Ready, so that time alone does not help.

use serde_json::Value;

use super::Judgement;
use crate::health::Health;
use crate::waiting_pod::WaitingPod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let node = waiting.pod.node.as_deref().filter(|_| !waiting.pod.is_ending())?;
    let is_unready = waiting.examined(node).health == Health::NotReady;
    is_unready.then(|| waiting.told("node-not-ready", Value::Null))
}
