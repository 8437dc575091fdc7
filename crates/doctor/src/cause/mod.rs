//! The reasons why a pod waits for a volume. Each has its own file, together with its way out.
//!
//! They are tried in the order of `causes.yaml`, which has their titles.

mod attach_limit;
mod autoscaler;
mod changed;
mod dead_mount;
mod delay;
mod drain;
mod driver_error;
mod follower;
mod mislabelled;
mod moved_pin;
mod no_node;
mod node_lost;
mod node_name;
mod node_not_ready;
mod other;
mod replicas;
mod rollout_overlap;
mod same_disk;
mod scale;
mod second_mount;
mod shared_claim;
mod stalled;
mod unbound_claim;

pub(super) use delay::{FORCED, SLOW};

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use super::action::{Purpose, SuggestedAction};
use super::waiting_pod::WaitingPod;
use engine::analysis::eligibility::Eligibility;
use engine::model::labels::Labels;
use engine::model::live_pod::Pod;
use engine::model::metadata::Metadata;
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::pod::PodTemplate;
use engine::model::workload::{Workload, WorkloadKind};

/// Objects as the API server returns them, for fields that the facts do not hold.
pub(super) type Documents = HashMap<ObjectRef, Value>;

/// A reason why a pod waits for a volume. The head of `causes.yaml` explains its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The public name, which never changes.
    pub code: String,
    /// The title, in a few words.
    pub title: String,
    /// Whether the wait ends by itself.
    #[serde(default)]
    pub passes: bool,
    /// Whether the objects that a step changes must be read in full.
    #[serde(default)]
    pub(super) documents: bool,
}

/// The judgement of a cause that applies. Only the steps depend on documents.
#[derive(Default)]
pub(super) struct Judgement {
    /// The explanation, in sentences.
    pub(super) explanation: String,
    /// The steps to take, the safest first.
    pub(super) steps: Vec<SuggestedAction>,
}

const YAML: &str = include_str!("../causes.yaml");

/// Every cause, in the order in which they are tried. The last one always applies. A test proves
/// that the embedded file can be read.
pub static CAUSES: LazyLock<Vec<Cause>> =
    LazyLock::new(|| serde_saphyr::from_str(YAML).unwrap_or_default());

impl WaitingPod<'_> {
    /// The judgement that would apply if the volume were declared exclusive. Only one node, or one pod,
    /// can have such a volume at a time.
    fn exclusive_use(&self) -> Option<Judgement> {
        [
            moved_pin::judge,
            rollout_overlap::judge,
            autoscaler::judge,
            replicas::judge,
            shared_claim::judge,
        ]
        .into_iter()
        .find_map(|judge| judge(self))
    }

    /// The objects whose documents some commands need.
    pub(super) fn wants(&self) -> Vec<ObjectRef> {
        let workloads = std::iter::once(self.pod).chain(self.staying()).filter_map(reference);
        let cron_jobs = self
            .view()
            .workloads_using(&self.pod.meta.namespace, self.claim)
            .into_iter()
            .filter(|user| user.kind == WorkloadKind::CronJob)
            .map(|user| wanted(ObjectKind::Workload(user.kind), &user.metadata));
        let autoscaler =
            self.autoscaler().map(|autoscaler| wanted(autoscaler.kind(), &autoscaler.metadata));
        let old = self.old_pod().and_then(rollout_overlap::replica_set);
        let right = self.right_revisions();
        workloads.chain(cron_jobs).chain(autoscaler).chain(old).chain(right).collect()
    }

    /// Whether the pods of a workload of this kind are replaced, and the volume lets them go to another
    /// node.
    pub(super) fn may_move(&self, kind: Option<WorkloadKind>) -> bool {
        let is_made_again = matches!(
            kind,
            Some(WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::ReplicaSet)
        );
        is_made_again && !self.used.keeps_its_node() && self.owner_pod().is_none()
    }

    /// Whether the template of a workload admits the node of another pod, as it is and without its
    /// `nodeSelector`. Where the node or the workload is not known, it does.
    fn admits(&self, workload: Option<&Workload>, other: &Pod) -> (bool, bool) {
        let node = other.node.as_ref().and_then(|name| self.view().node(name).found());
        let (Some(workload), Some(node)) = (workload, node) else {
            return (true, true);
        };
        let facts = self.index.facts.objects;
        let admits = |template: &PodTemplate| Eligibility::new(template, [], facts).admits(node);
        let free = PodTemplate { node_selector: Labels::default(), ..workload.template.clone() };
        (admits(&workload.template), admits(&free))
    }
}

impl Cause {
    /// The cause with this name.
    pub fn named(code: &str) -> Option<&'static Self> {
        CAUSES.iter().find(|cause| cause.code == code)
    }

    /// The cause for which the pod waits.
    pub(super) fn of(waiting: &WaitingPod<'_>) -> Option<&'static Self> {
        CAUSES.iter().find(|cause| cause.judge(waiting).is_some())
    }

    /// The judgement, if the cause applies. It is asked for every waiting pod, to find the cause,
    /// and for the first pod of each case once more with the documents, for the steps.
    pub(super) fn judge(&self, waiting: &WaitingPod<'_>) -> Option<Judgement> {
        let judge = match self.code.as_str() {
            "node-name-unbound" => node_name::judge,
            "unbound-claim" => unbound_claim::judge,
            "dead-mount" => dead_mount::judge,
            "node-lost" => node_lost::judge,
            "mislabelled-volume" => mislabelled::judge,
            "same-disk" => same_disk::judge,
            "second-mount" => second_mount::judge,
            "driver-error" => driver_error::judge,
            "attach-limit" => attach_limit::judge,
            "no-node-for-volume" => no_node::judge,
            "follower" => follower::judge,
            "drain-with-co-location" => drain::judge,
            "moved-pin" => moved_pin::judge,
            "rollout-overlap" => rollout_overlap::judge,
            "autoscaler" => autoscaler::judge,
            "too-many-replicas" => replicas::judge,
            "shared-claim" => shared_claim::judge,
            "node-not-ready" => node_not_ready::judge,
            "stalled" => stalled::judge,
            "delay" => delay::judge,
            "other" => other::judge,
            _ => return None,
        };
        judge(waiting)
    }
}

/// An object whose document is wanted.
fn wanted(kind: ObjectKind, metadata: &Metadata) -> ObjectRef {
    kind.reference(&metadata.namespace, &metadata.name)
}

/// The kind of the workload that makes another pod when this one is deleted.
pub(super) fn maker(pod: &Pod) -> Option<WorkloadKind> {
    kind_of(pod).filter(|kind| *kind != WorkloadKind::Pod)
}

/// The kind of workload that made a pod, if it is known.
pub(super) fn kind_of(pod: &Pod) -> Option<WorkloadKind> {
    WorkloadKind::from_name(&pod.workload().0)
}

/// The reference to the workload that made a pod, if its kind is known.
fn reference(pod: &Pod) -> Option<ObjectRef> {
    let kind = ObjectKind::Workload(kind_of(pod)?);
    Some(kind.reference(&pod.meta.namespace, &pod.workload().1))
}

/// The largest number of nodes or volumes that a message names.
pub(super) const NAMED: usize = 5;

/// The workload that made a pod in a sentence, such as `Deployment web`; the pod itself if nothing
/// made it.
pub(super) fn owner(pod: &Pod) -> String {
    let (kind, name) = pod.workload();
    format!("{kind} {name}")
}

/// The pod in a sentence, such as `pod web-1 of Deployment web`.
pub(super) fn describe(pod: &Pod) -> String {
    let (kind, name) = pod.workload();
    if kind == "Pod" {
        format!("pod {name}")
    } else {
        format!("pod {} of {kind} {name}", pod.meta.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_causes_are_read() {
        let causes: Vec<Cause> = serde_saphyr::from_str(YAML).unwrap();
        assert_eq!(causes.last().unwrap().code, "other");
    }
}
