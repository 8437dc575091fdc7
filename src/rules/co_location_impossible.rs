//! The volume needs the pods on one node, and the pods' own constraints forbid just that.
//!
//! # Fires on
//!
//! Workloads with an exclusive volume where
//!
//! * more than one pod is wanted, and required anti-affinity to themselves or a
//!   hard topology spread keeps them apart: `stuck`;
//! * something keeps the pods of a Deployment on one node, and anti-affinity, a
//!   hard spread over host names, or one over zones (where the nodes are in
//!   several) forbids one more there, so that the new pod of a rolling update may
//!   neither stay nor go: `deadlock`.
//!
//! # Why
//!
//! Pod affinity is one way to live with a ReadWriteOnce volume. Together with a
//! constraint that spreads the pods it is a contradiction that the scheduler
//! cannot solve: the pod stays Pending.
//!
//! # Example
//!
//! ```yaml
//! spec:
//!   replicas: 1 # RollingUpdate by default: one pod more during a rollout
//!   template:
//!     metadata: {labels: {app: web}}
//!     spec:
//!       affinity:
//!         podAffinity:
//!           requiredDuringSchedulingIgnoredDuringExecution:
//!           - topologyKey: kubernetes.io/hostname
//!             labelSelector: {matchLabels: {app: web}}
//!       topologySpreadConstraints:
//!       - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule,
//!          labelSelector: {matchLabels: {app: web}}}
//! ```
//!
//! # What to do
//!
//! Remove the constraint that spreads the pods (`whenUnsatisfiable:
//! ScheduleAnyway` is enough for a topology spread), or use one replica with
//! `strategy: {type: Recreate}`, or use a volume that many nodes can have.
//!
//! # Silent on
//!
//! Constraints that select other pods only, soft constraints, a spread that
//! allows as many pods on one node as there are, and a spread over places of
//! which only one is eligible.

use super::hazard::Hazard;
use super::rolling_update_overlap::deadlocks;
use super::{Outcome, Rule, Subject, codes, words};
use crate::model::Text;
use crate::model::node::Node;
use crate::model::pod::{HOSTNAME, TopologySpread};
use crate::model::workload::WorkloadKind;
use crate::situation::affinity::{by_revision, matches_itself};
use crate::situation::eligibility::Eligibility;
use crate::situation::{NodeAssumption, Situation};

pub(super) const RULE: Rule = Rule {
    code: codes::CO_LOCATION_IMPOSSIBLE,
    source: include_str!("co_location_impossible.rs"),
    judge,
};

fn judge(subject: &Subject<'_>, found: &mut Vec<Hazard>) {
    let Subject::Workload(situation) = subject else {
        return;
    };
    if situation.exclusive().next().is_none() || !situation.workload.has_pods() {
        return;
    }
    // The pods of a DaemonSet are apart by their nature, with or without constraints.
    if situation.workload.kind == WorkloadKind::DaemonSet {
        return;
    }
    let pods = situation.pods();
    if pods > 1
        && let Some(constraint) = forbids(situation, pods, Revisions::One)
    {
        found.push(hazard(situation, Outcome::Stuck, pods, &constraint));
        return;
    }
    let room = match situation.workload.kind {
        WorkloadKind::Deployment => situation.workload.strategy.room(pods),
        _ => None,
    };
    let Some(room) = room.filter(|room| deadlocks(*room, situation)) else {
        return;
    };
    if situation.pins_rollouts()
        && let Some(constraint) = forbids(situation, pods + room.surge, Revisions::Two)
    {
        found.push(hazard(situation, Outcome::Deadlock, 0, &constraint));
    }
}

/// Whose pods are counted together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Revisions {
    One,
    Two,
}

struct Constraint {
    field: String,
    text: String,
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

fn hazard(
    situation: &Situation<'_>,
    outcome: Outcome,
    extent: i64,
    constraint: &Constraint,
) -> Hazard {
    let volumes = words::names(situation.exclusive());
    let consequence = if outcome == Outcome::Stuck {
        format!(
            "{} of them keeps its {extent} pods apart, so all but the first can never start",
            constraint.text
        )
    } else {
        format!(
            "its pods are held on one node while {} forbids one more there, so the new pod of a rolling update has nowhere to go and the rollout can never finish",
            constraint.text
        )
    };
    Hazard {
        rule: RULE.code,
        outcome,
        field_path: constraint.field.clone(),
        what: format!("{}; {consequence}.", words::volumes(situation.exclusive())),
        advice: "Remove the constraint that spreads the pods, or use one replica with strategy Recreate, or use a volume that many nodes can have.".to_owned(),
        brief: format!(
            "{} needs the pods on one node, which their own constraints forbid",
            words::first_of(situation.exclusive())
        ),
        volumes,
        extent,
    }
}
