//! No node that can reach the volume takes the pod.

use std::collections::BTreeSet;

use super::changed::{self, Changed};
use super::rollout_overlap::{resume_first, revision, undo};
use super::{Judgement, SuggestedAction, delete_unready, describe, wanted};
use crate::diagnosis::health::Examined;
use crate::diagnosis::messages::{
    KEPT_APART, LIMIT_OF_NODES, NO_POD_TO_FOLLOW, NODE_CONFLICT, TAKEN_BY_ANOTHER_POD,
};
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::analysis::eligibility::Eligibility;
use engine::model::live_pod::Pod;
use engine::model::node::{Node, NodeSelector};
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::pod::{HOSTNAME, PodTemplate};
use engine::model::selector::{Operator, Requirement};
use engine::model::workload::WorkloadKind;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    Some(Judgement { explanation: explanation(waiting)?, steps: steps(waiting) })
}

/// The largest number of nodes that a message names.
pub(in crate::diagnosis) const NAMED: usize = 5;

fn explanation(waiting: &WaitingPod<'_>) -> Option<String> {
    let others = [TAKEN_BY_ANOTHER_POD, LIMIT_OF_NODES];
    let is_it = waiting.pod.node.is_none()
        && waiting.is_said(NODE_CONFLICT)
        && !others.into_iter().any(|phrase| waiting.is_said(phrase));
    if !is_it {
        return None;
    }
    let pod = &waiting.pod.meta.name;
    let volume = waiting.volume.as_deref().unwrap_or(waiting.claim);
    if waiting.is_said(NO_POD_TO_FOLLOW) {
        let Followed { pod: followed, node, key } = followed_elsewhere(waiting)?;
        return Some(format!(
            "Volume {volume} can be used only where {}, and a volume does not move. But by its affinity pod {pod} must be where {} is ({key}), and that is on node {node}, elsewhere. No node can be both.",
            place(waiting.used.reach.as_ref()?),
            describe(followed),
        ));
    }
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

/// A pod that the waiting pod must follow, and that is where the volume cannot be used.
struct Followed<'a> {
    pod: &'a Pod,
    node: &'a str,
    /// The label of nodes by which the two must agree.
    key: &'a str,
}

/// The first followed pod, if none of those that the pod may follow is where the volume is.
fn followed_elsewhere<'a>(waiting: &'a WaitingPod<'_>) -> Option<Followed<'a>> {
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
            elsewhere = elsewhere.or(Some(Followed {
                pod,
                node: &node.metadata.name,
                key: &term.topology_key,
            }));
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
    excludes_all(&waiting.pod.template, waiting)
        || waiting.workload().is_some_and(|workload| excludes_all(&workload.template, waiting))
}

/// Whether the workload has been put right since it made the pod.
fn is_put_right(waiting: &WaitingPod<'_>) -> bool {
    waiting.workload().is_some_and(|workload| !excludes_all(&workload.template, waiting))
}

/// The ReplicaSets of a Deployment that was not put right and whose templates are right: `rollout
/// undo` to any other revision does not help.
pub(super) fn right_revisions(waiting: &WaitingPod<'_>) -> impl Iterator<Item = ObjectRef> {
    waiting
        .workload()
        .filter(|workload| excludes_all(&workload.template, waiting))
        .into_iter()
        .flat_map(|workload| waiting.view().revisions_using(&workload.metadata, waiting.claim))
        .filter(|set| !excludes_all(&set.template, waiting))
        .map(|set| wanted(ObjectKind::Workload(set.kind), &set.metadata))
}

/// The newest of them.
fn right_revision(waiting: &WaitingPod<'_>) -> Option<ObjectRef> {
    right_revisions(waiting).max_by_key(|set| revision(waiting, set))
}

/// The note on a rule that keeps pods apart, if it holds the pod off. Another node helps only
/// against a rule about nodes, and only if the volume can be used there.
fn kept_apart(waiting: &WaitingPod<'_>) -> Option<SuggestedAction> {
    let PodTemplate { anti_affinity, spread, .. } = &waiting.pod.template;
    let hard = spread.iter().filter(|constraint| !constraint.is_soft);
    let keys: BTreeSet<&str> = anti_affinity
        .iter()
        .map(|term| term.topology_key.as_str())
        .chain(hard.map(|constraint| constraint.topology_key.as_str()))
        .collect();
    if !waiting.is_said(KEPT_APART) || keys.is_empty() {
        return None;
    }
    let is_about_nodes = keys.iter().all(|key| *key == HOSTNAME);
    let node = if is_about_nodes && !waiting.used.keeps_its_node() {
        "Another node there helps"
    } else {
        "Another node there does not help"
    };
    Some(SuggestedAction::note(&format!(
        "A rule of the pod that keeps pods apart ({}) holds it off where its volume is. {node}. Make the rule a preference (preferredDuringSchedulingIgnoredDuringExecution, whenUnsatisfiable: ScheduleAnyway), or give one of the pods a volume elsewhere.",
        Vec::from_iter(keys).join(", ")
    )))
}

/// The step for a pod that was made before its workload was put right. Only a StatefulSet does not
/// replace such a pod.
fn made_before(waiting: &WaitingPod<'_>, changed: &Changed<'_>) -> SuggestedAction {
    let name = &changed.display_name;
    if changed.kind == Some(WorkloadKind::StatefulSet) {
        SuggestedAction::way_out(
            waiting.delete(waiting.pod),
            &format!(
                "Nothing is lost, as the pod never started. The template of {name} is right by now, and the next pod is made from it; but a StatefulSet does not replace a pod that is not ready."
            ),
        )
    } else {
        SuggestedAction::note(&format!(
            "The template of {name} is right by now, and its controller replaces this pod."
        ))
    }
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
    if waiting.is_said(NO_POD_TO_FOLLOW) {
        steps.extend(followed_elsewhere(waiting).map(|Followed { pod, .. }| {
            let (kind, name) = pod.workload();
            SuggestedAction::note(&format!(
                "Have {kind} {name} run where the volume is: a nodeSelector for that place in its template moves its pod there, and pod {} follows. Or make the affinity of {} a preference. To uncordon or to add a node does not help.",
                waiting.pod.meta.name,
                Changed::behind(waiting.pod, waiting).display_name
            ))
        }));
        return steps;
    }
    steps.extend(uncordon(waiting));
    let changed = Changed::behind(waiting.pod, waiting);
    if shut_out(waiting) {
        if is_put_right(waiting) {
            steps.push(made_before(waiting, &changed));
        } else if let Some(set) = right_revision(waiting) {
            let which = "the newest revision that lets its pods be where the volume is";
            let cost = "All other changes since then are taken back too.";
            let way = undo(waiting, &set, &changed, [which, cost]);
            let mut back = changed::with_delivery_steps(waiting, vec![way]);
            resume_first(waiting, &changed, &mut back);
            steps.extend(back);
        } else {
            steps.push(SuggestedAction::note(&format!(
                "Change the nodeSelector, the node affinity or the tolerations of {} so that its pods may be where the volume is.",
                changed.display_name
            )));
            steps.extend(delete_unready(waiting));
        }
        return steps;
    }
    if let Some(note) = kept_apart(waiting) {
        steps.push(note);
        steps.extend(delete_unready(waiting));
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
