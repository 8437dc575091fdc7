//! How far apart a workload's pods can be.

use std::fmt;

use super::affinity::{self, Together};
use super::eligibility::{COUNTED, Eligibility};
use super::volumes::{self, UsedVolume};
use super::{NodeAssumption, World};
use crate::model::Text;
use crate::model::workload::{Workload, WorkloadKind};

/// The label that holds a node's zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// How far apart a workload's pods can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Why all pods, whatever happens, are on one node; `None` if they need not be.
    pub one_node: Option<OneNode>,
    /// What affinity to its own pods keeps together.
    pub affinity: Together,
    /// How many nodes the pods can go to.
    pub eligible: Eligible,
}

/// Why all pods are on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OneNode {
    /// A field names the node, only that node is eligible, or affinity leads to
    /// workloads of which that is true.
    Named(Text),
    /// The volume stays on the node where it was made.
    VolumeStays,
    /// No eligible node is there.
    Nowhere,
    /// The policy says to assume a single node.
    Assumed,
}

impl OneNode {
    /// What the nodes themselves leave, of which `counted` are known to be eligible.
    fn of(
        eligibility: &Eligibility<'_>,
        counted: Option<usize>,
        volumes: &[UsedVolume],
        world: World<'_>,
    ) -> Option<Self> {
        if let Some(name) = eligibility.named_node() {
            return Some(Self::Named(name.into()));
        }
        if volumes.iter().any(|volume| volume.stays_on_its_node) {
            return Some(Self::VolumeStays);
        }
        match (world.nodes, counted) {
            (NodeAssumption::Always, _) | (NodeAssumption::Auto, None) => None,
            (NodeAssumption::Never, None) => Some(Self::Assumed),
            (_, Some(0)) => Some(Self::Nowhere),
            (_, Some(1)) => {
                let mut name = Text::default();
                eligibility.visit(world.view, &mut |node| {
                    name = node.name.clone();
                    false
                });
                Some(Self::Named(name))
            }
            (_, Some(_)) => None,
        }
    }

    /// The node to which required affinity leads, where all the workloads it
    /// leads to are bound to one and the same.
    fn by_leaders(workload: &Workload, world: World<'_>) -> Option<Self> {
        // The pods of a DaemonSet are bound to their nodes one by one.
        if workload.kind == WorkloadKind::DaemonSet {
            return None;
        }
        let mut node = None;
        affinity::has_only_leaders(workload, world, &mut |leader| {
            let volumes = volumes::of(leader, world);
            let eligibility = eligibility(leader, &volumes);
            let counted = eligibility.count(world.view);
            let theirs = Self::of(&eligibility, counted, &volumes, world)
                .filter(|place| matches!(place, Self::Named(_)));
            let agrees = theirs.is_some() && (node.is_none() || node == theirs);
            node = theirs;
            agrees
        })
        .then_some(node)
        .flatten()
    }
}

/// How many nodes the pods can go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eligible {
    /// That many; [`COUNTED`] stands for that many or more.
    Nodes(usize),
    /// Not known: many are assumed.
    ManyAssumed,
}

/// `5 nodes are eligible`.
impl fmt::Display for Eligible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(count) if *count >= COUNTED => {
                write!(f, "{COUNTED} or more nodes are eligible")
            }
            Self::Nodes(1) => f.write_str("1 node is eligible"),
            Self::Nodes(count) => write!(f, "{count} nodes are eligible"),
            Self::ManyAssumed => f.write_str("several nodes are assumed to be eligible"),
        }
    }
}

impl Placement {
    /// The placement of a workload for which it does not matter.
    #[must_use]
    pub fn irrelevant() -> Self {
        Self {
            one_node: None,
            affinity: Together::default(),
            eligible: Eligible::ManyAssumed,
        }
    }

    /// Where the pods of `workload` can be, given its volumes.
    #[must_use]
    pub fn of(
        workload: &Workload,
        previous: Option<&Workload>,
        volumes: &[UsedVolume],
        world: World<'_>,
    ) -> Self {
        let eligibility = eligibility(workload, volumes);
        let counted = eligibility.count(world.view);
        let one_node = OneNode::of(&eligibility, counted, volumes, world)
            .or_else(|| OneNode::by_leaders(workload, world));
        Self {
            affinity: affinity::self_affinity(workload, previous, world),
            eligible: match counted {
                Some(count) if count > 1 || world.nodes != NodeAssumption::Always => {
                    Eligible::Nodes(count)
                }
                _ => Eligible::ManyAssumed,
            },
            one_node,
        }
    }

    /// Whether the pods of one revision cannot be on two nodes.
    #[must_use]
    pub const fn pins_replicas(&self) -> bool {
        self.one_node.is_some() || self.affinity.replicas
    }

    /// Whether the pods of one revision and the next cannot be on two nodes.
    #[must_use]
    pub const fn pins_rollouts(&self) -> bool {
        self.one_node.is_some() || self.affinity.rollouts
    }

    /// How many pods a DaemonSet has: one on each eligible node. Affinity does
    /// not change that, as its pods are bound to their nodes one by one.
    #[must_use]
    pub fn daemon_pods(&self) -> i64 {
        match (&self.one_node, self.eligible) {
            (Some(_), _) => 1,
            (None, Eligible::Nodes(count)) => i64::try_from(count).unwrap_or(i64::MAX),
            (None, Eligible::ManyAssumed) => 2,
        }
    }
}

fn eligibility<'a>(workload: &'a Workload, volumes: &'a [UsedVolume]) -> Eligibility<'a> {
    Eligibility::new(
        &workload.template,
        volumes.iter().filter_map(|volume| volume.reach.as_ref()),
    )
}
