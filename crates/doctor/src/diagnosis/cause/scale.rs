//! Scales a workload down, and determines which pods its controller removes.

use super::changed::Changed;
use crate::diagnosis::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;
use engine::model::workload::WorkloadKind;

/// The command that scales the workload of `pod` to `replicas` pods.
pub(super) fn command(
    waiting: &WaitingPod<'_>,
    changed: &Changed<'_>,
    pod: &Pod,
    replicas: i64,
) -> String {
    let count = format!("--replicas={replicas}");
    let scale = waiting.in_namespace(&["scale", &changed.name, &count]);
    and_delete(waiting, scale, pod, replicas)
}

/// Adds to a command that leaves `replicas` pods of the workload of `pod` the deletion of the pods
/// that the controller would never remove.
pub(super) fn and_delete(
    waiting: &WaitingPod<'_>,
    command: String,
    pod: &Pod,
    replicas: i64,
) -> String {
    let names = blocked(waiting, pod, replicas).into_iter();
    let pods: Vec<String> = names.map(|name| format!("pod/{name}")).collect();
    if pods.is_empty() {
        return command;
    }
    let pods = pods.iter().map(String::as_str);
    let delete: Vec<&str> = ["delete", "--ignore-not-found"].into_iter().chain(pods).collect();
    format!("{command} && {}", waiting.in_namespace(&delete))
}

/// The pods that a StatefulSet with `replicas` pods should remove, but may never remove.
///
/// The StatefulSet keeps the pods with the lowest numbers. If it is OrderedReady, it removes none
/// before all that it keeps are ready (`processReplica` in
/// `pkg/controller/statefulset/stateful_set_control.go`). Then it removes pods from the highest
/// number down, and waits at a pod that is not ready, unless that is the first such pod
/// (`processCondemned`): it removes a single unready pod by itself, but not two.
fn blocked<'a>(waiting: &WaitingPod<'a>, pod: &Pod, replicas: i64) -> Vec<&'a str> {
    if !is_of_stateful_set(pod) {
        return Vec::new();
    }
    let kept = kept(waiting, pod, replicas);
    let is_kept = |it: &Pod| kept.iter().any(|name| it.meta.name == *name);
    let is_ready = |it: &Pod| it.ready && !it.is_ending();
    let pods = || of_its_workload(waiting, pod);
    let ready = pods().filter(|it| is_kept(it) && is_ready(it)).count();
    let given_up = pods().filter(|it| !is_kept(it));
    if ready < kept.len() {
        return given_up.map(|it| it.meta.name.as_str()).collect();
    }
    let unready = given_up.filter(|it| !is_ready(it));
    let unready: Vec<&str> = unready.map(|it| it.meta.name.as_str()).collect();
    match unready.len() {
        ..=1 => Vec::new(),
        _ => unready,
    }
}

/// Says which of several pods is left.
pub(super) fn left(waiting: &WaitingPod<'_>) -> String {
    if !is_of_stateful_set(waiting.pod) {
        return "One pod is left. The controller gives up those first that are not ready, so that the one that runs goes on.".to_owned();
    }
    let kept = kept(waiting, waiting.pod, 1).concat();
    let runs = of_its_workload(waiting, waiting.pod).filter(|pod| pod.phase == "Running");
    let running: Vec<&str> = runs.map(|pod| pod.meta.name.as_str()).collect();
    let what_stops = match running[..] {
        [one] if one != kept => {
            format!("{one}, which runs, stops, and {kept} starts once it is gone")
        }
        [_, _, ..] if !running.contains(&kept.as_str()) => {
            format!("all that run stop, and {kept} starts once they are gone")
        }
        _ => "the others go".to_owned(),
    };
    format!(
        "Pod {kept} is left, as a StatefulSet keeps the pod with the lowest number: {what_stops}."
    )
}

fn is_of_stateful_set(pod: &Pod) -> bool {
    pod.workload().0 == WorkloadKind::StatefulSet.name()
}

/// The pods of the workload of `pod` that use the claim.
fn of_its_workload<'a>(waiting: &WaitingPod<'a>, pod: &Pod) -> impl Iterator<Item = &'a Pod> {
    let own = pod.workload();
    let users = waiting.index.users(&waiting.pod.meta.namespace, waiting.claim).iter();
    users.copied().filter(move |it| it.workload() == own)
}

/// The names of the pods that a StatefulSet with `replicas` pods keeps.
fn kept(waiting: &WaitingPod<'_>, pod: &Pod, replicas: i64) -> Vec<String> {
    let (_, name) = pod.workload();
    let first = waiting.workload_of(pod).map_or(0, |it| it.first_ordinal);
    let numbers = (0..replicas).map(|number| first.saturating_add(number));
    numbers.map(|number| format!("{name}-{number}")).collect()
}
