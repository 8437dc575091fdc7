//! What stands still while data is copied: how it is stopped, and started again.

use super::inputs::Inputs;
use super::step::{Action, Step};
use super::users::User;
use crate::diagnosis::scaled_object;
use engine::model::workload::WorkloadKind;

/// Pods whose containers may still write: a kubelet reports a terminal phase only when none
/// of them runs any more (`mergePodStatus` in `pkg/kubelet/status/status_manager.go`).
const UNFINISHED: &str = "--field-selector=status.phase!=Succeeded,status.phase!=Failed";

/// The names of the pods that use one of `CLAIMS`. Field selectors know nothing of volumes,
/// and filters of jsonpath take one value of each pod.
const POD_NAMES: &str = "go-template={{range .items}}{{$pod := .metadata.name}}{{range .spec.volumes}}{{with .persistentVolumeClaim}}{{if eq .claimName CLAIMS}}{{println $pod}}{{end}}{{end}}{{end}}{{end}}";

/// Stops everything that may write to the old volume.
pub(super) fn stop(inputs: &Inputs<'_>) -> Step {
    let mut text = inputs.of_strangers("stop.stranger");
    if inputs.autoscalers().next().is_some() && inputs.scaled_objects().next().is_none() {
        text.push(inputs.words("stop.autoscaler", &[]));
    }
    let paused = inputs.scaled_objects();
    text.extend(paused.map(|name| inputs.words("stop.keda", &[("scaled-object", name)])));
    let users = inputs.subject.users.iter();
    let cron_jobs = users.filter(|user| user.kind() == WorkloadKind::CronJob);
    text.extend(cron_jobs.map(|it| inputs.words("stop.cron-job", &[("user", &it.shown())])));
    Step {
        text: text.join(" "),
        ..inputs.step("stop", stop_actions(inputs, &[inputs.wanted.claim]))
    }
}

/// Stops what uses the claims, and waits for the end of it. What would start it again comes
/// first.
pub(super) fn stop_actions(inputs: &Inputs<'_>, claims: &[&str]) -> Vec<Action> {
    let pauses = inputs.scaled_objects().map(|it| scaled_object::pause(it));
    let mut actions: Vec<Action> = pauses.map(|pause| inputs.run(&pause)).collect();
    actions.extend(inputs.running().map(|user| inputs.run(&user.stop())));
    actions.push(until_unused(inputs, claims));
    actions
}

/// Waits until no pod uses the claims, and no Job will make one. `kubectl wait
/// --for=delete` would wait for pods that finish meanwhile and stay.
fn until_unused(inputs: &Inputs<'_>, claims: &[&str]) -> Action {
    let claims: Vec<String> = claims.iter().map(|claim| format!("\"{claim}\"")).collect();
    let names = POD_NAMES.replace("CLAIMS", &claims.join(" "));
    let pods = ["get", "pod", UNFINISHED, "-o", &names].map(str::to_owned);
    // A CronJob that was suspended before may have Jobs all the same.
    let users = inputs.subject.users.iter();
    let jobs = users.filter_map(User::active_jobs);
    let questions: Vec<String> = std::iter::once(pods.to_vec())
        .chain(jobs)
        .map(|arguments| inputs.line(&arguments))
        .collect();
    // Where a query fails nothing is known, and it is repeated.
    Action::Run(format!(
        "until left=$({}) && [ -z \"$left\" ]; do echo \"$left\"; sleep 5; done",
        questions.join(" && ")
    ))
}

/// Starts again what was stopped.
pub(super) fn start(inputs: &Inputs<'_>) -> Step {
    let mut text = inputs.of_strangers("start.stranger");
    if inputs.subject.users.iter().any(|user| !user.runs()) {
        text.push(inputs.words("start.none", &[]));
    }
    Step {
        text: text.join(" "),
        ..inputs.step("start", start_actions(inputs))
    }
}

pub(super) fn start_actions(inputs: &Inputs<'_>) -> Vec<Action> {
    let mut actions: Vec<Action> = inputs
        .running()
        .filter_map(User::start)
        .map(|arguments| inputs.run(&arguments))
        .collect();
    for name in inputs.scaled_objects() {
        actions.push(inputs.run(&scaled_object::resume(name)));
    }
    actions
}
