//! A rollout starts the new pod before the old one stops, and the old one keeps the volume.
//!
//! The new pod waits for the volume, and the Deployment controller waits for the new pod before it
//! stops the old one: neither moves again. Other controllers that roll out ReplicaSets, such as
//! Argo's Rollout, do the same.

use serde_json::{Value, json};

use super::changed::Changed;
use super::{Judgement, Purpose, SuggestedAction, describe, kind_of, reference};
use crate::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;
use engine::model::metadata::Controller;
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::workload::{Workload, WorkloadKind};
use engine::remedy;
use engine::rules::codes;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    waiting.old_pod().map(|old| waiting.stuck_rollout("rollout-overlap", old))
}

impl<'a> WaitingPod<'a> {
    /// The name of the object that is rolled out, for a sentence.
    pub(super) fn rolled_out(&self) -> String {
        match self.workload().and_then(owner_of_revision) {
            Some(owner) => format!("{} {}", owner.kind, owner.name),
            None => WaitingPod::target_of(self.pod),
        }
    }

    /// The pod of another revision that has the volume and is kept until the new one is ready.
    pub(super) fn old_pod(&self) -> Option<&'a Pod> {
        if kind_of(self.pod) != Some(WorkloadKind::Deployment) {
            return self.of_the_same_owner();
        }
        let own = self.pod.revision();
        // If a pod of the same revision has the volume, the rollout is not to blame.
        if self.siblings().any(|other| other.revision() == own) {
            return None;
        }
        if let Some(workload) = self.workload() {
            let room = workload.strategy.room(workload.replicas)?;
            if room.unavailable >= workload.replicas {
                return None;
            }
        }
        self.siblings().find(|other| other.revision() != own)
    }

    /// A pod of another ReplicaSet of the same controller.
    fn of_the_same_owner(&self) -> Option<&'a Pod> {
        let own = self.workload().and_then(owner_of_revision)?;
        if self.siblings().next().is_some() {
            return None;
        }
        self.staying()
            .find(|other| self.workload_of(other).and_then(owner_of_revision) == Some(own))
    }

    /// The judgement with this name about a rollout that cannot end while the old pod has the volume.
    /// The steps take it back, or have the old pod stopped first.
    pub(super) fn stuck_rollout(&self, name: &str, old: &Pod) -> Judgement {
        let more = json!({
            "rolled-out": self.rolled_out(),
            "holder": describe(old),
            "holder-node": old.node,
        });
        let changed = Changed::behind(self.pod, self);
        let steps = if changed.kind == Some(WorkloadKind::Deployment) {
            let ways = replica_set(old)
                .into_iter()
                .flat_map(|set| self.undo(&set, &changed, false))
                .chain(self.other_strategies(&changed).unwrap_or_default());
            self.resumed(&changed, ways.collect())
        } else {
            changed.told(self, "rollout-of-another", more.clone()).steps
        };
        Judgement { steps, ..self.told(name, more) }
    }

    /// The ways out with the steps around them, also the one without which nothing changes what a
    /// paused Deployment runs.
    pub(super) fn resumed(
        &self,
        changed: &Changed<'_>,
        ways: Vec<SuggestedAction>,
    ) -> Vec<SuggestedAction> {
        // Without a way out, nothing is changed that a delivery could undo.
        let objects = if ways.is_empty() { &[][..] } else { &[changed] };
        let mut steps = self.with_delivery_steps(ways, objects);
        if self.workload().is_some_and(|workload| workload.paused) {
            // If the manifest pauses the Deployment, its delivery would pause it again and must be
            // suspended first.
            let suspended = steps.iter().take_while(|step| step.purpose == Purpose::Before);
            // A paused Deployment cannot be taken back (`DeploymentRollbacker` in kubectl's
            // `pkg/polymorphichelpers/rollback.go`) and rolls nothing out.
            let at = suspended.count();
            steps.splice(at..at, changed.told(self, "paused", Value::Null).steps);
        }
        steps
    }

    /// The number of the revision whose pods this ReplicaSet makes.
    pub(super) fn revision(&self, replica_set: &ObjectRef) -> Option<u64> {
        let document = self.document(replica_set)?;
        document["metadata"]["annotations"][REVISION].as_str()?.parse().ok()
    }

    /// Rolls back to the revision of this ReplicaSet: the one that runs, or one that is right. Without a
    /// revision number, kubectl chooses the second newest revision. If several rollouts are stuck, that
    /// revision is stuck as well, and the next undo returns to the newest one (`deploymentRevision` in
    /// `pkg/polymorphichelpers/rollback.go`).
    pub(super) fn undo(
        &self,
        replica_set: &ObjectRef,
        changed: &Changed<'_>,
        is_right: bool,
    ) -> Vec<SuggestedAction> {
        let number = self.revision(replica_set);
        let more = json!({"number": number, "set": replica_set.name, "right": is_right});
        changed.told(self, "undo", more).steps
    }

    /// The strategies that stop the old pod first.
    fn other_strategies(&self, changed: &Changed<'_>) -> Option<Vec<SuggestedAction>> {
        let workload = self.workload()?;
        let document = self.document(&reference(self.pod)?)?;
        let ways = ["recreate", "zero-surge"]
            .into_iter()
            .filter_map(remedy::named)
            .filter(|remedy| remedy.suits(codes::ROLLING_UPDATE_OVERLAP, workload.kind))
            .filter_map(|remedy| {
                let patch = serde_json::to_string(&remedy.patch(workload, document, None)?).ok()?;
                let more = json!({"patch": patch, "cost": remedy.cost});
                Some(changed.told(self, "another-strategy", more).steps)
            });
        Some(ways.flatten().collect())
    }
}

/// The object that a controller rolls out, if the pods of the workload are one revision of it.
fn owner_of_revision(workload: &Workload) -> Option<&Controller> {
    let is_revision =
        matches!(workload.kind, WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController);
    workload.metadata.controller.as_deref().filter(|_| is_revision)
}

/// The annotation with which the Deployment controller numbers the ReplicaSets
/// (`RevisionAnnotation` in `pkg/controller/deployment/util`).
const REVISION: &str = "deployment.kubernetes.io/revision";

/// The ReplicaSet of a Deployment's pod. Its name consists of the Deployment's name and the pod's
/// hash.
pub(super) fn replica_set(pod: &Pod) -> Option<ObjectRef> {
    let hash = pod.revision().filter(|_| kind_of(pod) == Some(WorkloadKind::Deployment))?;
    let name = format!("{}-{hash}", pod.workload().1);
    Some(ObjectKind::Workload(WorkloadKind::ReplicaSet).reference(&pod.meta.namespace, &name))
}
