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
use super::{On, Outcome, Rule, words};
use crate::situation::Situation;
use crate::situation::constraints::{Constraint, Contradiction, Together, contradiction};

pub(super) const RULE: Rule = Rule {
    code: "co-location-impossible",
    source: include_str!("co_location_impossible.rs"),
    on: &[On::Workload(judge)],
};

fn judge(situation: &Situation<'_>, found: &mut Vec<Hazard>) {
    found.extend(
        contradiction(situation).map(|Contradiction { pods, constraint }| match pods {
            Together::Replicas(pods) => stuck(situation, pods, &constraint),
            Together::Rollout => deadlock(situation, &constraint),
        }),
    );
}

fn stuck(situation: &Situation<'_>, pods: i64, constraint: &Constraint) -> Hazard {
    Hazard {
        extent: pods,
        what: format!(
            "{}, so its {pods} pods must share a node, but {} keeps them apart: all but the first can never start.",
            words::volumes(situation.exclusive()),
            constraint.text
        ),
        ..blank(situation, Outcome::Stuck, constraint)
    }
}

fn deadlock(situation: &Situation<'_>, constraint: &Constraint) -> Hazard {
    Hazard {
        what: format!(
            "{} and its pods are held on one node, where {} allows no further pod: the new pod of a rolling update has nowhere to go and the rollout can never finish.",
            words::volumes(situation.exclusive()),
            constraint.text
        ),
        ..blank(situation, Outcome::Deadlock, constraint)
    }
}

fn blank(situation: &Situation<'_>, outcome: Outcome, constraint: &Constraint) -> Hazard {
    Hazard {
        rule: RULE.code,
        outcome,
        field_path: constraint.field.clone(),
        volumes: words::names(situation.exclusive()),
        extent: 0,
        what: String::new(),
        advice: "Remove the constraint that spreads the pods, or use one replica with strategy Recreate, or use a volume that many nodes can have.".to_owned(),
        brief: format!(
            "{} needs the pods on one node, which their own constraints forbid",
            words::first_of(situation.exclusive())
        ),
    }
}
