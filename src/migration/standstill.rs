//! What stands still while data is copied: how it is stopped, and started again.

use super::inputs::Inputs;
use super::step::{Action, STANDS_STILL, Step};
use super::users::User;

/// The annotation at which KEDA keeps a workload at a number (its documentation, "Pause
/// autoscaling").
pub(super) const PAUSED: &str = "autoscaling.keda.sh/paused-replicas";

/// Stops everything that may write to the old volume.
pub(super) fn stop(inputs: &Inputs<'_>) -> Step {
    let mut actions = stop_actions(inputs);
    actions.push(inputs.run(&["describe", &format!("pvc/{}", inputs.wanted.claim)]));
    let mut text = inputs.of_strangers(|it| {
        format!(
            "Stop {it} as its documentation says, because its controller would undo a change to what it has made."
        )
    });
    if inputs.autoscalers().next().is_some() && inputs.scaled_objects().next().is_none() {
        text +=
            " A HorizontalPodAutoscaler leaves a workload at 0 alone, so it needs no change here.";
    }
    Step {
        title: "Stop what uses the old claim".to_owned(),
        blocks: format!("{STANDS_STILL} from here on."),
        text: text.trim().to_owned(),
        actions,
        then: "The line `Used By` must say `<none>`. A pod that is still there may write, and what it writes may be missing from the copy.".to_owned(),
    }
}

pub(super) fn stop_actions(inputs: &Inputs<'_>) -> Vec<Action> {
    let mut actions: Vec<Action> = inputs
        .running()
        .map(|user| inputs.run(&user.stop()))
        .collect();
    for pods in inputs.running().filter_map(User::pods) {
        actions.push(inputs.run(&["wait", "--for=delete", "pod", "-l", &pods, "--timeout=10m"]));
    }
    actions
}

/// Starts again what was stopped.
pub(super) fn start(inputs: &Inputs<'_>) -> Step {
    let mut text = inputs.of_strangers(|it| format!("Start {it} again."));
    if inputs.subject.users.iter().any(|user| !user.runs()) {
        text += " What had no pods before still has none.";
    }
    Step {
        title: "Start it again".to_owned(),
        blocks: format!("{STANDS_STILL} until its pods are ready, as after every start."),
        text: text.trim().to_owned(),
        actions: start_actions(inputs),
        then: String::new(),
    }
}

pub(super) fn start_actions(inputs: &Inputs<'_>) -> Vec<Action> {
    let mut actions: Vec<Action> = inputs
        .running()
        .filter_map(User::start)
        .map(|arguments| inputs.run(&arguments))
        .collect();
    for name in inputs.scaled_objects() {
        let target = format!("scaledobjects.keda.sh/{name}");
        actions.push(inputs.run(&["annotate", &target, &format!("{PAUSED}-")]));
    }
    actions
}
