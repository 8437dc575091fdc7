//! The object that a way out changes, and the owners that would undo the change.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Judgement, Purpose, SuggestedAction, kind_of, reference, wanted};
use crate::delivery::delivery;
use crate::waiting_pod::WaitingPod;
use engine::model::autoscaler::Autoscaler;
use engine::model::live_pod::Pod;
use engine::model::metadata::{Controller, Metadata};
use engine::model::object::ObjectKind;
use engine::model::workload::{Workload, WorkloadKind};

/// The object that a way out changes.
#[derive(Default)]
pub(super) struct Changed<'a> {
    /// The argument for kubectl, such as `deployment/web`.
    pub(super) name: String,
    /// The name in sentences, such as `Deployment web`.
    pub(super) display_name: String,
    /// The name in sentences of the object in the manifests, if different: the CronJob of a Job.
    made_by: Option<String>,
    /// `None` if its kind is not a known kind of workload.
    pub(super) kind: Option<WorkloadKind>,
    /// `None` if the object is not a known kind of workload or could not be read.
    pub(super) workload: Option<&'a Workload>,
    /// The owner in which a change must be made, if there is one.
    controller: Option<&'a Controller>,
    delivery: Option<Value>,
}

impl<'a> Changed<'a> {
    /// The object that a user would change to change the pod.
    pub(super) fn behind(pod: &Pod, waiting: &WaitingPod<'a>) -> Self {
        let namespace = &pod.meta.namespace;
        let workload = waiting.workload_of(pod);
        if let Some(rollout) = workload.and_then(rollout) {
            return Self {
                name: format!("rollouts.argoproj.io/{}", rollout.name),
                display_name: format!("Rollout {}", rollout.name),
                ..Self::default()
            };
        }
        let document = reference(pod).and_then(|object| waiting.document(&object));
        if let Some(owner) = document.and_then(cron_job) {
            let cron_job = WorkloadKind::CronJob;
            let reference = ObjectKind::Workload(cron_job).reference(namespace, &owner.name);
            let view = waiting.view();
            return Self {
                name: format!("cronjob/{}", owner.name),
                display_name: format!("{} of {cron_job} {}", super::owner(pod), owner.name),
                made_by: Some(format!("{cron_job} {}", owner.name)),
                kind: Some(cron_job),
                workload: view.workload(cron_job, namespace, &owner.name).found(),
                delivery: waiting.document(&reference).and_then(delivery),
                ..Self::default()
            };
        }
        Self {
            name: WaitingPod::target_of(pod),
            display_name: super::owner(pod),
            kind: kind_of(pod),
            workload,
            controller: workload.and_then(|workload| workload.metadata.controller.as_deref()),
            delivery: document.and_then(delivery),
            ..Self::default()
        }
    }

    /// The object that a user would change to change the autoscaler. KEDA copies the labels and
    /// annotations of its ScaledObject to the autoscaler, including those of the delivery
    /// (`newHPAForScaledObject` in `controllers/keda/hpa.go`).
    pub(super) fn scaling(autoscaler: &'a Autoscaler, waiting: &WaitingPod<'_>) -> Self {
        let metadata = &autoscaler.metadata;
        let kind = autoscaler.kind();
        let document = waiting.document(&wanted(kind, metadata));
        let keda = autoscaler.scaled_object();
        let (name, display_name) = match keda {
            Some(name) => (format!("scaledobjects.keda.sh/{name}"), format!("ScaledObject {name}")),
            None => {
                let name = &metadata.name;
                (format!("hpa/{name}"), format!("{} {name}", kind.name()))
            }
        };
        Self {
            name,
            display_name,
            controller: metadata.controller.as_deref().filter(|_| keda.is_none()),
            delivery: document.and_then(delivery),
            ..Self::default()
        }
    }

    /// Whether `kubectl scale` changes its number of pods.
    pub(super) fn scales(&self) -> bool {
        match self.kind {
            Some(kind) => kind.scales(),
            None => self.name.starts_with("rollouts."),
        }
    }

    /// The judgement with this name about this object.
    pub(super) fn told(&self, waiting: &WaitingPod<'_>, name: &str, mut more: Value) -> Judgement {
        more["target"] = json!(self.name);
        more["changed"] = json!(self.display_name);
        more["kind"] = json!(self.kind.map(WorkloadKind::name));
        more["scales"] = json!(self.scales());
        more["keeper"] =
            json!(self.controller.map(|owner| format!("{} {}", owner.kind, owner.name)));
        waiting.told(name, more)
    }

    /// The judgement with this name, whose ways out change this object, with the steps that keep the
    /// delivery from undoing them.
    pub(super) fn judged(&self, waiting: &WaitingPod<'_>, name: &str, more: Value) -> Judgement {
        let Judgement { explanation, steps } = self.told(waiting, name, more);
        let is_way = |step: &SuggestedAction| step.purpose == Purpose::WayOut;
        let steps = steps.chunk_by(|a, b| is_way(a) == is_way(b)).flat_map(|steps| {
            if is_way(&steps[0]) {
                waiting.with_delivery_steps(steps.to_vec(), &[self])
            } else {
                steps.to_vec()
            }
        });
        Judgement { explanation, steps: steps.collect() }
    }
}

/// The Rollout of Argo that made a ReplicaSet. Like a Deployment, it scales its ReplicaSets itself
/// and overrides manual scaling.
pub(super) fn rollout(workload: &Workload) -> Option<&Controller> {
    let owner = workload.metadata.controller.as_deref();
    owner.filter(|owner| owner.group() == "argoproj.io" && owner.kind == "Rollout")
}

/// The CronJob that made the Job in this document. Views do not contain the Jobs of CronJobs.
fn cron_job(document: &Value) -> Option<Controller> {
    let owner = *Metadata::deserialize(&document["metadata"]).ok()?.controller?;
    let kind = WorkloadKind::find(&owner.kind, owner.group());
    (kind == Some(WorkloadKind::CronJob)).then_some(owner)
}

impl WaitingPod<'_> {
    /// These ways out, and the steps around them that keep the delivery of each changed object from
    /// undoing the change.
    pub(super) fn with_delivery_steps(
        &self,
        ways: Vec<SuggestedAction>,
        objects: &[&Changed<'_>],
    ) -> Vec<SuggestedAction> {
        let mut around = Vec::new();
        for delivered in objects.chunk_by(|a, b| a.delivery == b.delivery) {
            let Some(mut values) = delivered[0].delivery.clone() else {
                continue;
            };
            let names: Vec<&str> = delivered
                .iter()
                .map(|changed| changed.made_by.as_ref().unwrap_or(&changed.display_name).as_str())
                .collect();
            values["names"] = json!(names.join(" and "));
            around.extend(self.told("delivered", values).steps);
        }
        if objects.iter().any(|changed| changed.delivery.is_none() && changed.controller.is_none())
        {
            around.extend(self.told("undelivered", Value::Null).steps);
        }
        let (before, after): (Vec<_>, Vec<_>) =
            around.into_iter().partition(|step| step.purpose == Purpose::Before);
        [before, ways, after].concat()
    }
}
