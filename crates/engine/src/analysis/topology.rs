//! The nodes that can reach a volume.

use super::Facts;
use crate::model::Text;
use crate::model::node::{NodeSelector, NodeSelectorTerm};
use crate::model::selector::{Operator, Requirement};
use crate::model::volume::{Volume, VolumeSource};
use crate::model::workload::Workload;

/// A claim, and the nodes that its bound volume is limited to.
pub(crate) struct Limited {
    pub claim: Text,
    pub reach: NodeSelector,
}

impl Limited {
    /// The claim of the workload's pods; `None` if it has no bound volume, or one that every node
    /// can reach.
    pub(crate) fn of(claim: &str, workload: &Workload, facts: Facts<'_>) -> Option<Self> {
        let volume = facts.view.bound_volume(&workload.metadata.namespace, claim)?;
        Some(Self { claim: claim.into(), reach: reach(volume)? })
    }
}

/// The nodes that can reach the volume; `None` if all can. They are limited by its node affinity,
/// and by the zone and region in its labels, which the scheduler compares with those of nodes that
/// have any (`plugins/volumezone/volume_zone.go`; zones are joined by `__`). An in-tree volume's
/// affinity may use labels from before Kubernetes 1.17, which the scheduler translates
/// (`csi-translation-lib`); nodes have both.
pub fn reach(volume: &Volume) -> Option<NodeSelector> {
    let mut reach = volume.spec.node_affinity.clone();
    if matches!(volume.spec.source, VolumeSource::InTree(_)) {
        let terms = reach.iter_mut().flat_map(|reach| reach.node_selector_terms.iter_mut());
        for requirement in terms.flat_map(|term| term.match_expressions.iter_mut()) {
            requirement.key = Text::from(today(&requirement.key));
        }
    }
    let keys = TOPOLOGY.iter().flatten();
    let place: Vec<Requirement> = keys
        .clone()
        .filter_map(|key| {
            let values = volume.metadata.labels.get(key)?;
            Some(Requirement {
                key: today(key).into(),
                operator: Operator::In,
                values: values.split("__").map(Text::from).collect(),
            })
        })
        .collect();
    if place.is_empty() {
        return reach;
    }
    let nowhere: Vec<Requirement> = keys
        .map(|key| Requirement {
            key: (*key).into(),
            operator: Operator::DoesNotExist,
            values: Box::default(),
        })
        .collect();
    let terms: Box<[NodeSelectorTerm]> = match reach {
        Some(reach) => reach.node_selector_terms,
        None => Box::new([NodeSelectorTerm::default()]),
    };
    let in_each_place = |term: &NodeSelectorTerm| {
        [&place, &nowhere].map(|place| NodeSelectorTerm {
            match_expressions: [&*term.match_expressions, place].concat().into(),
            match_fields: term.match_fields.clone(),
        })
    };
    Some(NodeSelector { node_selector_terms: terms.iter().flat_map(in_each_place).collect() })
}

/// Whether the selector chooses a node, as far as nodes are known.
pub(super) fn leads_somewhere(reach: &NodeSelector, facts: Facts<'_>) -> bool {
    let view = facts.view;
    let found = view.nodes(None).find(|node| reach.matches(node));
    match found {
        Some(node) => view.depends_on_node(node),
        None => view.depends_on_nodes(None),
    }
    found.is_some() || !view.knows_nodes()
}

/// The label that holds a node's zone.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// The label that holds a node's region.
const REGION: &str = "topology.kubernetes.io/region";

/// The labels of zones and regions, with their names before Kubernetes 1.17.
const TOPOLOGY: [[&str; 2]; 2] = [
    [ZONE, "failure-domain.beta.kubernetes.io/zone"],
    [REGION, "failure-domain.beta.kubernetes.io/region"],
];

/// The current name of a topology label.
fn today(key: &str) -> &str {
    TOPOLOGY.iter().find(|[_, old]| *old == key).map_or(key, |[today, _]| today)
}
