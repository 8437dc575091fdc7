//! The steps, in their order. Everything that blocks nothing comes first.

use jiff::SignedDuration;
use serde_json::json;

use super::downtime;
use super::inputs::Inputs;
use super::step::{Action, Step};
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
    let retain = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}}).to_string();
    let volume = format!("pv/{name}");
    let patch = inputs.kubectl(&["patch", &volume, "--type=merge", "-p", &retain]);
    Some(inputs.step("keep-volume", vec![patch]))
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
    let mut then = Vec::new();
    if target.binds_late {
        then.push(inputs.words("claim.binds-late", &[]));
    } else {
        actions.push(inputs.run(&[
            "wait",
            "--for=jsonpath={.status.phase}=Bound",
            "--timeout=10m",
            &format!("pvc/{name}"),
        ]));
    }
    if target.unproven {
        then.push(inputs.words("claim.unproven", &[]));
    }
    let mut step = inputs.step("claim", actions);
    if snapshot.is_some() && subject.is_used() {
        step.blocks = inputs.words("claim.restores", &[]);
    }
    step.then = then.join(" ");
    step
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
    let mut text = vec![match copy::node(subject) {
        Some(node) => inputs.words("copy.node", &[("node", &node.name)]),
        None => inputs.words("copy.any-node", &[]),
    }];
    text.push(inputs.words("copy.how", &[]));
    if wanted.image == copy::DEFAULT_IMAGE {
        text.push(inputs.words("copy.image", &[]));
    }
    if is_restricted(inputs) {
        text.push(inputs.words("copy.restricted", &[]));
    }
    let duration = inputs.words("copy.duration", &[("span", &copy::takes(subject))]);
    let blocks = match subject.is_used() {
        true => "copy.blocks",
        false => "copy.blocks-unused",
    };
    let actions = vec![
        Inputs::apply("20-copy.yaml", object),
        inputs.run(&["wait", "--for=condition=Complete", "--timeout=24h", &job]),
        inputs.run(&["logs", &job]),
    ];
    Step {
        blocks: inputs.words(blocks, &[("duration", &duration)]),
        text: text.join(" "),
        ..inputs.step("copy", actions)
    }
}

/// Whether the namespace refuses the Job.
fn is_restricted(inputs: &Inputs<'_>) -> bool {
    let view = inputs.facts.cluster.objects.view;
    let namespace = view.namespace(inputs.wanted.namespace).found();
    let level = namespace.and_then(|namespace| {
        namespace
            .metadata
            .labels
            .get("pod-security.kubernetes.io/enforce")
    });
    level == Some("restricted")
}

fn take_snapshot(inputs: &Inputs<'_>) -> Step {
    let name = inputs.snapshot_name();
    let object = snapshot::manifest(&name, inputs.snapshot_class, inputs.wanted);
    let text = match inputs.snapshot_class {
        Some(class) => inputs.words("snapshot.class", &[("snapshot-class", class)]),
        None => inputs.words("snapshot.no-class", &[]),
    };
    let ready = "--for=jsonpath={.status.readyToUse}=true";
    let actions = vec![
        Inputs::apply("10-snapshot.yaml", object),
        inputs.run(&["wait", ready, "--timeout=1h", &inputs.snapshot()]),
    ];
    let mut step = inputs.step("snapshot", actions);
    if inputs.subject.is_used() {
        step.blocks = inputs.words("snapshot.blocks-used", &[]);
    }
    Step { text, ..step }
}

/// The new claim in the place of the old one.
fn change(inputs: &Inputs<'_>) -> Step {
    let blocks = match (inputs.copies(), inputs.running().any(User::recreates)) {
        (true, _) => "change.stopped",
        (false, true) => "change.recreated",
        (false, false) => "change.rolled",
    };
    let actions = change_actions(inputs, inputs.wanted.claim, inputs.name);
    Step {
        blocks: inputs.words(blocks, &[]),
        text: unchangeable(inputs),
        ..inputs.step("change", actions)
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
    let users = inputs.subject.users.iter();
    let fixed = users
        .filter(|user| !user.can_change())
        .map(|user| inputs.words("change.fixed", &[("user", &user.shown())]));
    let strangers = inputs.of_strangers("change.stranger").into_iter();
    strangers.chain(fixed).collect::<Vec<_>>().join(" ")
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
    inputs.step("check", actions)
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
            let most = it.spec.max_replicas.to_string();
            let values = [("autoscaler", it.metadata.name.as_str()), ("most", &most)];
            inputs.words("grow.limit", &values)
        })
        .collect();
    if actions.is_empty() && limits.is_empty() {
        return None;
    }
    let mut text = vec![inputs.words("grow.text", &[])];
    if !limits.is_empty() {
        text.push(inputs.words("grow.limits", &[("limits", &limits.join(", "))]));
    }
    if !actions.is_empty() {
        text.push(inputs.words("grow.actions", &[]));
    }
    Some(Step {
        text: text.join(" "),
        ..inputs.step("grow", actions)
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
    let mut step = inputs.step("clean-up", actions);
    if !inputs.subject.volume_name().is_empty() && inputs.copies() {
        step.then = inputs.words("clean-up.volume", &[]);
    }
    step
}

/// How many days a plan may be gone back on.
const DAYS: i64 = 30;

/// The last day on which the guard warns of what it would refuse.
fn last_day(inputs: &Inputs<'_>) -> String {
    let now = inputs.facts.cluster.now;
    let last = now.saturating_add(SignedDuration::from_hours(24 * DAYS));
    last.unwrap_or(now).strftime("%F").to_string()
}

/// The way back.
pub(super) fn back(inputs: &Inputs<'_>) -> Step {
    let claim = inputs.wanted.claim;
    let until = last_day(inputs);
    let mut actions: Vec<Action> = delete_copy(inputs).into_iter().collect();
    let restarted = inputs.running().filter(|user| user.start().is_some());
    let warned: Vec<Action> = restarted
        .map(|user| inputs.run(&user.warned_of_until(&until)))
        .collect();
    let sentence = match warned.is_empty() {
        true => String::new(),
        false => inputs.words("back.warned", &[("until", &until)]),
    };
    actions.extend(warned);
    if inputs.copies() {
        actions.extend(downtime::stop_actions(inputs, &[claim, inputs.name]));
    }
    actions.extend(change_actions(inputs, inputs.name, claim));
    actions.extend(growth(inputs, true));
    if inputs.copies() {
        actions.extend(downtime::start_actions(inputs));
    }
    actions.extend(suspension::resume_actions(inputs));
    let strangers = inputs.of_strangers(match inputs.copies() {
        true => "back.stranger-stopped",
        false => "back.stranger",
    });
    Step {
        text: inputs.words(
            "back.text",
            &[("strangers", &strangers.join(" ")), ("warned", &sentence)],
        ),
        ..inputs.step("back", actions)
    }
}
