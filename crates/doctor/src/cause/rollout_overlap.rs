//! A rollout starts the new pod before the old one stops, and the old one keeps the volume.
//!
//! The new pod waits for the volume, and the Deployment controller waits for the new pod before it
//! stops the old one: neither moves again. Other controllers that roll out ReplicaSets, such as
//! Argo's Rollout, do the same.

use serde_json::{Value, json};

use super::changed::{self, Changed, Way};
use super::{Judgement, Purpose, SuggestedAction, describe, kind_of, reference};
use crate::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;
use engine::model::metadata::Controller;
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::workload::{Workload, WorkloadKind};
use engine::remedy;
use engine::rules::codes;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let old = old_pod(waiting)?;
    let more = json!({
        "rolled-out": rolled_out(waiting),
        "holder": describe(old),
        "holder-node": old.node,
    });
    let told = waiting.told("rollout-overlap", more);
    Some(Judgement { steps: end_rollout(waiting, old), ..told })
}

/// The name of the object that is rolled out, for a sentence.
pub(super) fn rolled_out(waiting: &WaitingPod<'_>) -> String {
    match waiting.workload().and_then(owner_of_revision) {
        Some(owner) => format!("{} {}", owner.kind, owner.name),
        None => WaitingPod::target_of(waiting.pod),
    }
}

/// The pod of another revision that has the volume and is kept until the new one is ready.
pub(super) fn old_pod<'a>(waiting: &WaitingPod<'a>) -> Option<&'a Pod> {
    if kind_of(waiting.pod) != Some(WorkloadKind::Deployment) {
        return of_the_same_owner(waiting);
    }
    let own = waiting.pod.revision();
    // If a pod of the same revision has the volume, the rollout is not to blame.
    if waiting.siblings().any(|other| other.revision() == own) {
        return None;
    }
    if let Some(workload) = waiting.workload() {
        let room = workload.strategy.room(workload.replicas)?;
        if room.unavailable >= workload.replicas {
            return None;
        }
    }
    waiting.siblings().find(|other| other.revision() != own)
}

/// A pod of another ReplicaSet of the same controller.
fn of_the_same_owner<'a>(waiting: &WaitingPod<'a>) -> Option<&'a Pod> {
    let own = waiting.workload().and_then(owner_of_revision)?;
    if waiting.siblings().next().is_some() {
        return None;
    }
    waiting
        .staying()
        .find(|other| waiting.workload_of(other).and_then(owner_of_revision) == Some(own))
}

/// The object that a controller rolls out, if the pods of the workload are one revision of it.
fn owner_of_revision(workload: &Workload) -> Option<&Controller> {
    let is_revision =
        matches!(workload.kind, WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController);
    workload.metadata.controller.as_deref().filter(|_| is_revision)
}

/// The steps against a rollout that cannot end: take it back, or have the old pod stopped first.
pub(super) fn end_rollout(waiting: &WaitingPod<'_>, old: &Pod) -> Vec<SuggestedAction> {
    let changed = Changed::behind(waiting.pod, waiting);
    if changed.kind != Some(WorkloadKind::Deployment) {
        return of_another_controller(waiting, &changed);
    }
    let ways = replica_set(old)
        .map(|set| {
            let cost = "The next rollout ends in the same way until one of the following is done.";
            undo(waiting, &set, &changed, ["the revision that runs", cost])
        })
        .into_iter()
        .flatten()
        .chain(other_strategies(waiting, &changed).unwrap_or_default());
    resumed(waiting, &changed, ways.collect())
}

/// The ways out with the steps around them, also the one without which nothing changes what a
/// paused Deployment runs.
pub(super) fn resumed(
    waiting: &WaitingPod<'_>,
    changed: &Changed<'_>,
    ways: Vec<Way<'_>>,
) -> Vec<SuggestedAction> {
    let mut steps = changed::with_delivery_steps(waiting, ways);
    if waiting.workload().is_some_and(|workload| workload.paused) {
        // If the manifest pauses the Deployment, its delivery would pause it again and must be
        // suspended first.
        let suspended = steps.iter().take_while(|step| step.purpose == Purpose::Before);
        // A paused Deployment cannot be taken back (`DeploymentRollbacker` in kubectl's
        // `pkg/polymorphichelpers/rollback.go`) and rolls nothing out.
        let at = suspended.count();
        steps.splice(at..at, changed.told(waiting, "paused", Value::Null).steps);
    }
    steps
}

/// The annotation with which the Deployment controller numbers the ReplicaSets
/// (`RevisionAnnotation` in `pkg/controller/deployment/util`).
const REVISION: &str = "deployment.kubernetes.io/revision";

/// The number of the revision whose pods this ReplicaSet makes.
pub(super) fn revision(waiting: &WaitingPod<'_>, replica_set: &ObjectRef) -> Option<u64> {
    let document = waiting.document(replica_set)?;
    document["metadata"]["annotations"][REVISION].as_str()?.parse().ok()
}

/// Rolls back to the revision of this ReplicaSet, called `which`, at a further cost. Without a
/// revision number, kubectl chooses the second newest revision. If several rollouts are stuck, that
/// revision is stuck as well, and the next undo returns to the newest one (`deploymentRevision` in
/// `pkg/polymorphichelpers/rollback.go`).
pub(super) fn undo<'a>(
    waiting: &WaitingPod<'_>,
    replica_set: &ObjectRef,
    changed: &'a Changed<'_>,
    [which, cost]: [&str; 2],
) -> Vec<Way<'a>> {
    let number = revision(waiting, replica_set);
    let more = json!({"number": number, "set": replica_set.name, "which": which, "cost": cost});
    changed.ways(changed.told(waiting, "undo", more).steps)
}

/// The ReplicaSet of a Deployment's pod. Its name consists of the Deployment's name and the pod's
/// hash.
pub(super) fn replica_set(pod: &Pod) -> Option<ObjectRef> {
    let hash = pod.revision().filter(|_| kind_of(pod) == Some(WorkloadKind::Deployment))?;
    let name = format!("{}-{hash}", pod.workload().1);
    Some(ObjectKind::Workload(WorkloadKind::ReplicaSet).reference(&pod.meta.namespace, &name))
}

/// The strategies that stop the old pod first.
fn other_strategies<'a>(
    waiting: &WaitingPod<'_>,
    changed: &'a Changed<'_>,
) -> Option<Vec<Way<'a>>> {
    let workload = waiting.workload()?;
    let document = waiting.document(&reference(waiting.pod)?)?;
    let ways = ["recreate", "zero-surge"]
        .into_iter()
        .filter_map(remedy::named)
        .filter(|remedy| remedy.suits(codes::ROLLING_UPDATE_OVERLAP, workload.kind))
        .filter_map(|remedy| {
            let patch = serde_json::to_string(&remedy.patch(workload, document, None)?).ok()?;
            let more = json!({"patch": patch, "cost": remedy.cost});
            Some(changed.ways(changed.told(waiting, "another-strategy", more).steps))
        });
    Some(ways.flatten().collect())
}

/// The steps for another controller that rolls out ReplicaSets. `status.abort` takes Argo's Rollout
/// back (`kubectl argo rollouts abort`): its pods are those of the previous revision again, and its
/// template stays unchanged.
fn of_another_controller(waiting: &WaitingPod<'_>, changed: &Changed<'_>) -> Vec<SuggestedAction> {
    let is_rollout = waiting.workload().and_then(changed::rollout).is_some();
    let name = if is_rollout { "rollout-of-argo" } else { "rollout-of-another" };
    changed.told(waiting, name, json!({"rolled-out": rolled_out(waiting)})).steps
}
