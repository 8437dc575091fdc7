//! The pod must run on the node of another pod, and that node takes no new pods.
//!
//! Without the other pod, no node would suit either: only a pod that matches its own affinity may
//! be the first of such pods (`satisfyPodAffinity` in `plugins/interpodaffinity`).

use serde_json::json;

use super::changed::Changed;
use super::{Judgement, describe, kind_of, owner};
use crate::messages::Statement;
use crate::waiting_pod::WaitingPod;
use engine::model::workload::WorkloadKind;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    if waiting.pod.node.is_some()
        || !waiting.is_said(Statement::NoPodToFollow)
        || waiting.matches_itself()
    {
        return None;
    }
    let other = waiting.other_workload()?;
    let node = waiting.examined(other.node.as_ref()?);
    let own = Changed::behind(waiting.pod, waiting);
    let (admitted, freed) = waiting.admits(waiting.workload(), other);
    let unselected = freed && !admitted;
    let selector = waiting
        .workload()
        .into_iter()
        .flat_map(|workload| workload.template.node_selector.iter())
        .map(|(key, value)| format!("{key}={value}"));
    let more = json!({
        "other": describe(other),
        "there": node.name,
        "selector": selector.collect::<Vec<_>>().join(","),
        "leader": owner(other),
        "leader-pod": other.meta.name,
        "leader-moves": waiting.may_move(kind_of(other)),
        "admitted": admitted,
        "unselected": unselected,
        "node-cordoned": node.cordoned,
    });
    let is_patched = unselected && own.kind == Some(WorkloadKind::Deployment);
    let name = if is_patched { "nodeselector-keeps-off" } else { "template-keeps-off" };
    let off = own.judged(waiting, name, more.clone());
    let told = waiting.told("follower", more);
    Some(Judgement { steps: [off.steps, told.steps].concat(), ..told })
}
