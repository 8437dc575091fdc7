//! The pod names its node itself, so nothing binds its claim.
//!
//! A claim of a WaitForFirstConsumer class gets its volume when the scheduler chooses a node for a
//! pod, but a pod with `nodeName` never reaches the scheduler.

use serde_json::json;

use super::changed::{self, Changed};
use super::{Judgement, SuggestedAction};
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::pod::HOSTNAME;
use engine::model::workload::WorkloadKind;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let node = waiting.pod.node.as_ref()?;
    let is_free = waiting.has_no_volume() && waiting.volume.is_none() && waiting.binds_late();
    if !is_free {
        return None;
    }
    let explanation = format!(
        "Pod {} was put on node {node} by `nodeName`, past the scheduler. The class of claim \"{}\" binds late (WaitForFirstConsumer), when the scheduler chooses a node: the claim never gets a volume.",
        waiting.pod.meta.name, waiting.claim
    );
    let describe = SuggestedAction::check(
        waiting.in_namespace(&["describe", &format!("pvc/{}", waiting.claim)]),
        "Nothing. As long as its Events say \"waiting for first consumer to be created before binding\", no scheduler has seen the pod.",
    );
    let hostname = waiting
        .view()
        .node(node)
        .found()
        .and_then(|found| found.metadata.labels.get(HOSTNAME))
        .unwrap_or(node);
    let changed = Changed::behind(waiting.pod, waiting);
    let names_it = changed.workload.is_some_and(|workload| workload.template.node_name.is_some());
    let by_selector = json!({"nodeName": null, "nodeSelector": {HOSTNAME: hostname}});
    let mut steps = vec![describe];
    match changed.kind {
        Some(WorkloadKind::Deployment | WorkloadKind::StatefulSet) if names_it => {
            let patch = waiting
                .patch(&changed.name, &json!({"spec": {"template": {"spec": by_selector}}}));
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
            steps.extend(changed::with_delivery_steps(waiting, vec![way]));
        }
        _ => steps.push(SuggestedAction::note(&format!(
            "In the manifest of {}, replace `nodeName: {node}` by `nodeSelector: {{{HOSTNAME}: {hostname}}}`, and recreate the pod: it has not started, so nothing is lost.",
            changed.display_name
        ))),
    }
    Some(Judgement { explanation, steps })
}
