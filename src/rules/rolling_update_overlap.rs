//! A rolling update starts the new pod while the old one still holds a volume that one node at a time may have.
//!
//! # Fires on
//!
//! A Deployment with at least one replica and the strategy `RollingUpdate`
//! (which is also the default), whose pods use an exclusive volume and may land
//! on different nodes. The outcome is `deadlock` if the rollout may not stop the
//! old pods before a new one is ready (for one replica: `maxUnavailable` comes to
//! 0 and `maxSurge` to 1 or more), else `delay`.
//!
//! # Why
//!
//! ReadWriteOnce speaks of nodes, not of pods. As long as the new pod lands on
//! the node of the old one, all is well. As soon as it lands on another, it
//! waits for the volume, which the old pod keeps until the new one is ready.
//! Nobody moves: `Multi-Attach error for volume …`, and after ten minutes
//! `ProgressDeadlineExceeded`. Percentages hide this: the default of 25 % is
//! surge 1 and unavailable 0 for one to three replicas.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   replicas: 1
//!   # no strategy: RollingUpdate, 25 %
//!   template:
//!     spec:
//!       volumes:
//!       - name: data
//!         persistentVolumeClaim: {claimName: data} # ReadWriteOnce
//! ```
//!
//! # What to do
//!
//! Set `strategy: {type: Recreate}`: the old pod stops first, which costs a
//! short downtime at each rollout. Or keep `RollingUpdate` with `maxSurge: 0`
//! and `maxUnavailable: 1`, which does the same with a short wait. Or keep the
//! pods on one node with required pod affinity to themselves on
//! `kubernetes.io/hostname`. Or use a volume that many nodes can have.
//!
//! # Silent on
//!
//! Volumes with ReadWriteMany or ReadOnlyMany, drivers that do not attach
//! (`attachRequired: false`), ReadWriteOncePod (see `single-pod-volume`), pods
//! that cannot be on two nodes, and Deployments with no replicas.

use super::hazard::Hazard;
use super::{Outcome, Rule, Subject, codes, words};
use crate::model::strategy::Room;
use crate::model::workload::WorkloadKind;
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    code: codes::ROLLING_UPDATE_OVERLAP,
    source: include_str!("rolling_update_overlap.rs"),
    judge,
};

fn judge(subject: &Subject<'_>, found: &mut Vec<Hazard>) {
    let Subject::Workload(situation) = subject else {
        return;
    };
    let workload = situation.workload;
    if workload.kind != WorkloadKind::Deployment
        || !workload.has_pods()
        || situation.exclusive().next().is_none()
        || situation.pins_rollouts()
    {
        return;
    }
    let Some(room) = workload.strategy.room(workload.replicas) else {
        return;
    };
    let volumes = words::names(situation.exclusive());
    let seen = format!(
        "{} and {}",
        words::volumes(situation.exclusive()),
        situation.placement.eligible
    );
    let apart_anyway = if situation.exclusive().any(|volume| volume.one_pod_a_node) {
        " (the scheduler keeps two pods with such a disk off the same node as well)"
    } else {
        ""
    };
    let (outcome, what, advice, brief) = if deadlocks(room, situation) {
        (
            Outcome::Deadlock,
            format!(
                "{seen}; RollingUpdate starts the new pod before the old one stops (surge {}, unavailable {}), so the rollout can never finish once the new pod is on another node{apart_anyway}.",
                room.surge, room.unavailable
            ),
            "Set spec.strategy to Recreate, or to RollingUpdate with maxSurge 0 and maxUnavailable 1, or keep the pods on one node with required pod affinity.",
            format!(
                "{}: a rollout to another node never ends; use Recreate or maxSurge 0",
                words::first_of(situation.exclusive())
            ),
        )
    } else {
        (
            Outcome::Delay,
            format!(
                "{seen}; a new pod on another node waits for the volume until the old pod is gone, then the rollout goes on."
            ),
            "Nothing breaks; to spare the wait, keep the pods on one node with required pod affinity, or set spec.strategy to Recreate, which waits in the same way but says so.",
            format!(
                "{}: a new pod on another node waits until the old pod is gone",
                words::first_of(situation.exclusive())
            ),
        )
    };
    found.push(Hazard {
        rule: RULE.code,
        outcome,
        field_path: "spec.strategy".to_owned(),
        volumes,
        extent: 0,
        what,
        advice: format!("{advice}{}", words::shared_class(situation)),
        brief,
    });
}

/// Whether the rollout waits for a new pod while an old one keeps the volume.
/// With one pod, or pods that are stuck apart anyway, that is so where none may
/// be stopped first. Where affinity holds each revision on a node of its own,
/// all old pods must be gone before the volume is free.
pub(super) fn deadlocks(room: Room, situation: &Situation<'_>) -> bool {
    let holders = if situation.pins_replicas() && !situation.pins_rollouts() {
        situation.workload.replicas
    } else {
        1
    };
    room.unavailable < holders && (room.surge >= 1 || room.unavailable >= 1)
}
