//! Two workloads use one claim, and their pods are on two nodes.

use serde_json::{Value, json};

use super::changed::{Changed, Way};
use super::{Admits, Judgement, describe, reference};
use crate::waiting_pod::WaitingPod;
use engine::analysis::AttachConstraint;
use engine::model::Text;
use engine::model::autoscaler::Autoscaler;
use engine::model::live_pod::Pod;
use engine::model::pod::HOSTNAME;
use engine::model::workload::{Workload, WorkloadKind};

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let other = waiting.other_workload()?;
    let own = Changed::behind(waiting.pod, waiting);
    let theirs = Changed::behind(other, waiting);
    // The claim and its data are deleted together with the pod that owns the claim.
    let owner = waiting.owner_pod();
    let owns = |pod: &Pod| owner.is_some_and(|owner| pod.meta.name == owner);
    let mut ways = Vec::new();
    if !owns(waiting.pod) {
        ways.extend(waiting.stop(waiting.pod, &own, &theirs));
    }
    ways.extend(waiting.together(other, &own, &theirs).unwrap_or_default());
    if !owns(other) {
        ways.extend(waiting.stop(other, &theirs, &own));
    }
    let mut steps = waiting.with_delivery_steps(ways);
    for changed in [&own, &theirs] {
        if changed.kind.is_none() && !changed.scales() {
            steps.extend(changed.told(waiting, "owner-unknown", Value::Null).steps);
        }
    }
    match owner {
        Some(owner) => {
            let loser = if owns(other) { &own } else { &theirs };
            steps.extend(loser.told(waiting, "claim-of-pod", json!({ "owner": owner })).steps);
        }
        None => steps.extend(waiting.told("another-storage", Value::Null).steps),
    }
    let more = json!({"holder": describe(other), "holder-node": other.node});
    Some(Judgement { steps, ..waiting.told("shared-claim", more) })
}

impl<'a> WaitingPod<'a> {
    /// The way out that stops the pods of a workload, if it is known what its owner does then. KEDA
    /// writes an autoscaler from a ScaledObject but, unlike an autoscaler, also scales up from 0.
    fn stop<'c>(&self, pod: &Pod, changed: &'c Changed<'_>, rival: &Changed<'_>) -> Vec<Way<'c>> {
        let scaled_object = self.scaled_object_of(pod);
        let name = match changed.kind {
            _ if scaled_object.is_some() => "stop-scaled-object",
            _ if changed.scales() => "stop-pods",
            Some(WorkloadKind::Job) => "stop-job",
            Some(WorkloadKind::CronJob) => "stop-run",
            Some(WorkloadKind::Pod) if pod.meta.controller.is_none() => "stop-pod",
            _ => return Vec::new(),
        };
        let more = json!({
            "rival": rival.display_name,
            "runs": pod.meta.name != self.pod.meta.name,
            "scaled-object": scaled_object,
            "blocked": self.blocked(pod, 0),
            "run": WaitingPod::target_of(pod),
        });
        let mut ways = changed.ways(changed.told(self, name, more).steps);
        if name == "stop-run" {
            ways.iter_mut().for_each(|way| way.changed = None);
        }
        ways
    }

    /// The ScaledObject of KEDA that scales the workload of a pod.
    fn scaled_object_of(&self, pod: &Pod) -> Option<&'a Text> {
        let autoscalers = self.view().autoscalers(self.workload_of(pod)?);
        autoscalers.into_iter().find_map(Autoscaler::scaled_object)
    }

    /// The way out that adds affinity: the pods of the waiting workload follow those that have the
    /// volume.
    fn together<'c>(
        &self,
        other: &Pod,
        own: &'c Changed<'_>,
        theirs: &Changed<'_>,
    ) -> Option<Vec<Way<'c>>> {
        let already = !own.workload?.template.affinity.is_empty();
        let for_one_pod = matches!(self.used.attach_constraint, AttachConstraint::SinglePod)
            || self.refuses_second_mount();
        if already || for_one_pod || !replaces(own.kind?) {
            return None;
        }
        let admits = Admits::of(own.workload, other.node.as_deref(), self);
        if admits == Admits::No {
            return None;
        }
        let affinity = json!({"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{
                "labelSelector": self.selector(other, theirs)?,
                "topologyKey": HOSTNAME,
            }],
        }});
        let pods = own.kind?.pod_spec_path().rsplit('.');
        let mut spec = json!({ "affinity": affinity });
        let unselected = admits == Admits::WithoutSelector;
        if unselected {
            spec["nodeSelector"] = Value::Null;
        }
        let mut patch = pods.fold(spec, |inner, field| json!({ field: inner }));
        let recreate = own.workload.is_some_and(surges);
        if recreate {
            // Without this, a new pod could follow another pod than the old one did.
            patch["spec"]["strategy"] = json!({"type": "Recreate", "rollingUpdate": null});
        }
        let more = json!({
            "patch": patch,
            "run": WaitingPod::target_of(self.pod),
            "theirs": theirs.display_name,
            "unselected": unselected,
            "recreate": recreate,
        });
        Some(own.ways(own.told(self, "together", more).steps))
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
                let labels = &self.workload_of(other)?.template.labels;
                (!labels.is_empty()).then(|| json!({"matchLabels": labels}))
            }
            _ => None,
        }
    }
}

/// Whether a rollout starts a new pod before it stops an old one.
fn surges(workload: &Workload) -> bool {
    workload.kind == WorkloadKind::Deployment
        && workload.strategy.room(workload.replicas).is_some_and(|room| room.surge > 0)
}

/// Whether pods of a changed template replace the waiting ones. A StatefulSet does not replace a pod
/// that is not ready (`processReplica` in `pkg/controller/statefulset/stateful_set_control.go`), and
/// a CronJob waits for the Job that runs: that one must be deleted first. A Job keeps the template
/// with which it was created.
const fn replaces(kind: WorkloadKind) -> bool {
    matches!(kind, WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::CronJob)
}
