//! A workload runs more pods than its volume allows.

use serde_json::json;

use super::changed::Changed;
use super::{Judgement, describe, is_made_again, owner};
use crate::told::merged;
use crate::waiting_pod::WaitingPod;
use engine::model::workload::WorkloadKind;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let other = waiting.siblings().next()?;
    let changed = Changed::behind(waiting.pod, waiting);
    // The behaviour of an owner whose kind is not known is not known either. If the other pod ends
    // by itself, the wait does too.
    let is_unknown = !is_made_again(waiting.pod) && !changed.scales();
    if is_unknown && other.template.ends {
        return None;
    }
    let name = match changed.kind {
        _ if is_unknown => "pods-of-unknown",
        _ if changed.scales() => "too-many-replicas",
        Some(WorkloadKind::Job | WorkloadKind::CronJob) => "too-many-of-job",
        Some(WorkloadKind::DaemonSet) => "too-many-of-daemon-set",
        _ => "too-many-of-others",
    };
    let replicas = waiting.workload().map(|workload| workload.replicas);
    let attached = waiting.foreign_attachments().map(|attachment| attachment.node.clone());
    let more = json!({
        "workload": owner(waiting.pod),
        "count": replicas.filter(|count| *count > 1),
        "holder": describe(other),
        "holder-node": other.node,
        "job": WaitingPod::target_of(waiting.pod),
        "cron-job": (changed.kind == Some(WorkloadKind::CronJob)).then_some(&changed.name),
        "there": attached.chain(waiting.holding_nodes()).next(),
    });
    Some(changed.judged(waiting, name, merged(more, waiting.to_one())))
}
