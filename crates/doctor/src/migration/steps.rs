//! The steps, in their order. Everything that blocks nothing comes first.

use serde_json::json;

use super::downtime;
use super::inputs::Inputs;
use super::step::{Action, RUNS, STANDS_STILL, Step};
use super::users::User;
use super::{CopyBy, copy, new_claim, snapshot, suspension};
use crate::diagnosis::scaled_object;
use engine::model::workload::WorkloadKind;

/// All steps.
pub(super) fn all(inputs: &Inputs<'_>) -> Vec<Step> {
    let by_snapshot = inputs.wanted.copy == CopyBy::Snapshot;
    let stops = inputs.copies() && inputs.subject.is_used();
    let mut steps = Vec::new();
    steps.extend(
        inputs
            .subject
            .is_used()
            .then(|| suspension::hold_back(inputs)),
    );
    steps.extend(keep_volume(inputs));
    if !by_snapshot {
        steps.push(claim(inputs, "10-claim.yaml", None));
    }
    steps.extend(stops.then(|| downtime::stop(inputs)));
    match inputs.wanted.copy {
        CopyBy::Job => steps.push(copy_files(inputs)),
        CopyBy::Snapshot => {
            steps.push(take_snapshot(inputs));
            steps.push(claim(
                inputs,
                "20-claim.yaml",
                Some(&inputs.snapshot_name()),
            ));
        }
        CopyBy::Nothing => {}
    }
    if inputs.subject.is_used() {
        steps.push(change(inputs));
        steps.extend(stops.then(|| downtime::start(inputs)));
        steps.push(check(inputs));
        steps.push(suspension::hand_over(inputs));
        steps.extend(grow(inputs));
    }
    steps.push(clean_up(inputs));
    steps
}

/// Keeps the data whatever happens to the claim.
fn keep_volume(inputs: &Inputs<'_>) -> Option<Step> {
    let name = inputs.subject.volume_name();
    if name.is_empty() || !inputs.copies() {
        return None;
    }
    let retain = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}});
    Some(Step {
        title: "Keep the old volume, whatever happens to its claim".to_owned(),
        blocks: RUNS.to_owned(),
        text: "From now on the data outlives the claim, even if a tool prunes it. This needs permission to change PersistentVolumes; if you do not have it, ask somebody who does.".to_owned(),
        actions: vec![inputs.kubectl(&[
            "patch",
            &format!("pv/{name}"),
            "--type=merge",
            "-p",
            &retain.to_string(),
        ])],
        then: String::new(),
    })
}

/// The new claim.
fn claim(inputs: &Inputs<'_>, file: &str, snapshot: Option<&str>) -> Step {
    let Inputs {
        subject,
        target,
        wanted,
        name,
        ..
    } = inputs;
    let object = new_claim::manifest(name, subject, target, *wanted, snapshot);
    let mut actions = vec![Inputs::apply(file, object)];
    let mut then = if target.binds_late {
        format!(
            "It stays Pending until the first pod uses it, because class {} waits for that.",
            target.class
        )
    } else {
        actions.push(inputs.run(&[
            "wait",
            "--for=jsonpath={.status.phase}=Bound",
            "--timeout=10m",
            &format!("pvc/{name}"),
        ]));
        String::new()
    };
    if target.unproven {
        then += &format!(
            " Nobody has verified that class {} gives {}. If the claim stays Pending, `kubectl describe` says why, and nothing else has changed so far.",
            target.class, wanted.mode
        );
    }
    let stands_still = snapshot.is_some() && inputs.subject.is_used();
    Step {
        title: "Make the new claim".to_owned(),
        blocks: if stands_still {
            format!("{STANDS_STILL}: as long as the driver takes to restore.")
        } else {
            RUNS.to_owned()
        },
        text: String::new(),
        actions,
        then: then.trim().to_owned(),
    }
}

/// The copy, and its proof.
fn copy_files(inputs: &Inputs<'_>) -> Step {
    let Inputs {
        subject,
        target,
        wanted,
        ..
    } = inputs;
    let name = inputs.copy_name();
    let job = format!("job/{name}");
    let object = copy::manifest(&name, inputs.name, subject, target, *wanted);
    let mut text = match copy::node(subject) {
        Some(node) => format!(
            "The Job runs on node {}, which has the old volume.",
            node.name
        ),
        None => "The scheduler chooses a node that can have both volumes.".to_owned(),
    };
    text += " It mounts the old volume read-only, copies with rsync, then reads both sides again and compares checksums. It overwrites only what it copied itself, so it is safe to run again.";
    if wanted.image == copy::DEFAULT_IMAGE {
        text += &format!(
            " Its image, {}, installs rsync from the package repository of its distribution; if the cluster cannot reach that, choose an image that contains rsync with --image.",
            wanted.image
        );
    }
    text += &restricted(inputs);
    let duration = format!(
        "at 100 MB/s a full volume takes {}, the comparison included; many small files take longer",
        copy::takes(subject)
    );
    Step {
        title: "Copy the files".to_owned(),
        blocks: if subject.is_used() {
            format!("{STANDS_STILL}: {duration}.")
        } else {
            format!("{RUNS} How long it takes: {duration}.")
        },
        text,
        actions: vec![
            Inputs::apply("20-copy.yaml", object),
            inputs.run(&["wait", "--for=condition=Complete", "--timeout=24h", &job]),
            inputs.run(&["logs", &job]),
        ],
        then: format!(
            "The last line must say that everything was copied. While it runs, `kubectl -n {} logs -f {job}` in another window shows what it is doing and, if it fails, why; in that case delete the Job, fix the cause and apply it again, or go back.",
            wanted.namespace
        ),
    }
}

/// Whether the namespace refuses the Job.
fn restricted(inputs: &Inputs<'_>) -> String {
    let view = inputs.facts.cluster.objects.view;
    let namespace = view.namespace(inputs.wanted.namespace).found();
    let level = namespace.and_then(|namespace| {
        namespace
            .metadata
            .labels
            .get("pod-security.kubernetes.io/enforce")
    });
    if level == Some("restricted") {
        format!(
            " Namespace {} enforces the Pod Security Standard restricted, which refuses a Job that runs as root, and only root can give files to their owners: allow baseline there while the copy runs.",
            inputs.wanted.namespace
        )
    } else {
        String::new()
    }
}

fn take_snapshot(inputs: &Inputs<'_>) -> Step {
    let name = inputs.snapshot_name();
    let object = snapshot::manifest(&name, inputs.snapshot_class, inputs.wanted);
    let text = match inputs.snapshot_class {
        Some(class) => format!("With VolumeSnapshotClass {class}, of the same driver."),
        None => "The VolumeSnapshotClasses could not be read: the driver's default one is used, if there is one.".to_owned(),
    };
    let blocks = if inputs.subject.is_used() {
        format!(
            "{STANDS_STILL}: seconds with most drivers, longer with those that copy the data elsewhere first."
        )
    } else {
        RUNS.to_owned()
    };
    Step {
        title: "Take a snapshot of the old volume".to_owned(),
        blocks,
        text,
        actions: vec![
            Inputs::apply("10-snapshot.yaml", object),
            inputs.run(&[
                "wait",
                "--for=jsonpath={.status.readyToUse}=true",
                "--timeout=1h",
                &inputs.snapshot(),
            ]),
        ],
        then: String::new(),
    }
}

/// The new claim in the place of the old one.
fn change(inputs: &Inputs<'_>) -> Step {
    let stops = inputs.copies();
    Step {
        title: "Let the workloads use the new claim".to_owned(),
        blocks: match (stops, inputs.running().any(User::recreates)) {
            (true, _) => format!("{STANDS_STILL}: seconds."),
            (false, true) => format!("{STANDS_STILL} for one restart: its strategy is Recreate."),
            (false, false) => {
                "Pods are replaced one after the other, as in every rollout.".to_owned()
            }
        },
        text: unchangeable(inputs),
        actions: change_actions(inputs, inputs.wanted.claim, inputs.name),
        then: String::new(),
    }
}

fn change_actions(inputs: &Inputs<'_>, from: &str, to: &str) -> Vec<Action> {
    let users = inputs.subject.users.iter();
    users
        .filter(|user| user.can_change())
        .map(|user| inputs.run(&user.change(from, to)))
        .collect()
}

/// What there is to do about users whose pods cannot be given another claim.
fn unchangeable(inputs: &Inputs<'_>) -> String {
    let name = inputs.name;
    let mut text = inputs.of_strangers(|it| format!("Give {it} claim {name} in its own manifest."));
    let users = inputs.subject.users.iter();
    for user in users.filter(|user| !user.can_change()) {
        text += &format!(
            " {} cannot be changed: create it again with claim {name} in its manifest.",
            user.shown(),
        );
    }
    text.trim().to_owned()
}

fn check(inputs: &Inputs<'_>) -> Step {
    let mut actions = Vec::new();
    for user in inputs.running() {
        if matches!(
            user.kind(),
            WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet
        ) {
            actions.push(inputs.run(&["rollout", "status", &user.target(), "--timeout=10m"]));
        }
    }
    let claim = format!("pvc/{}", inputs.name);
    actions.push(inputs.run(&["get", &claim]));
    actions.push(inputs.run(&["describe", &claim]));
    Step {
        title: "Check that it worked".to_owned(),
        blocks: RUNS.to_owned(),
        text: String::new(),
        actions,
        then: format!(
            "The claim must be Bound with access mode {}, and `Used By` must name the new pods. Then look at the application itself: read something old, write something new, and see that it is there after a restart.",
            inputs.wanted.mode.short()
        ),
    }
}

/// More pods for autoscalers that were held at one, and rollouts for Deployments that were
/// held from them; or, `back`, the same as it was.
fn growth(inputs: &Inputs<'_>, back: bool) -> Vec<Action> {
    let mut actions = Vec::new();
    for autoscaler in inputs.autoscalers() {
        if autoscaler.spec.max_replicas == 1 {
            let most = if back { 1 } else { 3 };
            // KEDA would write its autoscaler back.
            let (target, field) = match autoscaler.scaled_object() {
                Some(name) => (scaled_object::target(name), "maxReplicaCount"),
                None => (format!("hpa/{}", autoscaler.metadata.name), "maxReplicas"),
            };
            let patch = json!({"spec": {field: most}}).to_string();
            actions.push(inputs.run(&["patch", &target, "--type=merge", "-p", &patch]));
        }
    }
    for user in inputs.subject.users.iter().filter(|user| user.recreates()) {
        let strategy = if back { "Recreate" } else { "RollingUpdate" };
        let patch = json!([
            {"op": "replace", "path": "/spec/strategy", "value": {"type": strategy}},
        ]);
        actions.push(inputs.run(&user.patch("json", &patch)));
    }
    actions
}

/// What the new mode makes possible.
fn grow(inputs: &Inputs<'_>) -> Option<Step> {
    let actions = growth(inputs, false);
    let limits: Vec<String> = inputs
        .autoscalers()
        .filter(|it| it.spec.max_replicas > 1)
        .map(|it| {
            format!(
                "HorizontalPodAutoscaler {} may ask for up to {} pods",
                it.metadata.name, it.spec.max_replicas
            )
        })
        .collect();
    if actions.is_empty() && limits.is_empty() {
        return None;
    }
    let mut text = "Only if several pods may write at the same time.".to_owned();
    if !limits.is_empty() {
        text += &format!(" {}: that works now.", limits.join(", "));
    }
    if !actions.is_empty() {
        text += " Rollouts without a standstill and more than one pod; change the manifests too:";
    }
    Some(Step {
        title: "Use what is possible now".to_owned(),
        blocks: RUNS.to_owned(),
        text,
        actions,
        then: String::new(),
    })
}

/// Deletes what made the copy. Its pods use both claims, and a snapshot that is left would
/// be taken for that of the next attempt.
fn delete_copy(inputs: &Inputs<'_>) -> Option<Action> {
    let (made_by, how) = match inputs.wanted.copy {
        CopyBy::Job => (
            format!("job/{}", inputs.copy_name()),
            "--cascade=foreground",
        ),
        // It may stay until a claim that is being restored from it is there.
        CopyBy::Snapshot => (inputs.snapshot(), "--wait=false"),
        CopyBy::Nothing => return None,
    };
    Some(inputs.run(&["delete", &made_by, how, "--ignore-not-found"]))
}

fn clean_up(inputs: &Inputs<'_>) -> Step {
    // A pod that was given a node keeps the claim, whatever its phase
    // (`podUsesPVCForDeletion` in `pkg/controller/volume/pvcprotection`).
    let claim = format!("pvc/{}", inputs.wanted.claim);
    let mut actions: Vec<Action> = delete_copy(inputs).into_iter().collect();
    actions.push(inputs.run(&["describe", &claim]));
    actions.push(inputs.run(&["delete", &claim]));
    let volume = inputs.subject.volume_name();
    let then = if volume.is_empty() || !inputs.copies() {
        String::new()
    } else {
        format!(
            "Volume {volume} is then Released and still exists, and so does its disk. Delete both when nobody needs them: the volume with `{} delete pv/{volume}`, the disk at its provider.",
            inputs.facts.cluster.kubectl
        )
    };
    Step {
        title: "Clean up, days later".to_owned(),
        blocks: RUNS.to_owned(),
        text: "When you are sure, and the new volume is in the backups. Without the old claim there is no way back. Remove it from the manifests first. Kubernetes keeps a claim until the last pod that names it is gone, even if that has finished: delete those that `Used By` names, or the last command waits for them.".to_owned(),
        actions,
        then,
    }
}

/// The way back.
pub(super) fn back(inputs: &Inputs<'_>) -> Step {
    let claim = inputs.wanted.claim;
    let mut actions: Vec<Action> = delete_copy(inputs).into_iter().collect();
    if inputs.copies() {
        actions.extend(downtime::stop_actions(inputs, &[claim, inputs.name]));
    }
    actions.extend(change_actions(inputs, inputs.name, claim));
    actions.extend(growth(inputs, true));
    if inputs.copies() {
        actions.extend(downtime::start_actions(inputs));
    }
    actions.extend(suspension::resume_actions(inputs));
    let strangers = inputs.of_strangers(|it| {
        if inputs.copies() {
            format!("Stop {it} first, give it claim {claim} again in its own manifest, and start it when the rest is done.")
        } else {
            format!("Give {it} claim {claim} again in its own manifest.")
        }
    });
    Step {
        title: "How to go back".to_owned(),
        blocks: format!("{STANDS_STILL} for one restart."),
        text: format!(
            "At any step, as long as the old claim is there: the old volume has everything up to the stop. What was written since is in the new one only. If the manifests were changed, change them back first. Where the workloads were not changed yet, their patches fail and harm nothing. {strangers}"
        ),
        actions,
        then: format!(
            "Before another attempt, delete claim {}, and first the pods that its line `Used By` names: existing files are never overwritten.",
            inputs.name
        ),
    }
}
