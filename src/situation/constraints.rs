//! What the pods' own constraints forbid on one node.

use super::affinity::{by_revision, matches_itself};
use super::eligibility::Eligibility;
use super::{NodeAssumption, Situation};
use crate::model::Text;
use crate::model::node::Node;
use crate::model::pod::{HOSTNAME, TopologySpread};
use crate::model::workload::WorkloadKind;

/// Pods that must share a node, and the constraint of theirs that forbids it.
pub struct Contradiction {
    /// Which pods must share a node.
    pub pods: Together,
    /// What forbids it.
    pub constraint: Constraint,
}

/// Which pods must share a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// The replicas, so many of them.
    Replicas(i64),
    /// An old pod and the new one of a rolling update.
    Rollout,
}

/// The contradiction in which the workload's pods are caught: an exclusive
/// volume wants them on one node, and they themselves forbid it.
#[must_use]
pub fn contradiction(situation: &Situation<'_>) -> Option<Contradiction> {
    // The pods of a DaemonSet are apart by their nature, with or without constraints.
    if situation.exclusive().next().is_none() || situation.workload.kind == WorkloadKind::DaemonSet
    {
        return None;
    }
    let pods = situation.pods();
    if pods > 1
        && let Some(constraint) = forbids(situation, pods, Revisions::One)
    {
        return Some(Contradiction {
            pods: Together::Replicas(pods),
            constraint,
        });
    }
    let room = situation.rolling_update()?;
    if !situation.rolling_update_deadlocks(room) || !situation.pins_rollouts() {
        return None;
    }
    forbids(situation, pods + room.surge, Revisions::Two).map(|constraint| Contradiction {
        pods: Together::Rollout,
        constraint,
    })
}

/// Whose pods are counted together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Revisions {
    /// Those of one revision.
    One,
    /// Those of one revision and the next, as during a rollout.
    Two,
}

/// A constraint of the pods themselves.
pub struct Constraint {
    /// The field it stands in, `spec.template.spec.affinity.podAntiAffinity` for example.
    pub field: String,
    /// What it is, as part of a sentence.
    pub text: String,
}

/// The constraint that forbids `pods` pods on one node, where there is one.
fn forbids(situation: &Situation<'_>, pods: i64, revisions: Revisions) -> Option<Constraint> {
    let (workload, world) = (situation.workload, situation.world);
    let path = workload.kind.pod_spec_path();
    let apart = workload.template.anti_affinity.iter().any(|term| {
        term.topology_key == HOSTNAME
            && matches_itself(term, workload, world)
            && !(revisions == Revisions::Two && by_revision(term, workload))
    });
    if apart {
        return Some(Constraint {
            field: format!("{path}.affinity.podAntiAffinity"),
            text: "required anti-affinity to its own pods".to_owned(),
        });
    }
    workload
        .template
        .spread
        .iter()
        .enumerate()
        .find(|(_, spread)| {
            spread.hard
                && pods > spread.max_skew
                && counts_own_pods(spread, situation, revisions)
                && keeps_apart(spread, situation)
                && has_several_places(spread, situation)
        })
        .map(|(at, spread)| Constraint {
            field: format!("{path}.topologySpreadConstraints[{at}]"),
            text: format!(
                "a hard topology spread over {} (maxSkew {})",
                spread.topology_key, spread.max_skew
            ),
        })
}

fn counts_own_pods(
    spread: &TopologySpread,
    situation: &Situation<'_>,
    revisions: Revisions,
) -> bool {
    let workload = situation.workload;
    let per_revision = workload
        .kind
        .revision_label()
        .is_some_and(|label| spread.match_label_keys.iter().any(|key| key == label));
    spread
        .label_selector
        .as_ref()
        .is_some_and(|selector| selector.matches(&workload.template.labels))
        && !(per_revision && revisions == Revisions::Two)
}

/// Whether the spread is one that a single node cannot satisfy: over host names
/// always, over anything wider only where something holds the pods on one node.
fn keeps_apart(spread: &TopologySpread, situation: &Situation<'_>) -> bool {
    spread.topology_key == HOSTNAME || situation.placement.pins_replicas()
}

/// Whether the nodes over which the spread counts are in more than one place.
fn has_several_places(spread: &TopologySpread, situation: &Situation<'_>) -> bool {
    let nodes = Eligibility::new(&situation.workload.template, None);
    let mut first: Option<Text> = None;
    let mut several = false;
    let known = nodes.visit_counted(spread, situation.world.view, &mut |node: &Node| {
        if let Some(place) = node.labels.get(&spread.topology_key) {
            match &first {
                None => first = Some(place.into()),
                Some(other) => several = other.as_str() != place,
            }
        }
        !several
    });
    if known && situation.world.nodes != NodeAssumption::Always {
        return several;
    }
    // Zones are not assumed where no node is known.
    several
        || (spread.topology_key == HOSTNAME
            && situation.world.nodes != NodeAssumption::Never
            && nodes.named_node().is_none())
}
