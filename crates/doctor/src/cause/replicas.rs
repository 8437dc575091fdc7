//! A workload runs more pods than its volume allows.

use serde_json::json;

use super::changed::Changed;
use super::{Judgement, maker};
use crate::told::merged;
use crate::waiting_pod::WaitingPod;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let other = waiting.siblings().next()?;
    let changed = Changed::behind(waiting.pod, waiting);
    // The behaviour of an owner whose kind is not known is not known either. If the other pod ends
    // by itself, the wait does too.
    if maker(waiting.pod).is_none() && !changed.scales() && other.template.ends {
        return None;
    }
    let replicas = waiting.workload().map(|workload| workload.replicas);
    let attached = waiting.foreign_attachments().map(|attachment| attachment.node.clone());
    let more = json!({
        "count": replicas.filter(|count| *count > 1),
        "there": attached.chain(waiting.holding_nodes()).next(),
    });
    Some(changed.judged(waiting, "too-many-replicas", merged(more, waiting.to_one(other))))
}
