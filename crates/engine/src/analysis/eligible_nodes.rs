//! The nodes on which the pods of one revision may be.

use super::eligibility::Eligibility;
use super::topology::ZONE;
use super::volumes::{self, UsedVolume};
use super::{Facts, NodeAssumption, affinity};
use crate::model::Text;
use crate::model::workload::{Workload, WorkloadKind};

/// The reason for which all pods are on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OneNode {
    /// A field names the node, only that node is eligible, or affinity leads to workloads whose
    /// pods are all on it.
    Named(Text),
    /// The volume of that name stays where it was made, and one node reaches it.
    VolumeStays(Text),
    /// There is no eligible node.
    Nowhere,
    /// The policy says to assume a single node.
    Assumed,
}

/// The nodes on which the pods of one revision may be, each by itself.
pub(super) struct EligibleNodes<'a> {
    pub(super) eligibility: Eligibility<'a>,
    /// The number of eligible nodes, at most [`COUNTED`](super::eligibility::COUNTED); `None` if no
    /// node is known.
    pub(super) counted: Option<usize>,
    /// The reason for which it is one node, if it is.
    pub(super) one_node: Option<OneNode>,
}

impl<'a> EligibleNodes<'a> {
    /// The eligible nodes of the workload's pods, its leaders taken into account. `ready` says
    /// whether pods of this template are known to be ready.
    pub(super) fn of(
        workload: &'a Workload,
        ready: bool,
        volumes: &'a [UsedVolume],
        facts: Facts<'a>,
    ) -> Self {
        let alone = Self::alone(workload, ready, volumes, facts);
        let one_node = alone.one_node.or_else(|| leaders_node(workload, facts));
        Self { one_node, ..alone }
    }

    /// The eligible nodes by its own constraints and those of its volumes, without its leaders.
    fn alone(
        workload: &'a Workload,
        ready: bool,
        volumes: &'a [UsedVolume],
        facts: Facts<'a>,
    ) -> Self {
        let reach = volumes.iter().filter_map(|volume| volume.reach.as_ref());
        let mut eligibility = Eligibility::of(workload, reach, facts).with_drivers_of(volumes);
        let mut counted = eligibility.count();
        if counted == Some(0) && !workload.template.extended_resources.is_empty() {
            eligibility.tolerate_own_resources();
            counted = eligibility.count();
        }
        if counted == Some(0) && ready {
            // Something changed the pods after their submission, so that nodes take them.
            counted = None;
        }
        Self {
            one_node: one_node(&eligibility, counted, workload, volumes, facts),
            eligibility,
            counted,
        }
    }
}

/// The reason for which all pods are on one node, leaving the workload's leaders aside.
fn one_node(
    eligibility: &Eligibility<'_>,
    counted: Option<usize>,
    workload: &Workload,
    volumes: &[UsedVolume],
    facts: Facts<'_>,
) -> Option<OneNode> {
    let several = counted.is_some_and(|count| count > 1);
    if let Some(name) = eligibility.named_node()
        // A label that several nodes have does not name any of them.
        && !(several && workload.template.node_name.is_none())
    {
        // A host name is a label; the node's name may differ.
        let node = (counted == Some(1)).then(|| eligibility.first());
        return Some(OneNode::Named(node.flatten().unwrap_or_else(|| name.into())));
    }
    if let Some(volume) = volumes.iter().find(|volume| volume.stays_on_its_node) {
        return Some(OneNode::VolumeStays(volume.shown_name().clone()));
    }
    match (facts.nodes, counted) {
        (NodeAssumption::Always, _) | (NodeAssumption::Auto, None) => None,
        (NodeAssumption::Never, None) => Some(OneNode::Assumed),
        (_, Some(0)) => Some(OneNode::Nowhere),
        (_, Some(1)) => eligibility.first().map(OneNode::Named),
        // Each zone in which such a volume may be created has only one of these nodes.
        (_, Some(_)) => volumes
            .iter()
            // A DaemonSet wants a pod in the other zones as well.
            .find(|volume| volume.stays_in_its_zone && workload.kind != WorkloadKind::DaemonSet)
            .filter(|_| eligibility.is_one_for_each(ZONE))
            .map(|volume| OneNode::VolumeStays(volume.shown_name().clone())),
    }
}

/// The one node on which the workload's pods are, if there is one.
pub(crate) fn one_node_of(workload: &Workload, facts: Facts<'_>) -> Option<OneNode> {
    let volumes = volumes::of(workload, facts);
    EligibleNodes::of(workload, workload.ready, &volumes, facts).one_node
}

/// The node to which required affinity leads, if all the workloads to which it leads are bound to
/// the same one.
fn leaders_node(workload: &Workload, facts: Facts<'_>) -> Option<OneNode> {
    // The pods of a DaemonSet are bound to their nodes one by one.
    if workload.kind == WorkloadKind::DaemonSet || !affinity::is_follower(workload, facts) {
        return None;
    }
    let node_of = |leader| {
        let volumes = volumes::of(leader, facts);
        EligibleNodes::alone(leader, leader.ready, &volumes, facts)
            .one_node
            .filter(|node| matches!(node, OneNode::Named(_)))
    };
    let mut nodes = affinity::leaders(workload, facts).map(node_of);
    let first = nodes.next()??;
    nodes.all(|node| node.as_ref() == Some(&first)).then_some(first)
}
