//! Fewer pods of a workload, and which of them its controller gives up.

use super::changed::Changed;
use crate::diagnosis::Pod;
use crate::diagnosis::stuck::Stuck;
use crate::model::workload::WorkloadKind;

/// The command that leaves so many pods of the workload of `pod`.
///
/// A StatefulSet keeps the pods with the lowest numbers. One that is OrderedReady gives up
/// none before all that it keeps are ready, and none that is not ready before those below it
/// (`processReplica` and `processCondemned` in
/// `pkg/controller/statefulset/stateful_set_control.go`): where a pod waits for the volume,
/// that may be never, and the command deletes them itself.
pub(super) fn command(
    stuck: &Stuck<'_>,
    changed: &Changed<'_>,
    pod: &Pod,
    replicas: usize,
) -> String {
    let count = format!("--replicas={replicas}");
    let scale = stuck.in_namespace(&["scale", &changed.name, &count]);
    if changed.kind != Some(WorkloadKind::StatefulSet) {
        return scale;
    }
    let kept = kept(stuck, pod, replicas);
    let given_up: Vec<String> = of_its_workload(stuck, pod)
        .map(|it| it.meta.name.to_string())
        .filter(|name| !kept.contains(name))
        .map(|name| format!("pod/{name}"))
        .collect();
    if given_up.is_empty() {
        return scale;
    }
    let pods = given_up.iter().map(String::as_str);
    let delete: Vec<&str> = ["delete", "--ignore-not-found"]
        .into_iter()
        .chain(pods)
        .collect();
    format!("{scale} && {}", stuck.in_namespace(&delete))
}

/// The pods of the workload of `pod` that use the claim.
pub(super) fn of_its_workload<'a>(stuck: &Stuck<'a>, pod: &Pod) -> impl Iterator<Item = &'a Pod> {
    let own = pod.workload();
    let users = stuck
        .index
        .users(&stuck.pod.meta.namespace, stuck.claim)
        .iter();
    users.copied().filter(move |it| it.workload() == own)
}

/// The names of the pods that a StatefulSet of so many keeps.
pub(super) fn kept(stuck: &Stuck<'_>, pod: &Pod, replicas: usize) -> Vec<String> {
    let (_, name) = pod.workload();
    let first = stuck.workload_of(pod).map_or(0, |it| it.first_ordinal);
    let numbers = (first..).take(replicas);
    numbers.map(|number| format!("{name}-{number}")).collect()
}
