//! Which pods of a workload that is scaled down its controller removes.

use super::kind_of;
use crate::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;
use engine::model::workload::WorkloadKind;

/// The pods that a StatefulSet with `replicas` pods should remove, but may never remove, as kubectl
/// takes them.
///
/// The StatefulSet keeps the pods with the lowest numbers. If it is OrderedReady, it removes none
/// before all that it keeps are ready (`processReplica` in
/// `pkg/controller/statefulset/stateful_set_control.go`). Then it removes pods from the highest
/// number down, and waits at a pod that is not ready, unless that is the first such pod
/// (`processCondemned`): it removes a single unready pod by itself, but not two.
pub(super) fn blocked(waiting: &WaitingPod<'_>, pod: &Pod, replicas: i64) -> Vec<String> {
    if kind_of(pod) != Some(WorkloadKind::StatefulSet) {
        return Vec::new();
    }
    let remaining = remaining(waiting, pod, replicas);
    let remains = |user: &Pod| remaining.iter().any(|name| user.meta.name == *name);
    let is_ready = |user: &Pod| user.ready && !user.is_ending();
    let users = || of_its_workload(waiting, pod);
    let ready = users().filter(|user| remains(user) && is_ready(user)).count();
    let removes_none = ready < remaining.len();
    let given_up: Vec<String> = users()
        .filter(|user| !remains(user) && (removes_none || !is_ready(user)))
        .map(|user| format!("pod/{}", user.meta.name))
        .collect();
    if removes_none || given_up.len() > 1 { given_up } else { Vec::new() }
}

/// Says which of several pods is left.
pub(super) fn left(waiting: &WaitingPod<'_>) -> String {
    if kind_of(waiting.pod) != Some(WorkloadKind::StatefulSet) {
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
