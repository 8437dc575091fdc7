//! Several pods of one workload use the same volume, which attaches to one node at a time.
//!
//! # Fires on
//!
//! A workload with more than one pod on an exclusive volume, if the pods may be on different
//! nodes: a Deployment, Rollout, DeploymentConfig, CloneSet, ReplicaSet, ReplicationController or
//! DaemonSet. Also a StatefulSet with the claim in its pod template instead of
//! `volumeClaimTemplates`. A Job counts as the smaller of parallelism and completions, a CronJob
//! as its Job, a ScaledJob as all Jobs that may run. The outcome is `stuck`: every pod on a second
//! node stays in `ContainerCreating` for good. Pods of Jobs, CronJobs and ScaledJobs end, so
//! theirs is `delay`.
//!
//! # Why
//!
//! All pods of one template name the same claim. The first node gets the volume; pods on any other
//! node get `Multi-Attach error for volume …`, and no rollout strategy changes that. `readOnly:
//! true` on the pod's volume does not help: Kubernetes looks only at the volume's access modes.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   replicas: 3
//!   template:
//!     spec:
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
//! Use one replica, a ReadWriteMany volume, or a StatefulSet with `volumeClaimTemplates`, which
//! gives each pod its own volume. Or keep all pods on one node with required pod affinity on
//! `kubernetes.io/hostname`.
//!
//! # Claims
//!
//! * Named by the pod template: read.
//! * A StatefulSet's own: not read, because each is for one pod.
//!
//! # Silent on
//!
//! Pods that cannot be on two nodes. Volumes for many nodes, claims that a StatefulSet makes for
//! each pod, and generic ephemeral volumes. Suspended Jobs and CronJobs, and runs of a CronJob
//! that may overlap. An autoscaler's smaller number of replicas replaces the manifest's.

use super::{Hazard, On, Outcome, Rule, messages};
use crate::analysis::Analysis;

pub(super) const RULE: Rule = Rule {
    code: "replicas-share-volume",
    at_fault: "the pods of one volume may be on several nodes",
    on: &[On::Workload(judge)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    if !analysis.replicas_share_exclusive() {
        return;
    }
    let kind = analysis.workload.kind;
    let volumes = messages::volumes(analysis.exclusive());
    let first = messages::first_of(analysis.exclusive());
    let wants = messages::pods_wanted(analysis);
    let eligible = &analysis.placement.eligible;
    let ends = analysis.workload.ends();
    let (consequence, brief) = if ends {
        (
            "a pod on a second node waits with a Multi-Attach error until those on the first have ended",
            "wait",
        )
    } else {
        (
            "every pod on a second node stays in ContainerCreating with a Multi-Attach error",
            "never start",
        )
    };
    found.push(Hazard {
        field_path: kind.pods_field().to_owned(),
        volumes: messages::names(analysis.exclusive()),
        excess: messages::excess_pods(analysis),
        what: format!("{volumes} and the {kind} {wants}; {eligible}, so {consequence}."),
        advice: messages::advice_for_several_pods(analysis) + &messages::shared_class(analysis),
        brief: format!(
            "{first} serves one node, but the pods may be on several; the others {brief}"
        ),
        ..RULE.hazard(Outcome::of_waiting(ends))
    });
}
