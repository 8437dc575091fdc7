//! The placement of a workload's pods, together or apart.

use std::fmt;

use super::affinity::{self, Together};
use super::eligibility::COUNTED;
use super::eligible_nodes::{EligibleNodes, OneNode};
use super::placement_change::{PlacementChange, is_placed_alike};
use super::volumes::UsedVolume;
use super::{Facts, NodeAssumption};
use crate::model::workload::Workload;

/// The placement of a workload's pods, together or apart.
///
/// The default is that of a workload for which it does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The reason for which all pods are always on one node; `None` if they need not be.
    pub one_node: Option<OneNode>,
    /// The pods that affinity to its own pods keeps together.
    pub affinity: Together,
    /// The number of nodes to which the pods can go.
    pub eligible: Eligible,
    /// The move by the update under way of pods that are otherwise kept on one node.
    pub moved: Option<PlacementChange>,
    /// Whether the pods from before the update keep new ones off their nodes by required
    /// anti-affinity: the scheduler evaluates that of running pods as well as that of the new one
    /// (`satisfyExistingPodsAntiAffinity` in
    /// `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`).
    pub kept_off: bool,
}

/// The number of nodes to which the pods can go; `COUNTED` means that many or more. `None` if it is
/// not known: many are assumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Eligible(Option<usize>);

/// `5 nodes are eligible`.
impl fmt::Display for Eligible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(COUNTED..) => write!(f, "{COUNTED} or more nodes are eligible"),
            Some(1) => f.write_str("1 node is eligible"),
            Some(count) => write!(f, "{count} nodes are eligible"),
            None => f.write_str("several nodes are assumed to be eligible"),
        }
    }
}

impl Placement {
    /// The placement of the pods of `workload`, given its volumes.
    pub(crate) fn of(
        workload: &Workload,
        previous: Option<&Workload>,
        volumes: &[UsedVolume],
        facts: Facts<'_>,
    ) -> Self {
        let ready =
            previous.map_or(workload.ready, |old| old.ready && is_placed_alike(old, workload));
        let range = EligibleNodes::of(workload, ready, volumes, facts);
        let affinity = affinity::self_affinity(workload, previous, facts);
        let running = previous.filter(|old| old.has_pods());
        Self {
            affinity,
            eligible: Eligible(
                range.counted.filter(|count| *count > 1 || facts.nodes != NodeAssumption::Always),
            ),
            moved: running
                .filter(|_| match range.one_node {
                    Some(OneNode::Nowhere | OneNode::Assumed) => false,
                    Some(_) => true,
                    None => affinity.rollouts,
                })
                .and_then(|old| PlacementChange::of(old, workload, volumes, &range, facts)),
            one_node: range.one_node,
            kept_off: running.is_some_and(|old| affinity::keeps_off(old, workload, facts)),
        }
    }

    /// Whether the pods of one revision cannot be on two nodes.
    pub(crate) const fn pins_replicas(&self) -> bool {
        self.one_node.is_some() || self.affinity.replicas
    }

    /// Whether the pods of one revision and the next cannot be on two nodes.
    pub(crate) const fn pins_rollouts(&self) -> bool {
        (self.one_node.is_some() || self.affinity.rollouts) && self.moved.is_none()
    }

    /// The number of pods of a DaemonSet: one on each eligible node. Affinity does not change that,
    /// because its pods are bound to their nodes one by one.
    pub(crate) fn daemon_pods(&self) -> i64 {
        match (&self.one_node, self.eligible.0) {
            (Some(_), _) => 1,
            (None, Some(count)) => i64::try_from(count).unwrap_or(i64::MAX),
            (None, None) => 2,
        }
    }
}
