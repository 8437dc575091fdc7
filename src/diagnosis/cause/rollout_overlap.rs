//! A rollout starts the new pod before the old one stops, and the old one keeps the volume.
//!
//! The new pod waits for the volume, and the Deployment controller waits for the new pod
//! before it stops the old one: neither moves again.

use super::{Cause, end_rollout, limit, named, whereabouts};
use crate::diagnosis::stuck::Stuck;
use crate::model::workload::WorkloadKind;

pub(super) const CAUSE: Cause = Cause {
    code: "rollout-overlap",
    title: "The rollout starts the new pod before the old one stops",
    passes: false,
    judge,
    steps: end_rollout,
};

fn judge(stuck: &Stuck<'_>) -> Option<String> {
    let old = old_pod(stuck)?;
    Some(format!(
        "The rollout of {} waits for pod {} before it stops {}, which is {} and has the volume; {}. Neither moves again.",
        Stuck::target_of(stuck.pod),
        stuck.pod.meta.name,
        named(old),
        whereabouts(old),
        limit(stuck),
    ))
}

/// The pod of another revision that has the volume and is kept until the new one is ready.
pub(super) fn old_pod<'a>(stuck: &Stuck<'a>) -> Option<&'a crate::diagnosis::Pod> {
    let (kind, _) = stuck.pod.workload();
    if kind != WorkloadKind::Deployment.name() {
        return None;
    }
    let own = stuck.pod.revision();
    // Where a pod like it is the one that has the volume, the rollout is not to blame.
    if stuck.siblings().any(|other| other.revision() == own) {
        return None;
    }
    if let Some(workload) = stuck.workload() {
        let room = workload.strategy.room(workload.replicas)?;
        if room.unavailable >= workload.replicas {
            return None;
        }
    }
    stuck.siblings().find(|other| other.revision() != own)
}
