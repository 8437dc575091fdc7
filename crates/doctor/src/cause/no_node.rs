//! No node that can reach the volume takes the pod.

use std::collections::BTreeSet;

use serde_json::json;

use super::changed::Changed;
use super::rollout_overlap::{resumed, revision, undo};
use super::{Judgement, NAMED, SuggestedAction, describe, owner, wanted};
use crate::health::Examined;
use crate::messages::{
    KEPT_APART, LIMIT_OF_NODES, NO_POD_TO_FOLLOW, NODE_CONFLICT, TAKEN_BY_ANOTHER_POD,
};
use crate::waiting_pod::WaitingPod;
use engine::analysis::eligibility::Eligibility;
use engine::model::Text;
use engine::model::live_pod::Pod;
use engine::model::node::{Node, NodeSelector};
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::pod::{HOSTNAME, PodTemplate};
use engine::model::selector::{Operator, Requirement};

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let others = [TAKEN_BY_ANOTHER_POD, LIMIT_OF_NODES];
    let is_it = waiting.pod.node.is_none()
        && waiting.is_said(NODE_CONFLICT)
        && !others.into_iter().any(|phrase| waiting.is_said(phrase));
    if !is_it {
        return None;
    }
    let keys: BTreeSet<&str> = waiting
        .used
        .reach
        .iter()
        .flat_map(|reach| &reach.node_selector_terms)
        .flat_map(|term| &term.match_expressions)
        .map(|requirement| requirement.key.as_str())
        .collect();
    let columns = Vec::from_iter(keys).join(",");
    if waiting.is_said(NO_POD_TO_FOLLOW) {
        return no_node_for_both(waiting, &columns);
    }
    let nodes = nodes_of(waiting);
    let name = match &waiting.used.reach {
        None => "no-node-unread",
        Some(_) if !nodes.is_empty() => "no-node-for-volume",
        Some(_) if waiting.used.keeps_its_node() => "no-machine-for-volume",
        Some(_) => "no-node-there",
    };
    let more = json!({
        "disk": disk(waiting),
        "place": waiting.used.reach.as_ref().map(place),
        "one-node": nodes.len() == 1,
        "some-nodes": nodes.iter().take(NAMED).collect::<Vec<_>>(),
        "number-of-nodes": (nodes.len() > NAMED).then_some(nodes.len()),
        "shut-out": shut_out(waiting),
        "columns": columns,
        "cordoned": cordoned(waiting),
    });
    let mut judgement = waiting.told(name, more);
    judgement.steps.extend(ways_out(waiting));
    Some(judgement)
}

/// The name of the volume, or of its claim.
fn disk<'a>(waiting: &'a WaitingPod<'_>) -> &'a str {
    waiting.volume.as_deref().unwrap_or(waiting.claim)
}

/// The pod must follow another one to where its volume cannot be used.
fn no_node_for_both(waiting: &WaitingPod<'_>, columns: &str) -> Option<Judgement> {
    let (pod, node, key) = followed_elsewhere(waiting)?;
    let more = json!({
        "columns": columns,
        "disk": disk(waiting),
        "place": place(waiting.used.reach.as_ref()?),
        "followed": describe(pod),
        "key": key,
        "there": node,
        "leader": owner(pod),
    });
    Some(Changed::behind(waiting.pod, waiting).told(waiting, "no-node-for-both", more))
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
    waiting.view().nodes(None).filter(move |node| reach.is_none_or(|reach| reach.matches(node)))
}

/// The first pod that the waiting pod must follow, its node, and the label of nodes by which the
/// two must agree, if none of those that the pod may follow is where the volume is.
fn followed_elsewhere<'a>(waiting: &'a WaitingPod<'_>) -> Option<(&'a Pod, &'a Text, &'a Text)> {
    let facts = waiting.index.facts;
    waiting.pod.template.affinity.iter().find_map(|term| {
        let selector = term.label_selector.as_ref()?;
        let domain = |node: &'a Node| node.metadata.labels.get(&term.topology_key);
        let there: Vec<&str> = within_reach(waiting).filter_map(domain).collect();
        let followed = facts.observed.pods.iter().filter(|other| {
            other.is_living()
                && other.meta.namespace == waiting.pod.meta.namespace
                && selector.matches(&other.meta.labels)
        });
        let mut elsewhere = None;
        for pod in followed {
            let node = facts.objects.view.node(pod.node.as_deref()?).found()?;
            if domain(node).is_some_and(|value| there.contains(&value)) {
                return None;
            }
            elsewhere = elsewhere.or(Some((pod, &node.metadata.name, &term.topology_key)));
        }
        elsewhere
    })
}

/// Whether a template admits none of the nodes that can reach the volume.
fn excludes_all(template: &PodTemplate, waiting: &WaitingPod<'_>) -> bool {
    let eligibility = Eligibility::new(template, [], waiting.index.facts.objects);
    let mut nodes = within_reach(waiting).peekable();
    nodes.peek().is_some() && !nodes.any(|node| eligibility.admits(node))
}

/// Whether the template of the pod, or the template of its workload now, keeps it off.
fn shut_out(waiting: &WaitingPod<'_>) -> bool {
    excludes_all(&waiting.pod.template, waiting) || is_put_right(waiting) == Some(false)
}

/// Whether the workload has been put right since it made the pod, if it is known.
fn is_put_right(waiting: &WaitingPod<'_>) -> Option<bool> {
    waiting.workload().map(|workload| !excludes_all(&workload.template, waiting))
}

/// The ReplicaSets of a Deployment that was not put right and whose templates are right: `rollout
/// undo` to any other revision does not help.
pub(super) fn right_revisions(waiting: &WaitingPod<'_>) -> impl Iterator<Item = ObjectRef> {
    waiting
        .workload()
        .filter(|_| is_put_right(waiting) == Some(false))
        .into_iter()
        .flat_map(|workload| waiting.revisions_of(workload))
        .filter(|set| !excludes_all(&set.template, waiting))
        .map(|set| wanted(ObjectKind::Workload(set.kind), &set.metadata))
}

/// The newest of them.
fn right_revision(waiting: &WaitingPod<'_>) -> Option<ObjectRef> {
    right_revisions(waiting).max_by_key(|set| revision(waiting, set))
}

/// The rules that keep pods apart and hold the pod off.
fn rules_apart<'a>(waiting: &WaitingPod<'a>) -> BTreeSet<&'a str> {
    let PodTemplate { anti_affinity, spread, .. } = &waiting.pod.template;
    let hard = spread.iter().filter(|constraint| !constraint.is_soft);
    anti_affinity
        .iter()
        .map(|term| term.topology_key.as_str())
        .chain(hard.map(|constraint| constraint.topology_key.as_str()))
        .filter(|_| waiting.is_said(KEPT_APART))
        .collect()
}

fn ways_out(waiting: &WaitingPod<'_>) -> Vec<SuggestedAction> {
    let changed = Changed::behind(waiting.pod, waiting);
    let keys = rules_apart(waiting);
    let keeps_its_node = waiting.used.keeps_its_node();
    let name = match (shut_out(waiting), keeps_its_node, nodes_of(waiting).is_empty()) {
        (true, ..) if is_put_right(waiting) == Some(true) => "template-is-right",
        (true, ..) => match right_revision(waiting) {
            Some(set) => {
                let which = "the newest revision that lets its pods be where the volume is";
                let cost = "All other changes since then are taken back too.";
                let ways = undo(waiting, &set, &changed, [which, cost]);
                return resumed(waiting, &changed, ways);
            }
            None => "template-keeps-off",
        },
        _ if !keys.is_empty() => "kept-apart",
        (_, true, false) => "machine-full",
        (_, true, true) => "machine-gone",
        (_, false, false) => "place-full",
        (_, false, true) => "place-empty",
    };
    let is_about_nodes = keys.iter().all(|key| *key == HOSTNAME);
    let more = json!({
        "where": "where the volume is",
        "keys": keys,
        "node-helps": is_about_nodes && !keeps_its_node,
    });
    changed.told(waiting, name, more).steps
}

/// A cordoned node that can reach the volume.
pub(super) fn cordoned<'a>(waiting: &'a WaitingPod<'_>) -> Option<&'a str> {
    nodes_of(waiting).into_iter().find(|name| Examined::of(waiting.index, name).cordoned)
}
