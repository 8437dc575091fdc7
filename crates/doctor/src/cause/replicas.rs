//! A workload runs more pods than its volume allows.

use serde_json::json;

use super::changed::{self, Changed};
use super::scale;
use super::{Judgement, SuggestedAction, another_storage, held, is_made_again};
use crate::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;
use engine::model::pod::HOSTNAME;
use engine::model::workload::WorkloadKind;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let (kind, name) = waiting.pod.workload();
    let other = waiting.siblings().next()?;
    if !is_known(waiting) {
        return of_unknown(waiting, other);
    }
    let replicas = waiting.workload().map(|workload| workload.replicas);
    let wanted = match replicas.filter(|count| *count > 1) {
        Some(count) => format!("{kind} {name} wants {count} pods"),
        None => format!("{kind} {name} wants a pod on each of its nodes, or more than one"),
    };
    let explanation = format!("{wanted}, but {}", held(waiting, other));
    Some(Judgement { explanation, steps: steps(waiting) })
}

/// Whether the kind of workload that made the pod is known, so that its behaviour is too.
fn is_known(waiting: &WaitingPod<'_>) -> bool {
    is_made_again(waiting.pod) || Changed::behind(waiting.pod, waiting).scales()
}

/// The judgement on two pods of an owner whose behaviour is not known. If the other pod ends by
/// itself, the wait does too.
fn of_unknown(waiting: &WaitingPod<'_>, other: &Pod) -> Option<Judgement> {
    if other.template.ends {
        return None;
    }
    let (kind, name) = waiting.pod.workload();
    let workload = format!("{kind} {name}");
    let more = [("workload", &*workload), ("held", &held(waiting, other))];
    let mut judgement = waiting.told("pods-of-unknown", &more);
    judgement.steps.push(another_storage(waiting));
    Some(judgement)
}

fn steps(waiting: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    let changed = Changed::behind(waiting.pod, waiting);
    let way = match changed.kind {
        _ if changed.scales() => {
            changed.change(scale::command(waiting, &changed, waiting.pod, 1), &scale::left(waiting))
        }
        Some(WorkloadKind::Job | WorkloadKind::CronJob) => changed.change(
            one_at_a_time(waiting, &changed),
            "One pod works at a time, and the Job takes longer.",
        ),
        Some(WorkloadKind::DaemonSet) => {
            let attached = waiting.foreign_attachments().map(|attachment| attachment.node.clone());
            let Some(node) = attached.chain(waiting.holding_nodes()).next() else {
                return Vec::new();
            };
            let patch = json!({"spec": {"template": {"spec": {"nodeSelector": {HOSTNAME: node}}}}});
            changed.change(
                waiting.patch(&changed.name, &patch),
                &format!(
                    "It runs on node {node} only, and restarts there once. A volume for each node is the better way: a generic ephemeral volume in the template."
                ),
            )
        }
        _ => return vec![another_storage(waiting)],
    };
    let mut steps = changed::with_delivery_steps(waiting, vec![way]);
    steps.push(another_storage(waiting));
    steps
}

/// Patches the existing Job, and the CronJob that makes the next one.
fn one_at_a_time(waiting: &WaitingPod<'_>, changed: &Changed<'_>) -> String {
    let one = json!({"spec": {"parallelism": 1}});
    let job = waiting.patch(&WaitingPod::target_of(waiting.pod), &one);
    if changed.kind == Some(WorkloadKind::Job) {
        return job;
    }
    let next = json!({"spec": {"jobTemplate": one}});
    format!("{job} && {}", waiting.patch(&changed.name, &next))
}
