//! Scales a workload down, and determines which pods its controller removes.

use super::changed::Changed;
use crate::waiting_pod::WaitingPod;
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
    let pods: Vec<String> =
        blocked(waiting, pod, replicas).into_iter().map(|name| format!("pod/{name}")).collect();
    if pods.is_empty() {
        return command;
    }
    let delete: Vec<&str> = ["delete", "--ignore-not-found"]
        .into_iter()
        .chain(pods.iter().map(String::as_str))
        .collect();
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
    let remaining = remaining(waiting, pod, replicas);
    let remains = |user: &Pod| remaining.iter().any(|name| user.meta.name == *name);
    let is_ready = |user: &Pod| user.ready && !user.is_ending();
    let users = || of_its_workload(waiting, pod);
    let ready = users().filter(|user| remains(user) && is_ready(user)).count();
    let given_up = users().filter(|user| !remains(user));
    if ready < remaining.len() {
        return given_up.map(|user| user.meta.name.as_str()).collect();
    }
    let unready: Vec<&str> =
        given_up.filter(|user| !is_ready(user)).map(|user| user.meta.name.as_str()).collect();
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
    let last = remaining(waiting, waiting.pod, 1).concat();
    let running: Vec<&str> = of_its_workload(waiting, waiting.pod)
        .filter(|pod| pod.phase == "Running")
        .map(|pod| pod.meta.name.as_str())
        .collect();
    let what_stops = match running[..] {
        [one] if one != last => {
            format!("{one}, which runs, stops, and {last} starts once it is gone")
        }
        [_, _, ..] if !running.contains(&last.as_str()) => {
            format!("all that run stop, and {last} starts once they are gone")
        }
        _ => "the others go".to_owned(),
    };
    format!(
        "Pod {last} is left, as a StatefulSet keeps the pod with the lowest number: {what_stops}."
    )
}

fn is_of_stateful_set(pod: &Pod) -> bool {
    pod.workload().0 == WorkloadKind::StatefulSet.name()
}

/// The pods of the workload of `pod` that use the claim.
fn of_its_workload<'a>(waiting: &WaitingPod<'a>, pod: &Pod) -> impl Iterator<Item = &'a Pod> {
    let own = pod.workload();
    waiting
        .index
        .users(&waiting.pod.meta.namespace, waiting.claim)
        .iter()
        .copied()
        .filter(move |user| user.workload() == own)
}

/// The names of the pods that a StatefulSet with `replicas` pods keeps.
fn remaining(waiting: &WaitingPod<'_>, pod: &Pod, replicas: i64) -> Vec<String> {
    let (_, name) = pod.workload();
    let first = waiting.workload_of(pod).map_or(0, |workload| workload.first_ordinal);
    (0..replicas).map(|number| format!("{name}-{}", first.saturating_add(number))).collect()
}
