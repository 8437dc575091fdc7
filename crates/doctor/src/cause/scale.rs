//! Which pods of a workload that is scaled down its controller removes.

use serde_json::{Value, json};

use super::{describe, kind_of};
use crate::waiting_pod::WaitingPod;
use engine::model::live_pod::Pod;
use engine::model::workload::WorkloadKind;

impl<'a> WaitingPod<'a> {
    /// The pods that a StatefulSet with `replicas` pods should remove, but may never remove, as kubectl
    /// takes them.
    ///
    /// The StatefulSet keeps the pods with the lowest numbers. If it is OrderedReady, it removes none
    /// before all that it keeps are ready (`processReplica` in
    /// `pkg/controller/statefulset/stateful_set_control.go`). Then it removes pods from the highest
    /// number down, and waits at a pod that is not ready, unless that is the first such pod
    /// (`processCondemned`): it removes a single unready pod by itself, but not two.
    pub(super) fn blocked(&self, pod: &Pod, replicas: i64) -> Vec<String> {
        if kind_of(pod) != Some(WorkloadKind::StatefulSet) {
            return Vec::new();
        }
        let remaining = self.remaining(pod, replicas);
        let remains = |user: &Pod| remaining.iter().any(|name| user.meta.name == *name);
        let is_ready = |user: &Pod| user.ready && !user.is_ending();
        let users = || self.of_its_workload(pod);
        let ready = users().filter(|user| remains(user) && is_ready(user)).count();
        let removes_none = ready < remaining.len();
        let given_up: Vec<String> = users()
            .filter(|user| !remains(user) && (removes_none || !is_ready(user)))
            .map(|user| format!("pod/{}", user.meta.name))
            .collect();
        if removes_none || given_up.len() > 1 { given_up } else { Vec::new() }
    }

    /// The values of the steps that leave one pod, while `other` has the volume: the pod that is left, and
    /// those that run and stop.
    pub(super) fn to_one(&self, other: &Pod) -> Value {
        let last = self.remaining(self.pod, 1).concat();
        let mut running: Vec<&str> = self
            .of_its_workload(self.pod)
            .filter(|pod| pod.phase == "Running")
            .map(|pod| pod.meta.name.as_str())
            .collect();
        if running.contains(&last.as_str()) {
            running.clear();
        }
        json!({
            "holder": describe(other),
            "holder-node": other.node,
            "blocked": self.blocked(self.pod, 1),
            "last": last,
            "stopping": running,
            "several-stop": running.len() > 1,
        })
    }

    /// The pods of the workload of `pod` that use the claim.
    fn of_its_workload(&self, pod: &Pod) -> impl Iterator<Item = &'a Pod> {
        let own = pod.workload();
        self.index
            .users(&self.pod.meta.namespace, self.claim)
            .iter()
            .copied()
            .filter(move |user| user.workload() == own)
    }

    /// The names of the pods that a StatefulSet with `replicas` pods keeps.
    fn remaining(&self, pod: &Pod, replicas: i64) -> Vec<String> {
        let (_, name) = pod.workload();
        let first = self.workload_of(pod).map_or(0, |workload| workload.first_ordinal);
        (0..replicas).map(|number| format!("{name}-{}", first.saturating_add(number))).collect()
    }
}
