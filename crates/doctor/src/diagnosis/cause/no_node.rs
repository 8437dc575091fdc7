//! No node that can reach the volume takes the pod.

use std::collections::BTreeSet;

use super::changed::{self, Changed};
use super::{Judgement, SuggestedAction};
use crate::diagnosis::health::Examined;
use crate::diagnosis::messages::{
    LIMIT_OF_NODES, NO_POD_TO_FOLLOW, NODE_CONFLICT, TAKEN_BY_ANOTHER_POD,
};
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::analysis::eligibility::Eligibility;
use engine::model::node::{Node, NodeSelector};
use engine::model::selector::{Operator, Requirement};
use engine::model::workload::WorkloadKind;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    Some(Judgement { explanation: explanation(waiting)?, steps: steps(waiting) })
}

/// The largest number of nodes that a message names.
pub(super) const NAMED: usize = 5;

fn explanation(waiting: &WaitingPod<'_>) -> Option<String> {
    let others = [TAKEN_BY_ANOTHER_POD, NO_POD_TO_FOLLOW, LIMIT_OF_NODES];
    let is_it = waiting.pod.node.is_none()
        && waiting.is_said(NODE_CONFLICT)
        && !others.into_iter().any(|phrase| waiting.is_said(phrase));
    if !is_it {
        return None;
    }
    let pod = &waiting.pod.meta.name;
    let volume = waiting.volume.as_deref().unwrap_or(waiting.claim);
    let Some(reach) = &waiting.used.reach else {
        return Some(format!(
            "Pod {pod} has no node: its volume can be reached from some nodes only, and none of those takes the pod. Which ones could not be read."
        ));
    };
    let nodes = nodes_of(waiting);
    let there = if nodes.is_empty() {
        "The cluster has no node there.".to_owned()
    } else {
        format!(
            "There {}, and {} the pod.{}",
            listed(&nodes),
            if nodes.len() == 1 { "it does not take" } else { "none of them takes" },
            if shut_out(waiting) {
                " Its own template keeps it off: nodeSelector, node affinity or missing tolerations."
            } else {
                ""
            }
        )
    };
    if nodes.is_empty() && waiting.used.keeps_its_node() {
        return Some(format!(
            "The data of volume {volume} is on one machine, where {}, and the cluster has no such node.",
            place(reach)
        ));
    }
    Some(format!(
        "Volume {volume} can be used only where {}, and a volume does not move. {there}",
        place(reach)
    ))
}

fn listed(nodes: &BTreeSet<&str>) -> String {
    let names = nodes.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match nodes.len() {
        1 => format!("is node {names}"),
        ..=NAMED => format!("are nodes {names}"),
        more => format!("are {more} nodes, {names} among them"),
    }
}

/// A selector in words: `topology.kubernetes.io/zone is a or b`.
fn place(reach: &NodeSelector) -> String {
    let in_words = |requirement: &Requirement| {
        let key = &requirement.key;
        let values =
            requirement.values.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(" or ");
        match requirement.operator {
            Operator::In => format!("{key} is {values}"),
            Operator::NotIn => format!("{key} is not {values}"),
            Operator::Exists => format!("{key} is set"),
            Operator::DoesNotExist => format!("{key} is not set"),
            _ => format!("{key} compares to {values}"),
        }
    };
    reach
        .node_selector_terms
        .iter()
        .map(|term| {
            term.match_expressions
                .iter()
                .chain(&term.match_fields)
                .map(in_words)
                .collect::<Vec<_>>()
                .join(" and ")
        })
        .collect::<Vec<_>>()
        .join(", or ")
}

/// The names of the nodes that can reach the volume; all nodes if its reach is not limited.
pub(super) fn nodes_of<'a>(waiting: &'a WaitingPod<'_>) -> BTreeSet<&'a str> {
    within_reach(waiting).map(|node| node.metadata.name.as_str()).collect()
}

fn within_reach<'a>(waiting: &'a WaitingPod<'_>) -> impl Iterator<Item = &'a Node> {
    let reach = waiting.used.reach.as_ref();
    waiting
        .index
        .facts
        .objects
        .view
        .nodes(None)
        .filter(move |node| reach.is_none_or(|reach| reach.matches(node)))
}

/// Whether the template of the pod's workload admits none of the nodes that can reach the volume.
fn shut_out(waiting: &WaitingPod<'_>) -> bool {
    let Some(workload) = waiting.workload() else {
        return false;
    };
    let eligibility = Eligibility::new(&workload.template, [], waiting.index.facts.objects);
    let mut nodes = within_reach(waiting).peekable();
    nodes.peek().is_some() && !nodes.any(|node| eligibility.admits(node))
}

fn steps(waiting: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    let keys: BTreeSet<&str> = waiting
        .used
        .reach
        .iter()
        .flat_map(|reach| &reach.node_selector_terms)
        .flat_map(|term| &term.match_expressions)
        .map(|requirement| requirement.key.as_str())
        .collect();
    let columns = Vec::from_iter(keys).join(",");
    let look = match columns.as_str() {
        "" => vec!["get", "nodes"],
        columns => vec!["get", "nodes", "-L", columns],
    };
    let mut steps = vec![SuggestedAction::check(
        waiting.kubectl(&look),
        "Nothing. It shows where each node is.",
    )];
    steps.extend(uncordon(waiting));
    let changed = Changed::behind(waiting.pod, waiting);
    if shut_out(waiting) {
        if changed.kind == Some(WorkloadKind::Deployment) {
            let way = changed.change(
                waiting.in_namespace(&["rollout", "undo", &changed.name]),
                "The Deployment is taken back to the revision before. That helps where the last change moved its pods; otherwise change where its template lets them go.",
            );
            steps.extend(changed::with_delivery_steps(waiting, vec![way]));
        } else {
            steps.push(SuggestedAction::note(&format!(
                "Change the nodeSelector, the node affinity or the tolerations of {} so that its pods may be where the volume is.",
                changed.display_name
            )));
        }
        return steps;
    }
    let has_nodes = !nodes_of(waiting).is_empty();
    steps.push(match (waiting.used.keeps_its_node(), has_nodes) {
        (true, true) => SuggestedAction::note(
            "Make room on that machine: no other node can have this data. The scheduler's words above say why the pod cannot be there.",
        ),
        (true, false) => SuggestedAction::note(&format!(
            "Bring back that very machine: no other node can have this data. Where the data is elsewhere too, in a replica or a backup, delete claim {} and then the pod: whoever makes the claim makes an empty one, which a replica or a restored backup fills.",
            waiting.claim
        )),
        (false, true) => SuggestedAction::note(
            "Make room on one of these nodes, or add a node there: the scheduler's words above say why the pod cannot be on each.",
        ),
        (false, false) => SuggestedAction::note(
            "Add a node there: scale up the node group of that zone or pool. If that is not possible, restore a snapshot or a backup into a new claim where the nodes are.",
        ),
    });
    steps
}

/// The command that uncordons a node that can reach the volume.
pub(super) fn uncordon(waiting: &WaitingPod<'_>) -> Option<SuggestedAction> {
    let cordoned =
        nodes_of(waiting).into_iter().find(|name| Examined::of(waiting.index, name).cordoned)?;
    Some(SuggestedAction::way_out(
        waiting.kubectl(&["uncordon", cordoned]),
        "Nothing stops. The node takes new pods again; whoever cordoned it may have had a reason.",
    ))
}
