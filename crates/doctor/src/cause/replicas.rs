//! A workload runs more pods than its volume allows.

use serde_json::json;

use super::changed::{self, Changed};
use super::scale;
use super::{Judgement, SuggestedAction, another_storage, held, is_made_again, owner};
use crate::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;
use engine::model::workload::WorkloadKind;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let workload = owner(waiting.pod);
    let other = waiting.siblings().next()?;
    if !is_known(waiting) {
        return of_unknown(waiting, other);
    }
    let replicas = waiting.workload().map(|workload| workload.replicas);
    let wanted = match replicas.filter(|count| *count > 1) {
        Some(count) => format!("{workload} wants {count} pods"),
        None => format!("{workload} wants a pod on each of its nodes, or more than one"),
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
    let more = json!({"workload": owner(waiting.pod), "held": held(waiting, other)});
    Some(waiting.told("pods-of-unknown", more))
}

fn steps(waiting: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    let changed = Changed::behind(waiting.pod, waiting);
    let name = match changed.kind {
        _ if changed.scales() => "too-many-replicas",
        Some(WorkloadKind::Job | WorkloadKind::CronJob) => "too-many-of-job",
        Some(WorkloadKind::DaemonSet) => "too-many-of-daemon-set",
        _ => return another_storage(waiting),
    };
    let attached = waiting.foreign_attachments().map(|attachment| attachment.node.clone());
    let more = json!({
        "blocked": scale::blocked(waiting, waiting.pod, 1),
        "left": scale::left(waiting),
        "job": WaitingPod::target_of(waiting.pod),
        "cron-job": (changed.kind == Some(WorkloadKind::CronJob)).then_some(&changed.name),
        "there": attached.chain(waiting.holding_nodes()).next(),
    });
    let ways = changed.ways(waiting, name, more);
    let mut steps = changed::with_delivery_steps(waiting, ways);
    steps.extend(another_storage(waiting));
    steps
}
