//! A rolling update starts the new pod while the old one still holds a volume that attaches to one node at a time.
//!
//! # Fires on
//!
//! A Deployment with the strategy `RollingUpdate` (the default), whose pods use an exclusive volume
//! and may land on different nodes. The outcome is `deadlock` if a new pod must be ready before the
//! old pods stop, else `delay`. With one replica it is a deadlock if `maxUnavailable` comes to 0 and
//! `maxSurge` to 1 or more; with several, unless all of them may be unavailable.
//! 0 replicas count as 1.
//!
//! Also a DeploymentConfig of OpenShift with the strategy `Rolling`, a CloneSet of OpenKruise, and
//! a Rollout of Argo Rollouts. `blueGreen`, and a canary with `trafficRouting`, start all new pods
//! first; another canary has `maxSurge` and `maxUnavailable`. A DeploymentConfig whose pre or post
//! hook mounts the volume has the same fault: its hook pod comes while another pod has the volume.
//!
//! Also an update that moves pods otherwise kept on one node: a `nodeSelector`, `nodeName` or node
//! affinity added or changed, a toleration dropped, or affinity replaced by a node. New affinity on
//! several pods is the same fault if they may be on several nodes: it leads a new pod to any old
//! one, even one that waits for the volume. Moving under `Recreate` is safe.
//!
//! A StatefulSet with several pods on one such volume also stops at such a move: it replaces them
//! one by one, and the remaining old pods keep the volume. So does a rollout that `partition` or
//! `OnDelete` held back until now (assumed, because the earlier template is not at hand).
//!
//! # Why
//!
//! ReadWriteOnce means one node, not one pod. While the new pod lands on the old pod's node, all
//! is well. On another node it waits for the volume, and the old pod keeps the volume until the
//! new one is ready. Neither moves: `Multi-Attach error for volume …`, and after ten minutes
//! `ProgressDeadlineExceeded`. Percentages hide this: the default of 25 % is surge 1 and
//! unavailable 0 for one to three replicas.
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
//!         persistentVolumeClaim: {claimName: data}
//! ---
//! apiVersion: v1
//! kind: PersistentVolumeClaim
//! metadata: {name: data}
//! spec: {accessModes: [ReadWriteOnce], storageClassName: gp3}
//! ```
//!
//! # What to do
//!
//! Choose one:
//!
//! * `strategy: {type: Recreate}`. The old pod stops first: a short downtime at each rollout.
//! * With one replica, `RollingUpdate` with `maxSurge: 0` and `maxUnavailable: 1`, for the same
//!   result. A Rollout has no `Recreate`; this works in a canary without `trafficRouting`.
//! * For a StatefulSet since Kubernetes 1.38, `updateStrategy: {type: Recreate}`; before, scale to 0,
//!   and up again after the update.
//! * Required pod affinity of the pods to themselves on `kubernetes.io/hostname`, unless something
//!   of their own keeps them apart.
//! * A ReadWriteMany volume.
//!
//! # Claims
//!
//! * Named by the pod template: read.
//! * A StatefulSet's own: not read, because each is for one pod.
//!
//! # Silent on
//!
//! Volumes with ReadWriteMany or ReadOnlyMany, drivers that do not attach
//! (`attachRequired: false`), ReadWriteOncePod (see `single-pod-volume`), pods
//! that cannot be on two nodes, and a DeploymentConfig with the strategy `Custom`.

use super::{Certainty, Hazard, On, Outcome, Rule, messages, strategies};
use crate::analysis::constraints::affinity_would_hold;
use crate::analysis::placement_change::{PlacementChange, Places};
use crate::analysis::{Analysis, users};
use crate::model::strategy::Room;
use crate::model::workload::WorkloadKind;

pub(super) const RULE: Rule = Rule {
    code: "rolling-update-overlap",
    at_fault: "the new pod starts before the old one is gone",
    on: &[On::Workload(judge)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    found.extend(hook(analysis));
    if analysis.exclusive().next().is_none() || analysis.pins_rollouts() {
        return;
    }
    let Some(room) = analysis.rolling_update() else {
        return;
    };
    let deadlocks = analysis.rolling_update_deadlocks(room);
    let mut hazard = match &analysis.placement.moved {
        // Affinity keeps the new pods unscheduled until the old ones, and with them the attachment,
        // are gone, as with Recreate.
        Some(_) if !deadlocks && analysis.placement.affinity.rollouts => return,
        Some(moved) => moving(analysis, moved, room, deadlocks),
        None if deadlocks => deadlock(analysis, room),
        None => delay(analysis),
    };
    if deadlocks && analysis.replicas_share_exclusive() {
        // The advice for one pod would leave several pods stuck.
        hazard.advice = messages::advice_for_several_pods(analysis);
    }
    hazard.field_path = strategies::field(analysis.workload).to_owned();
    hazard.volumes = messages::names(analysis.exclusive());
    hazard.advice.push_str(&messages::shared_class(analysis));
    found.push(hazard);
}

/// The hazard of the pod of a DeploymentConfig's hook, which has the node selector of the others
/// but not their affinity (`makeHookPod` in openshift/origin
/// `pkg/apps/strategy/support/lifecycle.go`).
fn hook(analysis: &Analysis<'_>) -> Option<Hazard> {
    let workload = analysis.workload;
    let volume =
        analysis.exclusive().find(|volume| workload.hook_volumes.contains(&volume.name))?;
    if analysis.placement.one_node.is_some() || !workload.has_pods() {
        return None;
    }
    let described = messages::volumes(std::iter::once(volume));
    let name = messages::quoted(volume);
    let eligible = &analysis.placement.eligible;
    Some(Hazard {
        field_path: strategies::field(workload).to_owned(),
        volumes: vec![volume.shown_name().clone()],
        what: format!(
            "{described} and {eligible}; the pod of a pre or post hook mounts it while another pod has it, so on another node it never starts, and the rollout fails."
        ),
        advice: format!(
            "Take \"{}\" out of the hook's volumes, or make it a mid hook of Recreate, which runs when no pod has it.",
            volume.name
        ),
        brief: format!("{name}: a hook pod on another node never starts; use a mid hook"),
        ..RULE.hazard(Outcome::Deadlock)
    })
}

fn deadlock(analysis: &Analysis<'_>, room: Room) -> Hazard {
    let apart_anyway = if analysis.exclusive().any(|volume| volume.one_pod_a_node) {
        " (the scheduler keeps two pods with such a disk off the same node as well)"
    } else {
        ""
    };
    let volumes = messages::volumes(analysis.exclusive());
    let first = messages::first_of(analysis.exclusive());
    let eligible = &analysis.placement.eligible;
    let order = strategies::order(analysis.workload, room);
    let stop_first = strategies::stop_first(analysis);
    let step = strategies::stop_first_in_brief(analysis);
    Hazard {
        what: format!(
            "{volumes} and {eligible}; {order}, so the rollout can never finish once the new pod is on another node{apart_anyway}."
        ),
        advice: if affinity_would_hold(analysis) {
            format!("{stop_first}, or keep the pods on one node with required pod affinity.")
        } else {
            format!("{stop_first}.")
        },
        brief: format!("{first}: a rollout to another node never ends; {step}"),
        ..RULE.hazard(Outcome::Deadlock)
    }
}

/// The hazard of an update that moves pods that are otherwise kept on one node.
fn moving(analysis: &Analysis<'_>, moved: &PlacementChange, room: Room, deadlocks: bool) -> Hazard {
    let PlacementChange { from, to } = moved;
    let (old_pods, new_pods, moves) = match from {
        Places::Apart => (
            "the old pods may be on",
            "a new one goes to",
            "affinity leads a new pod to any old one, also one that waits",
        ),
        _ => (
            "the old pod may be on",
            "the new one must be on",
            "this update moves the pod, and its rollout never ends",
        ),
    };
    let volumes = messages::volumes(analysis.exclusive());
    let seen = format!("{volumes}; {old_pods} {from}, and {new_pods} {to}");
    let claim = messages::first_of(analysis.exclusive());
    let certainty = match from {
        // The earlier revision may differ in something else.
        Places::OfEarlier => Certainty::Assumed,
        _ => Certainty::Verified,
    };
    if !deadlocks {
        return Hazard {
            certainty,
            what: format!("{seen}, where it waits for the volume until the old pod is gone."),
            advice: "Nothing breaks.".to_owned(),
            brief: format!("{claim}: the new pod moves, and waits until the old one is gone"),
            ..RULE.hazard(Outcome::Delay)
        };
    }
    let when = match analysis.workload.kind {
        WorkloadKind::StatefulSet => "",
        _ => ", before the pods move or with the same update",
    };
    let order = strategies::order(analysis.workload, room);
    let step = strategies::stop_first_in_brief(analysis);
    Hazard {
        certainty,
        what: format!("{seen}; {order}, so the rollout can never finish."),
        advice: format!("{}{when}.", strategies::stop_first(analysis)),
        brief: format!("{claim}: {moves}; {step}"),
        ..RULE.hazard(Outcome::Deadlock)
    }
}

fn delay(analysis: &Analysis<'_>) -> Hazard {
    let is_shared = analysis
        .exclusive()
        .filter_map(|volume| volume.claim.as_deref())
        .any(|claim| !users::all_others(analysis, claim).is_empty());
    let volumes = messages::volumes(analysis.exclusive());
    let first = messages::first_of(analysis.exclusive());
    let eligible = &analysis.placement.eligible;
    let end = if is_shared {
        "and every other user of the claim on another node is gone"
    } else {
        "is gone, then the rollout goes on"
    };
    Hazard {
        what: format!(
            "{volumes} and {eligible}; a new pod on another node waits for the volume until the old pod {end}."
        ),
        advice: match (is_shared, affinity_would_hold(analysis)) {
            (true, true) => "Keep all users of the claim on one node with required pod affinity, or give each a claim of its own.",
            (true, false) => "Keep all users of the claim on one node, or give each a claim of its own.",
            (false, true) => "Nothing breaks; to spare the wait, keep the pods on one node (required pod affinity).",
            (false, false) => "Nothing breaks.",
        }
        .to_owned(),
        brief: format!("{first}: a new pod on another node waits until the old pod is gone"),
        ..RULE.hazard(Outcome::Delay)
    }
}
