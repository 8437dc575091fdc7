//! Updates that move a workload's pods.
//!
//! The constraints that keep the pods of one revision on one node do not apply to pods that still
//! run: the old template decided where those are.

use std::fmt;

use super::eligibility::COUNTED;
use super::eligible_nodes::{EligibleNodes, OneNode};
use super::volumes::{self, UsedVolume};
use super::{Facts, affinity};
use crate::model::Text;
use crate::model::words::listed;
use crate::model::workload::{Workload, WorkloadKind};

/// The most nodes that messages name; for more they give the number.
const NAMED: usize = 3;

/// An update after which the new pods may not be where the old ones are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacementChange {
    /// The places where the old pods may be.
    pub from: Places,
    /// The places where the new pods must be.
    pub to: Places,
}

/// Nodes, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// One of these nodes.
    Nodes(Vec<Text>),
    /// One of this many nodes.
    Several(usize),
    /// The node of a volume that stays where it was made.
    NodeOf(Text),
    /// Several nodes at the same time.
    Apart,
    /// The node of any existing pod, running or pending.
    BesideAny,
    /// Any node: none is known.
    Any,
    /// The places that an earlier template allowed, which is not known.
    OfEarlier,
}

/// The text after "on": `n1`, `n1, n2 or n3`, `one of 7 nodes`.
impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(names) if names.is_empty() => f.write_str("no node"),
            Self::Nodes(names) => f.write_str(&listed(names, "or")),
            Self::Several(count @ COUNTED..) => write!(f, "one of {count} or more nodes"),
            Self::Several(count) => write!(f, "one of {count} nodes"),
            Self::NodeOf(volume) => write!(f, "the node of volume \"{volume}\""),
            Self::Apart => f.write_str("several nodes"),
            Self::BesideAny => f.write_str("the node of any of them"),
            Self::Any => f.write_str("any node"),
            Self::OfEarlier => f.write_str("the nodes of an earlier template"),
        }
    }
}

impl Places {
    fn of(range: &EligibleNodes<'_>) -> Self {
        match (&range.one_node, range.counted) {
            (Some(OneNode::Named(name)), _) => Self::Nodes(vec![name.clone()]),
            (Some(OneNode::VolumeStays(volume)), _) => Self::NodeOf(volume.clone()),
            (_, Some(..=NAMED)) => {
                let mut names: Vec<_> =
                    range.eligibility.nodes().map(|node| node.metadata.name.clone()).collect();
                names.sort_unstable();
                Self::Nodes(names)
            }
            (_, Some(count)) => Self::Several(count),
            (_, None) => Self::Any,
        }
    }
}

impl PlacementChange {
    /// The move by the update from `old` to `new` of pods whose eligible nodes are `to`; `None` if
    /// the new pods can only be where old ones with one of `volumes` are, and no earlier rollout
    /// goes on.
    pub(super) fn of(
        old: &Workload,
        new: &Workload,
        volumes: &[UsedVolume],
        to: &EligibleNodes<'_>,
        facts: Facts<'_>,
    ) -> Option<Self> {
        let resumed =
            || resumes(old, new).then(|| Self { from: Places::OfEarlier, to: Places::of(to) });
        if is_placed_alike(old, new) || !hold_one_volume(old, new, volumes) {
            return resumed();
        }
        let theirs = volumes::of(old, facts);
        let from = EligibleNodes::of(old, old.ready, &theirs, facts);
        // Whether the old pods may be on several nodes. New affinity then leads each new pod to any
        // of them, even to one that waits there for the volume.
        let are_apart = || old.replicas > 1 && !affinity::self_affinity(old, None, facts).replicas;
        if to.one_node.is_none() && from.one_node.is_none() && are_apart() {
            return Some(Self { from: Places::Apart, to: Places::BesideAny });
        }
        let stays_with_both = theirs.iter().any(|theirs| {
            theirs.stays_on_its_node
                && volumes.iter().any(|ours| {
                    ours.stays_on_its_node && ours.claim.is_some() && ours.claim == theirs.claim
                })
        });
        let stay = match (&from.one_node, &to.one_node) {
            (Some(OneNode::Nowhere | OneNode::Assumed), _) => true,
            (Some(from), Some(to)) => from == to || stays_with_both,
            (None, Some(_)) => false,
            // Affinity leads the new pods to the old ones, unless they may not go there.
            (_, None) => from.eligibility.nodes().all(|node| to.eligibility.admits(node)),
        };
        if stay {
            return resumed();
        }
        Some(Self { from: Places::of(&from), to: Places::of(to) })
    }
}

/// Whether the update starts a rollout to a template that is not new: that of a StatefulSet whose
/// `partition` or `OnDelete` held pods back.
fn resumes(old: &Workload, new: &Workload) -> bool {
    new.kind == WorkloadKind::StatefulSet
        && new.partition < old.partition.min(new.replicas)
        && new.is_behind.or(old.is_behind).unwrap_or(true)
}

/// Whether both templates agree in everything that decides where pods go.
pub(super) fn is_placed_alike(old: &Workload, new: &Workload) -> bool {
    let (old, new) = (&old.template, &new.template);
    old.node_name == new.node_name
        && old.node_selector == new.node_selector
        && old.node_affinity == new.node_affinity
        && old.affinity == new.affinity
        && old.tolerations == new.tolerations
        && old.extended_resources == new.extended_resources
        && old.spread == new.spread
        && old.volumes == new.volumes
}

/// Whether the old pods hold one of the volumes that matter to the new ones.
fn hold_one_volume(old: &Workload, new: &Workload, volumes: &[UsedVolume]) -> bool {
    let theirs = &old.template.volumes;
    new.template.volumes.iter().any(|ours| {
        volumes.iter().any(|used| used.index == ours.index && used.may_hold_a_node())
            && theirs.iter().any(|other| other.source == ours.source)
    })
}
