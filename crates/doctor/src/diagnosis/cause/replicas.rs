//! More pods of one workload than the volume can have on their nodes.

use serde_json::{Value, json};

use super::changed::{self, Changed};
use super::scale;
use super::{
    Cause, Documents, Purpose, Steps, SuggestedAction, another_storage, limit, named, whereabouts,
};
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::workload::WorkloadKind;

pub(super) const CAUSE: Cause = Cause {
    code: "too-many-replicas",
    title: "More pods than the volume can have",
    passes: false,
    judge,
    steps: Steps::WithDocuments(steps),
};

fn judge(stuck: &WaitingPod<'_>) -> Option<String> {
    let (kind, name) = stuck.pod.workload();
    let other = stuck.siblings().next()?;
    let wanted = stuck.workload().map(|workload| workload.replicas);
    let wanted = match wanted.filter(|count| *count > 1) {
        Some(count) => format!("{kind} {name} wants {count} pods"),
        None => format!("{kind} {name} wants a pod on each of its nodes, or more than one"),
    };
    Some(format!(
        "{wanted}, but {}; {} {} has it.",
        limit(stuck),
        named(other),
        whereabouts(other),
    ))
}

fn steps(stuck: &WaitingPod<'_>, documents: &Documents) -> Vec<SuggestedAction> {
    let changed = Changed::behind(stuck.pod, stuck, documents);
    let way = match changed.kind {
        _ if changed.scales() => changed.change(
            scale::command(stuck, &changed, stuck.pod, 1),
            &scale::left(stuck),
        ),
        Some(WorkloadKind::Job | WorkloadKind::CronJob) => changed.change(
            one_at_a_time(stuck, &changed),
            "One pod works at a time, and the Job takes longer.",
        ),
        Some(WorkloadKind::DaemonSet) => {
            let attached = stuck.foreign_attachments().map(|it| it.node.clone());
            let Some(node) = attached.chain(stuck.holding_nodes()).next() else {
                return Vec::new();
            };
            let patch = json!({"spec": {"template": {"spec": {"nodeSelector": {
                "kubernetes.io/hostname": node.as_str(),
            }}}}});
            changed.change(
                stuck.in_namespace(&[
                    "patch",
                    &changed.name,
                    "--type=merge",
                    "-p",
                    &patch.to_string(),
                ]),
                &format!(
                    "It runs on node {node} only, and restarts there once. A volume for each node is the better way: a generic ephemeral volume in the template."
                ),
            )
        }
        _ => {
            let way = SuggestedAction::new(
                Purpose::WayOut,
                stuck.in_namespace(&["delete", &format!("pod/{}", stuck.pod.meta.name)]),
                &format!("The pod is deleted; {} may create another.", changed.shown),
            );
            return vec![way, another_storage(stuck)];
        }
    };
    let mut steps = changed::kept(stuck, vec![way]);
    steps.push(another_storage(stuck));
    steps
}

/// The Job that is there is changed, and the CronJob that makes the next one.
fn one_at_a_time(stuck: &WaitingPod<'_>, changed: &Changed<'_>) -> String {
    let one = json!({"spec": {"parallelism": 1}});
    let patch = |name: &str, patch: &Value| {
        stuck.in_namespace(&["patch", name, "--type=merge", "-p", &patch.to_string()])
    };
    let job = patch(&WaitingPod::target_of(stuck.pod), &one);
    if changed.kind == Some(WorkloadKind::Job) {
        return job;
    }
    let next = json!({"spec": {"jobTemplate": one}});
    format!("{job} && {}", patch(&changed.name, &next))
}
