//! The nodes to which a workload's pods can go.

use std::borrow::Cow;
use std::iter;

use hashbrown::HashSet;

use super::Facts;
use super::admission::Additions;
use super::volumes::UsedVolume;
use crate::model::Text;
use crate::model::node::{Node, NodeSelector, NodeSelectorTerm};
use crate::model::pod::{HOSTNAME, PodTemplate, TopologySpread};
use crate::model::selector::{Operator, Requirement};
use crate::model::workload::Workload;
use crate::snapshot::NodeHint;

/// Counting stops at this number.
pub(crate) const COUNTED: usize = 20;

/// With this many nodes, pods can be on different ones. Any further nodes are only reported.
const DECIDING: usize = 2;

/// The constraints on nodes: the pod's own and those of its volumes.
pub struct Eligibility<'a> {
    template: &'a PodTemplate,
    reach: Vec<&'a NodeSelector>,
    /// The constraints that admission adds to the template.
    additions: Additions<'a>,
    /// Whether several nodes list the devices that the pods request: then a node that lists none
    /// has none.
    devices_are_listed: bool,
    /// The drivers without which no node takes the pods.
    drivers: Vec<&'a str>,
    /// The cost of a comparison with each node, in steps.
    weight: usize,
    facts: Facts<'a>,
}

impl<'a> Eligibility<'a> {
    /// The constraints of the workload's pods as they are admitted, and of volumes that only
    /// some nodes reach.
    pub(crate) fn of(
        workload: &'a Workload,
        reach: impl IntoIterator<Item = &'a NodeSelector>,
        facts: Facts<'a>,
    ) -> Self {
        Self {
            additions: Additions::of(workload, facts),
            devices_are_listed: lists_devices(&workload.template, facts),
            ..Self::new(&workload.template, reach, facts)
        }
    }

    /// Adds the tolerations that the admission plugin `ExtendedResourceToleration` adds to pods:
    /// for taints named like an extended resource that the pods request. Some clouds run the
    /// plugin, and no object shows it.
    pub(super) fn tolerate_own_resources(&mut self) {
        self.additions.tolerate(&self.template.extended_resources);
    }

    /// The constraints of `template`, and of volumes that only some nodes reach.
    pub fn new(
        template: &'a PodTemplate,
        reach: impl IntoIterator<Item = &'a NodeSelector>,
        facts: Facts<'a>,
    ) -> Self {
        let reach: Vec<_> = reach.into_iter().collect();
        let selectors = reach.iter().copied().chain(&template.node_affinity);
        Self {
            template,
            weight: selectors.map(weight).sum::<usize>()
                + (template.tolerations.len() + template.affinity.len() + template.spread.len())
                    / 4,
            reach,
            additions: Additions::default(),
            devices_are_listed: false,
            drivers: Vec::new(),
            facts,
        }
    }

    /// These constraints on nodes that also have the drivers of the volumes. Only drivers count for
    /// which the scheduler checks that (`checkCSIDriverOnNode` in
    /// `plugins/nodevolumelimits/csi.go`); it never sees a pod with `nodeName`.
    pub(crate) fn with_drivers_of(mut self, volumes: &'a [UsedVolume]) -> Self {
        if self.template.node_name.is_none() {
            self.drivers = volumes
                .iter()
                .map(|volume| volume.driver.as_str())
                .filter(|name| {
                    !name.is_empty()
                        && self
                            .facts
                            .view
                            .csi_driver(name)
                            .found()
                            .is_some_and(|driver| driver.spec.prevent_pod_scheduling_if_missing)
                })
                .collect();
        }
        self
    }

    /// Records that the judgement depends on a node, and on its drivers if they decide.
    fn depends_on(&self, node: &Node) {
        self.facts.view.depends_on_node(node);
        if !self.drivers.is_empty() {
            self.facts.view.depends_on_drivers(&node.metadata.name);
        }
    }

    /// Whether the pod's own selector and affinity choose `node`, whatever its taints and the
    /// volumes.
    pub(crate) fn selects(&self, node: &Node) -> bool {
        self.template.node_selector.is_subset(&node.metadata.labels)
            && self.additions.select(node)
            && self.template.node_affinity.as_ref().is_none_or(|selector| selector.matches(node))
    }

    /// Whether `node` has the topology labels of the pods' required affinity and hard spreads. No
    /// pod can go to a node without them (`satisfyPodAffinity` in
    /// `plugins/interpodaffinity/filtering.go`, `Filter` in
    /// `plugins/podtopologyspread/filtering.go`). Only the scheduler evaluates these, and it never
    /// sees a pod with `nodeName`.
    fn has_places(&self, node: &Node) -> bool {
        let template = self.template;
        let has = |key: &Text| node.metadata.labels.get(key).is_some();
        template.node_name.is_some()
            || (template.affinity.iter().all(|term| has(&term.topology_key))
                && has_places_of_spreads(template, node))
    }

    /// Whether pods can go to `node`. Cordons and pressure do not count, because they are
    /// temporary.
    pub fn admits(&self, node: &Node) -> bool {
        let template = self.template;
        let lacks = |driver: &&str| self.facts.view.lacks_driver(&node.metadata.name, driver);
        template.node_name.as_ref().is_none_or(|name| *name == node.metadata.name)
            && self.selects(node)
            && self.reach.iter().all(|selector| selector.matches(node))
            && self.has_places(node)
            && node.has(&template.extended_resources).unwrap_or(!self.devices_are_listed)
            && self.tolerates_taints(node)
            && !self.drivers.iter().any(lacks)
    }

    fn tolerates_taints(&self, node: &Node) -> bool {
        node.admits(&self.template.tolerations.iter().chain(self.additions.tolerations()))
    }

    /// The eligible nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &'a Node> {
        self.near(self.hint())
            .filter(|node| self.admits(node))
            .inspect(|node| self.depends_on(node))
    }

    /// The nodes that `spread` counts. By default these are the nodes that the pod's own selector
    /// and affinity choose, whatever their taints: a place to which no pod may go still counts, as
    /// an empty one. A node that lacks the label of any hard spread does not count (Kubernetes
    /// `pkg/scheduler/framework/plugins/podtopologyspread/common.go`, `filtering.go`).
    pub(crate) fn counted(&self, spread: &TopologySpread) -> impl Iterator<Item = &'a Node> {
        let counts = |node: &&Node| {
            has_places_of_spreads(self.template, node)
                && (spread.ignores_affinity || self.selects(node))
                && (!spread.honours_taints || self.tolerates_taints(node))
        };
        let hint = self.hint().filter(|_| !spread.ignores_affinity);
        self.near(hint).filter(counts).inspect(|node| self.facts.view.depends_on_node(node))
    }

    /// The nodes that have one of the label pairs. At their end, the judgement depends on the
    /// absence of others.
    fn near(&self, hint: Option<NodeHint<'a>>) -> impl Iterator<Item = &'a Node> {
        let view = self.facts.view;
        let nodes = view.nodes(hint.clone());
        let end = iter::from_fn(move || {
            view.depends_on_nodes(hint.clone());
            None
        });
        nodes.chain(end).take_while(move |_| view.spend(self.weight))
    }

    /// The number of eligible nodes, at most `COUNTED`; `None` if no node is known.
    pub fn count(&self) -> Option<usize> {
        let (hint, view) = (self.hint(), self.facts.view);
        let eligible = view
            .nodes(hint.clone())
            .take_while(|_| view.spend(self.weight))
            .filter(|node| self.admits(node));
        let mut count = 0;
        for node in eligible.take(COUNTED) {
            count += 1;
            if count <= DECIDING {
                self.depends_on(node);
            }
        }
        if count < DECIDING {
            view.depends_on_nodes(hint);
        }
        view.knows_nodes().then_some(count)
    }

    /// The name of an eligible node.
    pub fn first(&self) -> Option<Text> {
        let node = self.nodes().next()?;
        Some(node.metadata.name.clone())
    }

    /// Whether the eligible nodes are known, and no two of them have the same value of the label
    /// `key`, so that one value means one node.
    pub(crate) fn is_one_for_each(&self, key: &str) -> bool {
        let mut values = HashSet::new();
        let are_distinct = self.nodes().all(|node| {
            let value = node.metadata.labels.get(key);
            values.len() < COUNTED && value.is_some_and(|value| values.insert(value))
        });
        are_distinct && self.facts.view.knows_nodes()
    }

    /// The one node that the constraints name, whatever nodes there are.
    pub(crate) fn named_node(&self) -> Option<&str> {
        let template = self.template;
        template
            .node_name
            .as_deref()
            .or_else(|| template.node_selector.get(HOSTNAME))
            .or_else(|| self.additions.host())
            .or_else(|| template.node_affinity.as_ref().and_then(only_host))
            .or_else(|| self.reach.iter().find_map(|selector| only_host(selector)))
    }

    /// The narrowest known hint that every eligible node fits.
    fn hint(&self) -> Option<NodeHint<'a>> {
        let template = self.template;
        if let Some(host) = template.node_selector.get(HOSTNAME) {
            return Some(NodeHint::one(HOSTNAME, host));
        }
        if let Some(name) = template.node_name.as_deref() {
            return Some(NodeHint::one("metadata.name", name));
        }
        self.reach
            .iter()
            .copied()
            .chain(&template.node_affinity)
            .filter_map(only_values)
            .min_by_key(|hint| hint.values.len())
            .or_else(|| {
                let (key, value) = template.node_selector.iter().next()?;
                Some(NodeHint::one(key, value))
            })
    }
}

/// A label of nodes that Karpenter creates when a pod needs one, and of the kind it needs.
const MADE_ON_DEMAND: &str = "karpenter.sh/nodepool";

/// Whether nodes are created when pods need them, so that the known ones are not all.
pub(crate) fn is_elastic(facts: Facts<'_>) -> bool {
    facts.view.nodes(None).any(|node| node.metadata.labels.get(MADE_ON_DEMAND).is_some())
}

/// Whether several nodes are known to have the resources that the pods request.
fn lists_devices(template: &PodTemplate, facts: Facts<'_>) -> bool {
    let requests = &template.extended_resources;
    let listed = facts
        .view
        .nodes(None)
        .take_while(|_| facts.view.spend(1))
        .filter(|node| node.has(requests) == Some(true));
    !requests.is_empty() && listed.take(DECIDING).count() == DECIDING
}

/// Whether the node has the labels of all hard spreads.
fn has_places_of_spreads(template: &PodTemplate, node: &Node) -> bool {
    template
        .spread
        .iter()
        .filter(|spread| !spread.is_soft)
        .all(|spread| node.metadata.labels.get(&spread.topology_key).is_some())
}

/// The cost of a comparison of a node with the selector, in steps.
fn weight(selector: &NodeSelector) -> usize {
    selector
        .node_selector_terms
        .iter()
        .flat_map(NodeSelectorTerm::requirements)
        .map(|requirement| 1 + requirement.values.len() / 4)
        .sum()
}

/// The key and values of a selector whose single term demands one of them.
fn only_values(selector: &NodeSelector) -> Option<NodeHint<'_>> {
    let mut terms = selector.terms_that_match();
    let (Some(term), None) = (terms.next(), terms.next()) else {
        return None;
    };
    term.match_fields
        .iter()
        .chain(&term.match_expressions)
        .filter(|requirement| requirement.operator == Operator::In)
        .min_by_key(|requirement| requirement.values.len())
        .map(|requirement| NodeHint {
            key: &requirement.key,
            values: Cow::Borrowed(&requirement.values),
        })
}

/// The host to which every term of the selector leads, except terms that match nothing.
pub(crate) fn only_host(selector: &NodeSelector) -> Option<&str> {
    let is_host = |requirement: &&Requirement| {
        requirement.operator == Operator::In
            && requirement.values.len() == 1
            && (requirement.key == HOSTNAME || requirement.key == "metadata.name")
    };
    let mut hosts = selector.terms_that_match().map(|term| {
        let host = term.requirements().find(is_host)?.values.first()?;
        Some(host.as_str())
    });
    let first = hosts.next()??;
    hosts.all(|host| host == Some(first)).then_some(first)
}
