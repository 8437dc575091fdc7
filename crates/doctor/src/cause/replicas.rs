//! A workload runs more pods than its volume allows.

use serde_json::json;

use super::changed::Changed;
use super::scale;
use super::{Judgement, SuggestedAction, another_storage, held, is_made_again, owner};
use crate::waiting_pod::WaitingPod;
use engine::model::workload::WorkloadKind;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let own = owner(waiting.pod);
    let other = waiting.siblings().next()?;
    let held = held(waiting, other);
    let changed = Changed::behind(waiting.pod, waiting);
    // The behaviour of an owner whose kind is not known is not known either. If the other pod ends
    // by itself, the wait does too.
    if !is_made_again(waiting.pod) && !changed.scales() {
        let more = json!({"workload": own, "held": held});
        return (!other.template.ends).then(|| waiting.told("pods-of-unknown", more));
    }
    let replicas = waiting.workload().map(|workload| workload.replicas);
    let wanted = match replicas.filter(|count| *count > 1) {
        Some(count) => format!("{own} wants {count} pods"),
        None => format!("{own} wants a pod on each of its nodes, or more than one"),
    };
    let explanation = format!("{wanted}, but {held}");
    Some(Judgement { explanation, steps: steps(waiting, &changed) })
}

fn steps(waiting: &WaitingPod<'_>, changed: &Changed<'_>) -> Vec<SuggestedAction> {
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
    let mut steps = changed.ways_out(waiting, name, more);
    steps.extend(another_storage(waiting));
    steps
}
