//! The volume needs the pods on one node, and the pods' own constraints forbid just that.
//!
//! # Fires on
//!
//! Workloads with an exclusive volume, or with one that keeps its pods on one node, where
//!
//! * more than one pod is wanted, and the pods keep each other apart. The means may be required
//!   anti-affinity over host names or another label of all eligible nodes, a hard topology spread
//!   (`minDomains` included), or a host port, which with `hostNetwork` every container port is. It
//!   may also be an inline disk that the scheduler gives to one pod a node. The outcome is
//!   `stuck`, or `delay` for pods that end;
//! * something keeps the pods of a Deployment on one node, and one of these forbids one more
//!   there. The new pod of a rolling update may neither stay nor go: `deadlock`. Required
//!   anti-affinity does so even in the update that removes it, because the running pods still have
//!   it.
//!
//! # Why
//!
//! Pod affinity is one way to live with a ReadWriteOnce volume. A constraint that spreads the pods
//! contradicts it, and the pod stays Pending.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   replicas: 1 # RollingUpdate by default: one pod more during a rollout
//!   template:
//!     metadata: {labels: {app: web}}
//!     spec:
//!       affinity:
//!         podAffinity:
//!           requiredDuringSchedulingIgnoredDuringExecution:
//!           - topologyKey: kubernetes.io/hostname
//!             labelSelector: {matchLabels: {app: web}}
//!       topologySpreadConstraints:
//!       - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule,
//!          labelSelector: {matchLabels: {app: web}}}
//!       volumes:
//!       - name: data
//!         persistentVolumeClaim: {claimName: data}
//! ---
//! apiVersion: v1
//! kind: PersistentVolumeClaim
//! metadata: {name: data}
//! spec: {accessModes: [ReadWriteOnce], storageClassName: gp3}
//! ```
//!
//! # What to do
//!
//! Remove the constraint that spreads the pods (for a topology spread, `whenUnsatisfiable:
//! ScheduleAnyway` is enough). Or use one replica with `strategy: {type: Recreate}`, or a
//! ReadWriteMany volume.
//!
//! # Claims
//!
//! * Named by the pod template: read.
//! * A StatefulSet's own: not read. `no-node-for-volume` reports pods that are kept apart from them.
//!
//! # Silent on
//!
//! Soft constraints, and constraints that select other pods only. A spread that allows all pods on
//! one node, or over domains of which one is eligible. Affinity and spread of pods that name their
//! node, because those never meet the scheduler.

use super::{Hazard, On, Outcome, Rule, messages, strategies};
use crate::analysis::Analysis;
use crate::analysis::constraints::{Together, contradiction};
use crate::model::strategy::Strategy;
use crate::model::workload::WorkloadKind;

pub(super) const RULE: Rule = Rule {
    code: "co-location-impossible",
    at_fault: "this keeps apart pods that have to be together",
    on: &[On::Workload(judge)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    let Some(contradiction) = contradiction(analysis) else {
        return;
    };
    let text = &contradiction.text;
    let (outcome, excess, consequence) = match contradiction.pods {
        Together::Replicas(pods) => {
            let ends = analysis.workload.ends();
            let then = if ends {
                "each waits until the one before it has ended"
            } else {
                "all but the first can never start"
            };
            let consequence =
                format!("its {pods} pods must share a node, but {text} keeps them apart: {then}");
            (Outcome::of_waiting(ends), pods, consequence)
        }
        Together::Rollout => (
            Outcome::Deadlock,
            0,
            format!(
                "its pods are held on one node, where {text} allows no further pod: the new pod of a rolling update has nowhere to go and the rollout can never finish"
            ),
        ),
    };
    let first = messages::first_of(analysis.volumes_in_one_place());
    let stop_first = strategies::stop_first(analysis);
    found.push(Hazard {
        field_path: contradiction.field,
        volumes: messages::names(analysis.volumes_in_one_place()),
        excess,
        what: format!("{}; {consequence}.", messages::in_one_place(analysis)),
        advice: match (contradiction.is_of_the_old, analysis.workload.kind) {
            (true, _) => format!("{stop_first}, in the same update."),
            (false, kind) => format!(
                "Remove what keeps the pods apart, or use one replica with {}, or use a ReadWriteMany volume.",
                match (kind, &analysis.workload.strategy) {
                    (WorkloadKind::Rollout, Strategy::SideBySide(_)) => "canary and maxSurge 0",
                    (WorkloadKind::Rollout | WorkloadKind::CloneSet, _) => "maxSurge 0",
                    _ => "strategy Recreate",
                }
            ),
        },
        brief: format!("{first} needs the pods on one node, which their own constraints forbid"),
        ..RULE.hazard(outcome)
    });
}
