//! The pod must run on the node of another pod, and that node takes no new pods.
//!
//! Without the other pod, no node would suit either: only a pod that matches its own affinity may
//! be the first of such pods (`satisfyPodAffinity` in `plugins/interpodaffinity`).

use serde_json::json;

use super::changed::Changed;
use super::{Admits, Judgement, SuggestedAction, describe, kind_of, owner};
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
    let admits = Admits::of(waiting.workload(), other.node.as_deref(), waiting);
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
        "admitted": admits == Admits::Yes,
        "unselected": admits == Admits::WithoutSelector,
        "node-cordoned": node.cordoned,
    });
    let told = waiting.told("follower", more);
    let steps = [waiting.off(admits, &node.name), told.steps].concat();
    Some(Judgement { steps, ..told })
}

impl WaitingPod<'_> {
    /// The steps that let the pod run on a node that its own template excludes.
    fn off(&self, admits: Admits, node: &str) -> Vec<SuggestedAction> {
        let own = Changed::behind(self.pod, self);
        let name = match (admits, own.kind) {
            (Admits::Yes, _) => return Vec::new(),
            (Admits::WithoutSelector, Some(WorkloadKind::Deployment)) => "nodeselector-keeps-off",
            _ => "template-keeps-off",
        };
        own.judged(self, name, json!({"there": node, "where": format!("on node {node}")})).steps
    }
}
