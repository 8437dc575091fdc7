//! The node was drained, and affinity keeps the new pod waiting for a pod that is gone.
//!
//! A pod whose affinity selects pods like itself may start on any node if it is the first of them.
//! But the departure of the last old pod does not wake the scheduler
//! (kubernetes/kubernetes#141354), which tries again after about five minutes.

use serde_json::json;

use super::Judgement;
use crate::span::span;
use crate::waiting_pod::WaitingPod;

/// The number of seconds after which the scheduler retries a pod that no event has woken
/// (`DefaultPodMaxInUnschedulablePodsDuration` in `pkg/scheduler/backend/queue`).
const LOOKS_AGAIN: i64 = 300;

/// The number of seconds after which the scheduler has retried several times, so that something
/// else must keep the pod off.
const GIVEN_UP: i64 = 4 * LOOKS_AGAIN;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let waited = waiting.waited().unwrap_or_default();
    if !waiting.may_be_first_of_its_like() || waited > GIVEN_UP {
        return None;
    }
    let left = LOOKS_AGAIN - waited;
    let more = json!({
        "cordoned": waiting.holding_node(|node| node.cordoned).map(|node| node.name),
        "again": (left > 0).then(|| span(left)),
    });
    Some(waiting.told("drain-with-co-location", more))
}
