//! Two workloads use one claim, and their pods are on two nodes.

use serde_json::json;

use super::scale;
use super::target::{self, Target};
use super::{
    Cause, Documents, Purpose, Step, another_storage, limit, named, sentence, whereabouts,
};
use crate::diagnosis::stuck::Stuck;
use crate::diagnosis::{Pod, scaled_object};
use crate::model::pod::HOSTNAME;
use crate::model::workload::WorkloadKind;
use crate::situation::Hold;

pub(super) const CAUSE: Cause = Cause {
    code: "shared-claim",
    title: "Another workload has the volume",
    passes: false,
    judge,
    steps,
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

fn steps(stuck: &Stuck<'_>, documents: &Documents) -> Vec<Step> {
    let Some(other) = holder(stuck) else {
        return Vec::new();
    };
    let own = Target::behind(stuck.pod, stuck, documents);
    let theirs = Target::behind(other, stuck, documents);
    let mut ways = vec![stop(
        stuck,
        stuck.pod,
        &own,
        &format!(
            "{} does not run as long as {} has the volume. Nothing that runs is stopped.",
            own.shown, theirs.shown
        ),
    )];
    ways.extend(together(stuck, other, &own, &theirs));
    ways.push(stop(
        stuck,
        other,
        &theirs,
        &format!(
            "{} stops, and {} gets the volume once it is gone.",
            theirs.shown, own.shown
        ),
    ));
    let mut steps = target::kept(stuck, &[&own, &theirs], ways);
    steps.push(another_storage(stuck));
    steps
}

/// What makes the pods of a workload go away.
fn stop(stuck: &Stuck<'_>, pod: &Pod, target: &Target<'_>, cost: &str) -> Step {
    if let Some(name) = scaled_object_of(stuck, pod) {
        let run = |arguments: &[String]| {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            stuck.in_namespace(&arguments)
        };
        let resume = run(&scaled_object::resume(name));
        return target.change(
            run(&scaled_object::pause(name)),
            &format!(
                "{cost} KEDA would scale it up from 0 again, and is paused there until `{resume}`."
            ),
        );
    }
    let delete = || stuck.in_namespace(&["delete", &format!("pod/{}", pod.meta.name)]);
    match target.kind {
        _ if target.scales() => target.change(scale::command(stuck, target, pod, 0), cost),
        Some(WorkloadKind::Job) => {
            let patch = json!({"spec": {"suspend": true}}).to_string();
            target.change(
                stuck.in_namespace(&["patch", &target.name, "--type=merge", "-p", &patch]),
                cost,
            )
        }
        Some(WorkloadKind::Pod) => Step::new(Purpose::WayOut, delete(), cost),
        _ => Step::new(
            Purpose::WayOut,
            delete(),
            &format!("{cost} {} may make another pod.", target.shown),
        ),
    }
}

/// The ScaledObject of KEDA that scales the workload of a pod.
fn scaled_object_of<'a>(stuck: &Stuck<'a>, pod: &Pod) -> Option<&'a str> {
    let workload = stuck.workload_of(pod)?;
    let metadata = &workload.metadata;
    let view = stuck.index.facts.objects.view;
    let autoscalers = view.autoscalers_of(workload.kind, &metadata.namespace, &metadata.name);
    let mut scaled = autoscalers.into_iter().filter_map(|it| it.scaled_object());
    Some(scaled.next()?.as_str())
}

/// Affinity that leads the pods of the workload that waits to those that have the volume.
fn together(stuck: &Stuck<'_>, other: &Pod, own: &Target<'_>, theirs: &Target<'_>) -> Option<Step> {
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
    Some(own.change(
        stuck.in_namespace(&[
            "patch",
            &own.name,
            "--type=merge",
            "-p",
            &patch.to_string(),
        ]),
        &format!(
            "Both run, on one node: {} restarts beside {} if that node has room for it, and waits everywhere else.",
            own.shown, theirs.shown
        ),
    ))
}
