//! A rollout starts the new pod before the old one stops, and the old one keeps the volume.
//!
//! The new pod waits for the volume, and the Deployment controller waits for the new pod
//! before it stops the old one: neither moves again. What makes ReplicaSets as a Deployment
//! does, Argo's Rollout for example, does the same.

use serde_json::Value;

use super::changed::{self, Changed, Way};
use super::{
    Cause, Documents, Purpose, Steps, SuggestedAction, another_storage, limit, named, reference,
    whereabouts,
};
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;
use engine::model::object::{ObjectKind, ObjectRef};
use engine::model::workload::{Workload, WorkloadKind};
use engine::remedy;
use engine::rules::codes;

pub(super) const CAUSE: Cause = Cause {
    code: "rollout-overlap",
    title: "The rollout starts the new pod before the old one stops",
    passes: false,
    judge,
    steps: Steps::WithDocuments(end_rollout),
};

fn judge(stuck: &WaitingPod<'_>) -> Option<String> {
    let old = old_pod(stuck)?;
    Some(format!(
        "The rollout of {} waits for pod {} before it stops {}, which is {} and has the volume; {}. Neither moves again.",
        rolled_out(stuck),
        stuck.pod.meta.name,
        named(old),
        whereabouts(old),
        limit(stuck),
    ))
}

/// What is rolled out, in words.
pub(super) fn rolled_out(stuck: &WaitingPod<'_>) -> String {
    let workload = stuck.workload();
    match workload.and_then(|it| it.metadata.controller.as_deref()) {
        Some(owner) if workload.is_some_and(makes_a_revision) => {
            format!("{} {}", owner.kind, owner.name)
        }
        _ => WaitingPod::target_of(stuck.pod),
    }
}

/// The pod of another revision that has the volume and is kept until the new one is ready.
pub(super) fn old_pod<'a>(stuck: &WaitingPod<'a>) -> Option<&'a Pod> {
    let (kind, _) = stuck.pod.workload();
    if kind != WorkloadKind::Deployment.name() {
        return of_the_same_owner(stuck);
    }
    let own = stuck.pod.revision();
    // Where a pod like it is the one that has the volume, the rollout is not to blame.
    if stuck.siblings().any(|other| other.revision() == own) {
        return None;
    }
    if let Some(workload) = stuck.workload() {
        let room = workload.strategy.room(workload.replicas)?;
        if room.unavailable >= workload.replicas {
            return None;
        }
    }
    stuck.siblings().find(|other| other.revision() != own)
}

/// A pod of another ReplicaSet of the same controller.
fn of_the_same_owner<'a>(stuck: &WaitingPod<'a>) -> Option<&'a Pod> {
    let own = stuck.workload().filter(|it| makes_a_revision(it))?;
    if stuck.siblings().next().is_some() {
        return None;
    }
    let mut others = stuck.staying();
    others.find(|other| {
        stuck.workload_of(other).is_some_and(|it| {
            makes_a_revision(it) && it.metadata.controller == own.metadata.controller
        })
    })
}

/// Whether the pods of a workload are one revision of what something else rolls out.
fn makes_a_revision(workload: &Workload) -> bool {
    workload.metadata.controller.is_some()
        && matches!(
            workload.kind,
            WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController
        )
}

/// What helps against a rollout that cannot end: take it back, or have the old pod
/// stopped first.
pub(super) fn end_rollout(stuck: &WaitingPod<'_>, documents: &Documents) -> Vec<SuggestedAction> {
    let changed = Changed::behind(stuck.pod, stuck, documents);
    if changed.kind != Some(WorkloadKind::Deployment) {
        return of_another_controller(stuck, &changed);
    }
    let mut ways = Vec::from_iter(undo(stuck, &changed, documents));
    if let Some(workload) = stuck.workload()
        && let Some((_, reference)) = reference(stuck.pod)
        && let Some(document) = documents.get(&reference)
    {
        ways.extend(other_strategies(stuck, &changed, workload, document));
    }
    let mut steps = changed::kept(stuck, ways);
    if stuck.workload().is_some_and(|it| it.paused) {
        // Where the manifest says so, whoever delivers it would pause it again.
        let suspended = steps.iter().take_while(|it| it.purpose == Purpose::Before);
        steps.insert(suspended.count(), resume(stuck, &changed));
    }
    steps
}

/// A paused Deployment cannot be taken back (`DeploymentRollbacker` in kubectl's
/// `pkg/polymorphichelpers/rollback.go`), and rolls nothing out.
fn resume(stuck: &WaitingPod<'_>, changed: &Changed<'_>) -> SuggestedAction {
    SuggestedAction::new(
        Purpose::Before,
        stuck.in_namespace(&["rollout", "resume", &changed.name]),
        &format!(
            "Nothing stops. {} is paused and does none of what follows until it is resumed; what was changed in its template meanwhile is rolled out.",
            changed.shown
        ),
    )
}

/// The annotation with which the Deployment controller numbers the ReplicaSets
/// (`RevisionAnnotation` in `pkg/controller/deployment/util`).
const REVISION: &str = "deployment.kubernetes.io/revision";

/// Back to the revision whose pod runs. Without its number, kubectl goes to the second
/// newest one, which has got stuck as well where more than one rollout has, and from there
/// to the newest again (`deploymentRevision` in `pkg/polymorphichelpers/rollback.go`).
fn undo<'a>(
    stuck: &WaitingPod<'_>,
    changed: &'a Changed<'_>,
    documents: &Documents,
) -> Option<Way<'a>> {
    let (_, replica_set) = replica_set(old_pod(stuck)?)?;
    let number = documents
        .get(&replica_set)
        .and_then(|it| it["metadata"]["annotations"][REVISION].as_str())
        .and_then(|number| number.parse::<u64>().ok());
    let name = &replica_set.name;
    let undo = |revision: &str| stuck.in_namespace(&["rollout", "undo", &changed.name, revision]);
    let (command, back) = match number {
        Some(number) => (
            undo(&format!("--to-revision={number}")),
            format!("to revision {number}, the one that runs"),
        ),
        None => {
            let path = format!(
                "jsonpath={{.metadata.annotations.{}}}",
                REVISION.replace('.', r"\.")
            );
            let look = ["get", &format!("replicaset/{name}"), "-o", &path];
            (
                format!(
                    "{}=\"$({})\"",
                    undo("--to-revision"),
                    stuck.in_namespace(&look)
                ),
                "to the revision that runs; its number could not be read here, so the command asks for it".to_owned(),
            )
        }
    };
    Some(changed.change(
        command,
        &format!(
            "Nothing stops: the old pod keeps running. The Deployment is taken back {back}. The next rollout ends in the same way until one of the following is done."
        ),
    ))
}

/// The ReplicaSet of a Deployment's pod, by whose name that Deployment was found.
pub(super) fn replica_set(pod: &Pod) -> Option<(ObjectKind, ObjectRef)> {
    let (kind, name) = pod.workload();
    let hash = pod.revision()?;
    let kind_of_set = ObjectKind::Workload(WorkloadKind::ReplicaSet);
    (kind == WorkloadKind::Deployment.name()).then(|| {
        let name = format!("{name}-{hash}");
        (
            kind_of_set,
            kind_of_set.reference(&pod.meta.namespace, &name),
        )
    })
}

/// The strategies that stop the old pod first.
fn other_strategies<'a>(
    stuck: &WaitingPod<'_>,
    changed: &'a Changed<'_>,
    workload: &Workload,
    document: &Value,
) -> Vec<Way<'a>> {
    let suited = ["recreate", "zero-surge"]
        .into_iter()
        .filter_map(remedy::named)
        .filter(|remedy| remedy.suits(codes::ROLLING_UPDATE_OVERLAP, workload.kind));
    suited
        .filter_map(|remedy| {
            let patch = serde_json::to_string(&remedy.patch(workload, document)?).ok()?;
            Some(changed.change(
                stuck.in_namespace(&["patch", &changed.name, "--type=json", "-p", &patch]),
                &format!("The rollout goes on. {}", remedy.cost),
            ))
        })
        .collect()
}

/// The same for what rolls ReplicaSets out itself. Argo's Rollout is taken back by its
/// `status.abort` (`kubectl argo rollouts abort`): its pods are those of the revision before
/// again, and its template stays as it is.
fn of_another_controller(stuck: &WaitingPod<'_>, changed: &Changed<'_>) -> Vec<SuggestedAction> {
    if stuck.workload().and_then(changed::rollout).is_none() {
        return vec![
            SuggestedAction::note(&format!(
                "Take the new revision back, or have the old pod stopped first, at {}: its controller may undo a change to {} by hand.",
                rolled_out(stuck),
                changed.shown
            )),
            another_storage(stuck),
        ];
    }
    let abort = r#"{"status":{"abort":true}}"#;
    let way = Way::of(
        stuck.in_namespace(&[
            "patch",
            &changed.name,
            "--subresource=status",
            "--type=merge",
            "-p",
            abort,
        ]),
        "Nothing stops: the old pod keeps running. The rollout is aborted, and the Rollout is Degraded until its template is set back.",
    );
    vec![
        way.step,
        SuggestedAction::note(
            "A canary stops the old pod first with maxSurge 0 and maxUnavailable 1 in spec.strategy.canary, unless it routes traffic. The strategy blueGreen always runs both revisions at once, and so does a canary that routes traffic.",
        ),
        another_storage(stuck),
    ]
}
