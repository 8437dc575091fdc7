//! The causes: why a pod waits for a volume, one file each, its way out beside it.
//!
//! They are tried in the order of [`CAUSES`], and the first that fits is the one: who
//! must be dealt with first comes first.

mod autoscaler;
mod delay;
mod drain;
mod driver_error;
mod moved_pin;
pub(super) mod node_lost;
mod replicas;
mod rollout_overlap;
mod shared_claim;
mod stalled;

use serde_json::Value;

use super::observed::Pod;
use super::step::{Purpose, Step};
use super::stuck::Stuck;
use crate::model::workload::WorkloadKind;
use crate::remedy;
use crate::rules::codes;
use crate::situation::Hold;

/// Why a pod waits for a volume.
pub struct Cause {
    /// The public name, which never changes.
    pub code: &'static str,
    /// A few words.
    pub title: &'static str,
    /// Whether it comes to an end by itself.
    pub passes: bool,
    /// Why it is this cause: sentences; `None` where it is another.
    judge: fn(&Stuck<'_>) -> Option<String>,
    /// What to do, the safest first; the document is that of the workload.
    steps: fn(&Stuck<'_>, Option<&Value>) -> Vec<Step>,
}

/// Every cause, in the order in which they are tried. The last fits always.
pub static CAUSES: [Cause; 10] = [
    node_lost::CAUSE,
    driver_error::CAUSE,
    drain::CAUSE,
    moved_pin::CAUSE,
    rollout_overlap::CAUSE,
    autoscaler::CAUSE,
    replicas::CAUSE,
    shared_claim::CAUSE,
    stalled::CAUSE,
    delay::CAUSE,
];

impl Cause {
    /// The cause of that name.
    #[must_use]
    pub fn named(code: &str) -> Option<&'static Self> {
        CAUSES.iter().find(|cause| cause.code == code)
    }

    /// The cause for which the pod waits, and why it is that one.
    pub(super) fn of(stuck: &Stuck<'_>) -> (&'static Self, String) {
        let mut causes = CAUSES.iter();
        causes
            .find_map(|cause| Some((cause, (cause.judge)(stuck)?)))
            .unwrap_or((&CAUSES[CAUSES.len() - 1], String::new()))
    }

    pub(super) fn steps(&self, stuck: &Stuck<'_>, document: Option<&Value>) -> Vec<Step> {
        (self.steps)(stuck, document)
    }
}

impl std::fmt::Debug for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code)
    }
}

/// `pod web-1 of Deployment web`.
fn named(pod: &Pod) -> String {
    let (kind, name) = pod.workload();
    if kind == "Pod" {
        format!("pod {name}")
    } else {
        format!("pod {} of {kind} {name}", pod.meta.name)
    }
}

/// `on node n1`, or what stands for it.
fn whereabouts(pod: &Pod) -> String {
    match &pod.node {
        Some(node) => format!("on node {node}"),
        None => "on no node yet".to_owned(),
    }
}

/// What the volume allows, as part of a sentence.
fn limit(stuck: &Stuck<'_>) -> String {
    let claim = stuck.claim;
    match stuck.used.hold {
        Hold::SinglePod => format!("claim \"{claim}\" is for one pod at a time (ReadWriteOncePod)"),
        _ => format!("claim \"{claim}\" can be attached to one node at a time"),
    }
}

/// The words as the beginning of a sentence.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

/// What helps against a rollout that cannot end: take it back, or have the old pod
/// stopped first.
fn end_rollout(stuck: &Stuck<'_>, document: Option<&Value>) -> Vec<Step> {
    let target = Stuck::target_of(stuck.pod);
    let mut steps = vec![Step::new(
        Purpose::WayOut,
        stuck.in_namespace(&["rollout", "undo", &target]),
        "Nothing stops: the old pod keeps running. The new revision is taken back, and the next rollout ends in the same way until one of the following is done.",
    )];
    let (Some(workload), Some(document)) = (stuck.workload(), document) else {
        return steps;
    };
    for name in ["recreate", "zero-surge"] {
        let suited = remedy::named(name)
            .filter(|remedy| remedy.suits(codes::ROLLING_UPDATE_OVERLAP, workload.kind));
        let patch = suited.and_then(|remedy| Some((remedy, remedy.patch(workload, document)?)));
        let Some((remedy, patch)) = patch else {
            continue;
        };
        let Ok(patch) = serde_json::to_string(&patch) else {
            continue;
        };
        steps.push(Step::new(
            Purpose::WayOut,
            stuck.in_namespace(&["patch", &target, "--type=json", "-p", &patch]),
            &format!("The rollout goes on. {}", remedy.cost),
        ));
    }
    steps.push(Step::told(
        "Write the same strategy into the manifest: the next `kubectl apply`, Helm upgrade or GitOps sync brings the old one back otherwise.",
    ));
    steps
}

/// Fewer pods of the workload that waits.
fn fewer_pods(stuck: &Stuck<'_>) -> Vec<Step> {
    let (kind, name) = stuck.pod.workload();
    let target = Stuck::target_of(stuck.pod);
    let step = match WorkloadKind::from_name(&kind) {
        Some(
            WorkloadKind::Deployment
            | WorkloadKind::ReplicaSet
            | WorkloadKind::StatefulSet
            | WorkloadKind::ReplicationController,
        ) => Step::new(
            Purpose::WayOut,
            stuck.in_namespace(&["scale", &target, "--replicas=1"]),
            "One pod is left. Controllers give up the pods first that are not ready, so that the one that runs goes on; a StatefulSet keeps the one with the lowest number.",
        ),
        Some(WorkloadKind::Job) => Step::new(
            Purpose::WayOut,
            stuck.in_namespace(&[
                "patch",
                &target,
                "--type=merge",
                "-p",
                r#"{"spec":{"parallelism":1}}"#,
            ]),
            "One pod works at a time, and the Job takes longer.",
        ),
        Some(WorkloadKind::DaemonSet) => {
            let attached = stuck.foreign_attachments().map(|it| it.node.clone());
            let Some(node) = attached.chain(stuck.holding_nodes()).next() else {
                return Vec::new();
            };
            let patch = serde_json::json!({"spec": {"template": {"spec": {"nodeSelector": {
                "kubernetes.io/hostname": node.as_str(),
            }}}}});
            Step::new(
                Purpose::WayOut,
                stuck.in_namespace(&["patch", &target, "--type=merge", "-p", &patch.to_string()]),
                &format!(
                    "It runs on node {node} only, and restarts there once. A volume for each node is the better way: a generic ephemeral volume in the template."
                ),
            )
        }
        _ => Step::new(
            Purpose::WayOut,
            stuck.in_namespace(&["delete", &format!("pod/{}", stuck.pod.meta.name)]),
            &format!(
                "The pod goes. {kind} {name} may make another one, as only its controller knows how many it wants."
            ),
        ),
    };
    vec![step, another_storage(stuck)]
}

/// What lets several nodes have the data.
fn another_storage(stuck: &Stuck<'_>) -> Step {
    Step::told(&format!(
        "Pods on several nodes need a volume that can be ReadWriteMany. A claim's access modes cannot be changed, so that it takes a new claim and a copy of the data: `multi-attach-guard migrate -n {} {}` says which class of this cluster can give one, and writes out the whole way.",
        stuck.pod.meta.namespace, stuck.claim
    ))
}

/// Waiting until the pod is ready, or until the one that cannot end is gone.
fn wait(stuck: &Stuck<'_>, purpose: Purpose, cost: &str) -> Step {
    let until = match stuck.cannot_end() {
        true => "--for=delete",
        false => "--for=condition=Ready",
    };
    Step::new(
        purpose,
        stuck.in_namespace(&[
            "wait",
            until,
            "--timeout=10m",
            &format!("pod/{}", stuck.pod.meta.name),
        ]),
        cost,
    )
}
