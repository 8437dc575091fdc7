//! An autoscaler, or a request to scale, brings more pods than the volume can serve.
//!
//! # Fires on
//!
//! A HorizontalPodAutoscaler whose `maxReplicas`, or a request to scale whose
//! `replicas`, is higher than the workload's own number and would bring about
//! `replicas-share-volume` or the `stuck` of `single-pod-volume`. It is reported
//! on the autoscaler or the request; a workload that arrives after its
//! autoscaler gets it itself.
//!
//! # Why
//!
//! `kubectl scale` and autoscalers change the number of replicas without
//! touching the pod template. A Deployment that was made safe for one pod is
//! back at a permanent Multi-Attach error with the second.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: autoscaling/v2
//! kind: HorizontalPodAutoscaler
//! metadata: {name: web}
//! spec:
//!   scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web} # ReadWriteOnce
//!   maxReplicas: 5
//! ```
//!
//! # What to do
//!
//! Keep `maxReplicas` (or the scale) at 1, or move the data to a volume that
//! many nodes can have, or keep all pods on one node with required pod affinity
//! on `kubernetes.io/hostname`.
//!
//! # Silent on
//!
//! Scaling down, workloads that are not there, and workloads that have the same
//! hazard without the autoscaler.

use super::hazard::Hazard;
use super::{Rule, Subject, codes, replicas_share_volume, single_pod_volume};
use crate::model::autoscaler::Autoscaler;
use crate::model::cluster::Turn;
use crate::model::workload::Workload;
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    code: codes::AUTOSCALER_EXCEEDS_VOLUME,
    source: include_str!("autoscaler_exceeds_volume.rs"),
    judge,
};

fn judge(subject: &Subject<'_>, found: &mut Vec<Hazard>) {
    match subject {
        Subject::Scaled {
            situation,
            before,
            autoscaler,
        } => found.extend(find(situation, *before).map(|hazard| match autoscaler {
            Some(autoscaler) => by_autoscaler(hazard, autoscaler, situation.workload),
            None => by_scale(hazard, situation.workload),
        })),
        Subject::Workload(situation) => found.extend(from_its_autoscaler(situation)),
        Subject::Claim { .. } => {}
    }
}

/// What the number of replicas in `situation` brings about that `before` did not.
fn find(situation: &Situation<'_>, before: i64) -> Option<Hazard> {
    if situation.workload.replicas <= before.max(1) {
        return None;
    }
    replicas_share_volume::find(situation).or_else(|| single_pod_volume::find_replicas(situation))
}

fn by_autoscaler(hazard: Hazard, autoscaler: &Autoscaler, workload: &Workload) -> Hazard {
    Hazard {
        rule: RULE.code,
        field_path: "spec.maxReplicas".to_owned(),
        what: format!(
            "it may scale {} {} to {} pods; there, {}",
            workload.kind, workload.metadata.name, autoscaler.max_replicas, hazard.what
        ),
        advice: format!("Set spec.maxReplicas to 1. {}", hazard.advice),
        ..hazard
    }
}

fn by_scale(hazard: Hazard, workload: &Workload) -> Hazard {
    Hazard {
        rule: RULE.code,
        what: format!("with {} pods, {}", workload.replicas, hazard.what),
        ..hazard
    }
}

/// What an autoscaler that is there before its workload brings about.
fn from_its_autoscaler(situation: &Situation<'_>) -> Option<Hazard> {
    let workload = situation.workload;
    if !workload.has_pods() || situation.volumes.is_empty() {
        return None;
    }
    let view = situation.world.view;
    let autoscaler = view
        .autoscalers_of(
            workload.kind,
            &workload.metadata.namespace,
            &workload.metadata.name,
        )
        .into_iter()
        .filter(|autoscaler| view.autoscaler_turn(autoscaler) == Turn::Never)
        .max_by_key(|autoscaler| autoscaler.max_replicas)?;
    let scaled = Workload {
        replicas: autoscaler.max_replicas,
        ..workload.clone()
    };
    let hazard = find(
        &Situation::of(&scaled, None, situation.world),
        workload.replicas,
    )?;
    Some(Hazard {
        rule: RULE.code,
        what: format!(
            "HorizontalPodAutoscaler {} may scale it to {} pods; there, {}",
            autoscaler.metadata.name, autoscaler.max_replicas, hazard.what
        ),
        ..hazard
    })
}
