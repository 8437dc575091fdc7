//! A ReadWriteOncePod volume is asked to serve a second pod, which it never does.
//!
//! # Fires on
//!
//! Pods that use a claim with the access mode ReadWriteOncePod. A Deployment or DaemonSet whose
//! rolling update may not stop the old pod first (`maxUnavailable` comes to 0 and `maxSurge` to 1
//! or more) is a `deadlock`. More than one replica is `stuck`, or `delay` for Jobs and CronJobs,
//! whose pods run to an end.
//!
//! # Why
//!
//! The scheduler keeps a second pod from using the claim on any node, even the same one. So the
//! cures for a ReadWriteOnce volume (affinity, a single node, a driver without attachment) do not
//! help. The new pod stays Pending: `… node(s) unavailable due to PersistentVolumeClaim with
//! ReadWriteOncePod access mode already in-use by another pod`.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: ledger}
//! spec:
//!   replicas: 1
//!   # no strategy: RollingUpdate, 25 %, which is surge 1 and unavailable 0
//!   template:
//!     spec:
//!       volumes:
//!       - name: data
//!         persistentVolumeClaim: {claimName: ledger}
//! ---
//! apiVersion: v1
//! kind: PersistentVolumeClaim
//! metadata: {name: ledger}
//! spec: {accessModes: [ReadWriteOncePod], storageClassName: gp3}
//! ```
//!
//! # What to do
//!
//! Use one replica with `strategy: {type: Recreate}`, or with RollingUpdate, `maxSurge: 0` and
//! `maxUnavailable: 1`. Several pods at once need another access mode.
//!
//! # Claims
//!
//! * Named by the pod template: read.
//! * A StatefulSet's own: not read, because each is for one pod.
//!
//! # Silent on
//!
//! Rollouts that may stop the old pod first.

use super::{Hazard, On, Outcome, Rule, messages, strategies};
use crate::analysis::Analysis;
use crate::model::workload::WorkloadKind;

pub(super) const RULE: Rule = Rule {
    code: "single-pod-volume",
    at_fault: "the volume serves one pod at a time",
    on: &[On::Workload(judge)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    if analysis.single_pod().next().is_none() {
        return;
    }
    if analysis.pods() > 1 {
        found.push(several_pods(analysis));
    }
    if analysis.starts_before_it_stops() {
        found.push(rollout(analysis));
    }
}

fn several_pods(analysis: &Analysis<'_>) -> Hazard {
    let pods = analysis.pods();
    let volumes = messages::volumes(analysis.single_pod());
    let first = messages::first_of(analysis.single_pod());
    let ends = analysis.workload.ends();
    let (consequence, brief) = if ends {
        ("each stays Pending until the one before it has ended", "run one after another")
    } else {
        ("all but one stay Pending", "can never run together")
    };
    Hazard {
        field_path: analysis.workload.kind.pods_field().to_owned(),
        volumes: messages::names(analysis.single_pod()),
        excess: messages::excess_pods(analysis),
        what: format!(
            "{volumes}, which only one pod in the whole cluster may use at a time, but {pods} pods are wanted, so {consequence}."
        ),
        advice: "Use one pod, or another access mode if several pods must have the data."
            .to_owned(),
        brief: format!("{first} is ReadWriteOncePod: {pods} pods {brief}"),
        ..RULE.hazard(Outcome::of_waiting(ends))
    }
}

fn rollout(analysis: &Analysis<'_>) -> Hazard {
    let workload = analysis.workload;
    let volumes = messages::volumes(analysis.single_pod());
    let first = messages::first_of(analysis.single_pod());
    let strategy = strategies::name(workload);
    let no_affinity = match workload.kind {
        WorkloadKind::DaemonSet => "",
        _ => " Affinity does not help here.",
    };
    let other = match workload.kind {
        WorkloadKind::DaemonSet | WorkloadKind::Rollout | WorkloadKind::CloneSet => "maxSurge 0",
        _ => "maxSurge 0 or Recreate",
    };
    Hazard {
        field_path: strategies::field(workload).to_owned(),
        volumes: messages::names(analysis.single_pod()),
        what: format!(
            "{volumes}, which only one pod in the whole cluster may use at a time; {strategy} starts the new pod before the old one stops, so the new pod stays Pending on every node and the rollout can never finish."
        ),
        advice: format!("{}.{no_affinity}", strategies::stop_first(analysis)),
        brief: format!("{first} is ReadWriteOncePod: rollouts never end without {other}"),
        ..RULE.hazard(Outcome::Deadlock)
    }
}
