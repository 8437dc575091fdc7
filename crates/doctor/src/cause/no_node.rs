//! No node that can reach the volume takes the pod.

use std::collections::BTreeSet;

use serde_json::json;

use super::changed::Changed;
use super::{Judgement, NAMED, SuggestedAction, describe, owner, wanted};
use crate::messages::Statement;
use crate::waiting_pod::WaitingPod;
use engine::analysis::eligibility::Eligibility;
use engine::model::Text;
use engine::model::live_pod::Pod;
use engine::model::node::{Node, NodeSelector};
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::pod::{HOSTNAME, PodTemplate};
use engine::model::selector::{Operator, Requirement};

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let others = [Statement::TakenByAnotherPod, Statement::LimitOfNodes];
    let is_it = waiting.pod.node.is_none()
        && waiting.is_said(Statement::NodeConflict)
        && !others.into_iter().any(|statement| waiting.is_said(statement));
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
    if waiting.is_said(Statement::NoPodToFollow) {
        return waiting.no_node_for_both(&columns);
    }
    let nodes = waiting.nodes_of();
    let more = json!({
        "place": waiting.used.reach.as_ref().map(place),
        "on-one-machine": waiting.used.keeps_its_node(),
        "one-node": nodes.len() == 1,
        "some-nodes": nodes.iter().take(NAMED).collect::<Vec<_>>(),
        "number-of-nodes": (nodes.len() > NAMED).then_some(nodes.len()),
        "shut-out": waiting.shut_out(),
        "columns": columns,
        "cordoned": waiting.cordoned(),
    });
    let mut judgement = waiting.told("no-node-for-volume", more);
    judgement.steps.extend(waiting.ways_out());
    Some(judgement)
}

impl<'a> WaitingPod<'a> {
    /// The pod must follow another one to where its volume cannot be used.
    fn no_node_for_both(&self, columns: &str) -> Option<Judgement> {
        let (pod, node, key) = self.followed_elsewhere()?;
        let more = json!({
            "columns": columns,
            "place": place(self.used.reach.as_ref()?),
            "followed": describe(pod),
            "key": key,
            "there": node,
            "leader": owner(pod),
        });
        Some(Changed::behind(self.pod, self).told(self, "no-node-for-both", more))
    }

    /// Whether the template of the pod, or the template of its workload now, keeps it off.
    fn shut_out(&self) -> bool {
        self.excludes_all(&self.pod.template) || self.is_put_right() == Some(false)
    }

    /// Whether the workload has been put right since it made the pod, if it is known.
    fn is_put_right(&self) -> Option<bool> {
        self.workload().map(|workload| !self.excludes_all(&workload.template))
    }

    /// The ReplicaSets of a Deployment that was not put right and whose templates are right: `rollout
    /// undo` to any other revision does not help.
    pub(super) fn right_revisions(&self) -> impl Iterator<Item = ObjectRef> {
        self.workload()
            .filter(|_| self.is_put_right() == Some(false))
            .into_iter()
            .flat_map(|workload| self.revisions_of(workload))
            .filter(|set| !self.excludes_all(&set.template))
            .map(|set| wanted(ObjectKind::Workload(set.kind), &set.metadata))
    }

    /// The rules that keep pods apart and hold the pod off.
    fn rules_apart(&self) -> BTreeSet<&'a str> {
        let PodTemplate { anti_affinity, spread, .. } = &self.pod.template;
        let hard = spread.iter().filter(|constraint| !constraint.is_soft);
        anti_affinity
            .iter()
            .map(|term| term.topology_key.as_str())
            .chain(hard.map(|constraint| constraint.topology_key.as_str()))
            .filter(|_| self.is_said(Statement::KeptApart))
            .collect()
    }

    fn ways_out(&self) -> Vec<SuggestedAction> {
        let changed = Changed::behind(self.pod, self);
        let keys = self.rules_apart();
        let keeps_its_node = self.used.keeps_its_node();
        let is_off = self.shut_out();
        let name = match self.is_put_right() {
            _ if !is_off && keys.is_empty() => "make-room",
            _ if !is_off => "kept-apart",
            Some(true) => "template-is-right",
            _ => match self.right_revisions().max_by_key(|set| self.revision(set)) {
                Some(set) => return self.resumed(&changed, self.undo(&set, &changed, true)),
                None => "template-keeps-off",
            },
        };
        let is_about_nodes = keys.iter().all(|key| *key == HOSTNAME);
        let more = json!({
            "keys": keys,
            "node-helps": is_about_nodes && !keeps_its_node,
            "on-one-machine": keeps_its_node,
            "empty": self.nodes_of().is_empty(),
        });
        changed.told(self, name, more).steps
    }

    /// The names of the nodes that can reach the volume; all nodes if its reach is not limited.
    pub(super) fn nodes_of(&self) -> BTreeSet<&'a str> {
        self.within_reach().map(|node| node.metadata.name.as_str()).collect()
    }

    fn within_reach(&self) -> impl Iterator<Item = &'a Node> {
        let reach = self.used.reach.as_ref();
        self.view().nodes(None).filter(move |node| reach.is_none_or(|reach| reach.matches(node)))
    }

    /// The first pod that the waiting pod must follow, its node, and the label of nodes by which the
    /// two must agree, if none of those that the pod may follow is where the volume is.
    fn followed_elsewhere(&self) -> Option<(&'a Pod, &'a Text, &'a Text)> {
        let facts = self.index.facts;
        self.pod.template.affinity.iter().find_map(|term| {
            let selector = term.label_selector.as_ref()?;
            let domain = |node: &'a Node| node.metadata.labels.get(&term.topology_key);
            let there: Vec<&str> = self.within_reach().filter_map(domain).collect();
            let followed = facts.observed.pods.iter().filter(|other| {
                other.is_living()
                    && other.meta.namespace == self.pod.meta.namespace
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
    fn excludes_all(&self, template: &PodTemplate) -> bool {
        let eligibility = Eligibility::new(template, [], self.index.facts.objects);
        let mut nodes = self.within_reach().peekable();
        nodes.peek().is_some() && !nodes.any(|node| eligibility.admits(node))
    }

    /// A cordoned node that can reach the volume.
    pub(super) fn cordoned(&self) -> Option<&'a str> {
        self.nodes_of().into_iter().find(|name| self.examined(name).cordoned)
    }
}

/// A selector in words: `where topology.kubernetes.io/zone is a or b`.
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
    let terms = reach
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
        .collect::<Vec<_>>();
    format!("where {}", terms.join(", or "))
}
