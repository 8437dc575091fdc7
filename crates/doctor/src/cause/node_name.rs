//! The pod names its node itself, so nothing binds its claim.
//!
//! A claim of a WaitForFirstConsumer class gets its volume when the scheduler chooses a node for a
//! pod, but a pod with `nodeName` never reaches the scheduler.

use serde_json::json;

use super::Judgement;
use super::changed::{self, Changed};
use crate::told::when;
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
    let by_selector = json!({"nodeName": null, "nodeSelector": {HOSTNAME: hostname}});
    let is_patched = names_it
        && matches!(changed.kind, Some(WorkloadKind::Deployment | WorkloadKind::StatefulSet));
    let more = [
        ("by-hand", when(!is_patched)),
        ("changed", &*changed.display_name),
        ("hostname", hostname),
    ];
    let mut judgement = waiting.told("node-name-unbound", &more);
    if is_patched {
        let patch =
            waiting.patch(&changed.name, &json!({"spec": {"template": {"spec": by_selector}}}));
        // A StatefulSet does not replace a pod that never became ready.
        let command = match changed.kind {
            Some(WorkloadKind::StatefulSet) => {
                format!("{patch} && {}", waiting.delete(waiting.pod))
            }
            _ => patch,
        };
        let way = changed.change(
            command,
            &format!(
                "Nothing stops. The pods still go to node {node}, by a nodeSelector and through the scheduler, which binds the claim there."
            ),
        );
        judgement.steps.extend(changed::with_delivery_steps(waiting, vec![way]));
    }
    Some(judgement)
}
