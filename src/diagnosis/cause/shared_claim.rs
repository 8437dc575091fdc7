//! Two workloads use one claim, and their pods are on two nodes.

use serde_json::json;

use super::{Cause, Purpose, Step, another_storage, limit, named, sentence, whereabouts};
use crate::diagnosis::Pod;
use crate::diagnosis::stuck::Stuck;
use crate::model::pod::HOSTNAME;
use crate::model::workload::WorkloadKind;
use crate::situation::Hold;

pub(super) const CAUSE: Cause = Cause {
    code: "shared-claim",
    title: "Another workload has the volume",
    passes: false,
    judge,
    steps: |stuck, _| steps(stuck),
};

fn judge(stuck: &Stuck<'_>) -> Option<String> {
    let other = holder(stuck)?;
    Some(format!(
        "{}, and {} {} has it.",
        sentence(&limit(stuck)),
        named(other),
        whereabouts(other),
    ))
}

fn holder<'a>(stuck: &Stuck<'a>) -> Option<&'a Pod> {
    let own = stuck.pod.workload();
    let mut others = stuck.staying();
    others.find(|other| other.workload() != own)
}

fn steps(stuck: &Stuck<'_>) -> Vec<Step> {
    let Some(other) = holder(stuck) else {
        return Vec::new();
    };
    let (own, theirs) = (shown(stuck.pod), shown(other));
    let mut steps = vec![stop(
        stuck,
        stuck.pod,
        &format!(
            "{own} does not run as long as {theirs} has the volume. Nothing that runs is stopped."
        ),
    )];
    steps.extend(together(stuck, other));
    steps.push(stop(
        stuck,
        other,
        &format!("{theirs} stops, and {own} gets the volume once it is gone."),
    ));
    steps.push(another_storage(stuck));
    steps
}

fn shown(pod: &Pod) -> String {
    let (kind, name) = pod.workload();
    format!("{kind} {name}")
}

/// What makes the pods of a workload go away.
fn stop(stuck: &Stuck<'_>, pod: &Pod, cost: &str) -> Step {
    let (kind, name) = pod.workload();
    let target = Stuck::target_of(pod);
    let command = match WorkloadKind::from_name(&kind) {
        Some(
            WorkloadKind::Deployment
            | WorkloadKind::ReplicaSet
            | WorkloadKind::StatefulSet
            | WorkloadKind::ReplicationController,
        ) => stuck.in_namespace(&["scale", &target, "--replicas=0"]),
        Some(WorkloadKind::Job) => stuck.in_namespace(&[
            "patch",
            &target,
            "--type=merge",
            "-p",
            r#"{"spec":{"suspend":true}}"#,
        ]),
        _ => stuck.in_namespace(&["delete", &format!("pod/{}", pod.meta.name)]),
    };
    let again = match WorkloadKind::from_name(&kind) {
        Some(WorkloadKind::Pod | WorkloadKind::Job) => String::new(),
        Some(WorkloadKind::DaemonSet) | None => format!(" {kind} {name} may make another pod."),
        Some(_) => String::new(),
    };
    Step::new(Purpose::WayOut, command, &format!("{cost}{again}"))
}

/// Affinity that leads the pods of the workload that waits to those that have the volume.
fn together(stuck: &Stuck<'_>, other: &Pod) -> Option<Step> {
    let workload = stuck.workload()?;
    let led = matches!(
        workload.kind,
        WorkloadKind::Deployment | WorkloadKind::StatefulSet
    );
    let labels = stuck.common_labels(other);
    let already = !workload.template.affinity.is_empty();
    if !led || already || labels.is_empty() || matches!(stuck.used.hold, Hold::SinglePod) {
        return None;
    }
    let labels: serde_json::Map<_, _> = labels
        .iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    let patch = json!({"spec": {"template": {"spec": {"affinity": {"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "labelSelector": {"matchLabels": labels},
            "topologyKey": HOSTNAME,
        }],
    }}}}}});
    Some(Step::new(
        Purpose::WayOut,
        stuck.in_namespace(&[
            "patch",
            &Stuck::target_of(stuck.pod),
            "--type=merge",
            "-p",
            &patch.to_string(),
        ]),
        &format!(
            "Both run, on one node: {} restarts beside {} if that node has room for it, and waits everywhere else.",
            shown(stuck.pod),
            shown(other)
        ),
    ))
}
