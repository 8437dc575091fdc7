//! The pod names its node itself, so nothing binds its claim.
//!
//! A claim of a WaitForFirstConsumer class gets its volume when the scheduler chooses a node for a
//! pod, but a pod with `nodeName` never reaches the scheduler.

use serde_json::json;

use super::Judgement;
use super::changed::Changed;
use crate::waiting_pod::WaitingPod;
use engine::model::pod::HOSTNAME;
use engine::model::workload::WorkloadKind;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let node = waiting.pod.node.as_ref()?;
    let is_free = waiting.has_no_volume() && waiting.volume.is_none() && waiting.binds_late();
    if !is_free {
        return None;
    }
    let hostname = waiting
        .view()
        .node(node)
        .found()
        .and_then(|found| found.metadata.labels.get(HOSTNAME))
        .unwrap_or(node);
    let changed = Changed::behind(waiting.pod, waiting);
    let names_it = changed.workload.is_some_and(|workload| workload.template.node_name.is_some());
    let is_patched = names_it
        && matches!(changed.kind, Some(WorkloadKind::Deployment | WorkloadKind::StatefulSet));
    let more = json!({"by-hand": !is_patched, "hostname": hostname});
    Some(changed.judged(waiting, "node-name-unbound", more))
}
