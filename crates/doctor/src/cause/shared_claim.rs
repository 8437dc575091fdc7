//! Two workloads use one claim, and their pods are on two nodes.

use serde_json::{Value, json};

use super::changed::Changed;
use super::{Judgement, SuggestedAction, describe, reference};
use crate::waiting_pod::WaitingPod;
use engine::analysis::AttachConstraint;
use engine::model::Text;
use engine::model::autoscaler::Autoscaler;
use engine::model::live_pod::Pod;
use engine::model::pod::HOSTNAME;
use engine::model::workload::WorkloadKind;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let other = waiting.other_workload()?;
    let own = Changed::behind(waiting.pod, waiting);
    let theirs = Changed::behind(other, waiting);
    // The claim and its data are deleted together with the pod that owns the claim.
    let owner = waiting.owner_pod();
    let owns = |pod: &Pod| owner.is_some_and(|owner| pod.meta.name == owner);
    let stopped = |pod: &Pod, changed: &Changed<'_>, rival: &Changed<'_>| {
        if owns(pod) { Vec::new() } else { waiting.stop(pod, changed, rival) }
    };
    let stop = stopped(waiting.pod, &own, &theirs);
    let together = waiting.together(other, &own, &theirs);
    let stop_theirs = stopped(other, &theirs, &own);
    // The delivery of a CronJob does not restore the Job that a way out deletes.
    let is_changed = |changed: &Changed<'_>, ways: &[SuggestedAction]| {
        !ways.is_empty() && changed.kind != Some(WorkloadKind::CronJob)
    };
    let mut objects = Vec::new();
    if is_changed(&own, &stop) || together.is_some() {
        objects.push(&own);
    }
    if is_changed(&theirs, &stop_theirs) && own.name != theirs.name {
        objects.push(&theirs);
    }
    let ways = [stop, together.unwrap_or_default(), stop_theirs].concat();
    let mut steps = waiting.with_delivery_steps(ways, &objects);
    for changed in [&own, &theirs] {
        steps.extend(changed.told(waiting, "owner-unknown", Value::Null).steps);
    }
    let more = json!({"holder": describe(other), "holder-node": other.node, "owner": owner});
    let loser = if owns(other) { &own } else { &theirs };
    let told = loser.told(waiting, "shared-claim", more);
    steps.extend(told.steps);
    Some(Judgement { steps, ..told })
}

impl<'a> WaitingPod<'a> {
    /// The way out that stops the pods of a workload, if it is known what its owner does then. KEDA
    /// writes an autoscaler from a ScaledObject but, unlike an autoscaler, also scales up from 0.
    fn stop(&self, pod: &Pod, changed: &Changed<'_>, rival: &Changed<'_>) -> Vec<SuggestedAction> {
        let more = json!({
            "rival": rival.display_name,
            "runs": pod.meta.name != self.pod.meta.name,
            "scaled-object": self.scaled_object_of(pod),
            "blocked": self.blocked(pod, 0),
            "bare": pod.meta.controller.is_none(),
            "run": WaitingPod::target_of(pod),
        });
        changed.told(self, "stop", more).steps
    }

    /// The ScaledObject of KEDA that scales the workload of a pod.
    fn scaled_object_of(&self, pod: &Pod) -> Option<&'a Text> {
        let autoscalers = self.view().autoscalers(self.workload_of(pod)?);
        autoscalers.into_iter().find_map(Autoscaler::scaled_object)
    }

    /// The way out that adds affinity: the pods of the waiting workload follow those that have the
    /// volume.
    fn together(
        &self,
        other: &Pod,
        own: &Changed<'_>,
        theirs: &Changed<'_>,
    ) -> Option<Vec<SuggestedAction>> {
        let workload = own.workload?;
        let for_one_pod = matches!(self.used.attach_constraint, AttachConstraint::SinglePod)
            || self.refuses_second_mount();
        // Whether pods of a changed template replace the waiting ones. A StatefulSet does not replace
        // a pod that is not ready (`processReplica` in
        // `pkg/controller/statefulset/stateful_set_control.go`), and a CronJob waits for the Job that
        // runs: that one must be deleted first. A Job keeps the template with which it was created.
        let is_replaced = matches!(
            workload.kind,
            WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::CronJob
        );
        let (admitted, freed) = self.admits(own.workload, other);
        if for_one_pod || !is_replaced || !freed || !workload.template.affinity.is_empty() {
            return None;
        }
        let affinity = json!({"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{
                "labelSelector": self.selector(other, theirs)?,
                "topologyKey": HOSTNAME,
            }],
        }});
        let mut spec = json!({ "affinity": affinity });
        if !admitted {
            spec["nodeSelector"] = Value::Null;
        }
        let pods = workload.kind.pod_spec_path().rsplit('.');
        let mut patch = pods.fold(spec, |inner, field| json!({ field: inner }));
        // Whether a rollout starts a new pod before it stops an old one.
        let surges = workload.kind == WorkloadKind::Deployment
            && workload.strategy.room(workload.replicas).is_some_and(|room| room.surge > 0);
        if surges {
            // Without this, a new pod could follow another pod than the old one did.
            patch["spec"]["strategy"] = json!({"type": "Recreate", "rollingUpdate": null});
        }
        let more = json!({
            "patch": patch,
            "theirs": theirs.display_name,
            "unselected": !admitted,
            "recreate": surges,
        });
        Some(own.told(self, "together", more).steps)
    }

    /// A label selector for the pods that have the volume. It must still match after the next upgrade:
    /// the labels of a template change with the version of a chart, but the selector of a workload
    /// never does. The pods of a Job end, so there would be nothing to follow.
    fn selector(&self, other: &Pod, theirs: &Changed<'_>) -> Option<Value> {
        match theirs.kind? {
            WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
                let document = self.document(&reference(other)?)?;
                document.pointer("/spec/selector").cloned()
            }
            WorkloadKind::Pod => {
                let labels = &theirs.workload?.template.labels;
                (!labels.is_empty()).then(|| json!({"matchLabels": labels}))
            }
            _ => None,
        }
    }
}
