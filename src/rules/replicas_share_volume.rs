//! Several pods of one workload use the same volume, which one node at a time may have.
//!
//! # Fires on
//!
//! Deployments, ReplicaSets, StatefulSets (a claim in the pod template, not in
//! `volumeClaimTemplates`), DaemonSets, Jobs (the smaller of parallelism and
//! completions) and CronJobs (their Job) with more than one pod on an exclusive
//! volume, where the pods may be on different nodes. The outcome is `stuck`:
//! every pod on a second node stays in `ContainerCreating` for good.
//!
//! # Why
//!
//! All pods made from one template name the same claim. The first node gets the
//! volume; pods on any other node get `Multi-Attach error for volume …`, and no
//! rollout strategy changes that. `readOnly: true` on the pod's volume does not
//! help either, as Kubernetes looks at the volume's access modes alone.
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
//!         persistentVolumeClaim: {claimName: data} # ReadWriteOnce
//! ```
//!
//! # What to do
//!
//! Use one replica; or a ReadWriteMany volume; or a StatefulSet with
//! `volumeClaimTemplates`, which gives each pod a volume of its own; or keep all
//! pods on one node with required pod affinity on `kubernetes.io/hostname`.
//!
//! # Silent on
//!
//! Pods that cannot be on two nodes, volumes many nodes may have, claims a
//! StatefulSet makes for each pod, generic ephemeral volumes, and runs of a
//! CronJob that may overlap.

use super::hazard::Hazard;
use super::{Outcome, Rule, Subject, codes, words};
use crate::model::workload::WorkloadKind;
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    code: codes::REPLICAS_SHARE_VOLUME,
    source: include_str!("replicas_share_volume.rs"),
    judge,
};

fn judge(subject: &Subject<'_>, found: &mut Vec<Hazard>) {
    if let Subject::Workload(situation) = subject {
        found.extend(find(situation));
    }
}

/// The hazard of `situation`, whoever set the number of replicas.
pub(super) fn find(situation: &Situation<'_>) -> Option<Hazard> {
    let workload = situation.workload;
    let pods = situation.pods();
    situation.exclusive().next()?;
    if pods <= 1 || apart_is_impossible(situation) {
        return None;
    }
    let volumes = words::names(situation.exclusive());
    let (field_path, wanted) = match workload.kind {
        WorkloadKind::DaemonSet => (
            "spec.template.spec",
            "runs a pod on each of its nodes".to_owned(),
        ),
        WorkloadKind::Job => ("spec.parallelism", format!("runs {pods} pods at a time")),
        WorkloadKind::CronJob => (
            "spec.jobTemplate.spec.parallelism",
            format!("runs {pods} pods at a time"),
        ),
        _ => ("spec.replicas", format!("asks for {pods} replicas")),
    };
    Some(Hazard {
        rule: RULE.code,
        outcome: Outcome::Stuck,
        field_path: field_path.to_owned(),
        extent: match workload.kind {
            // The number of nodes is no choice of the object's author.
            WorkloadKind::DaemonSet => 0,
            _ => pods,
        },
        what: format!(
            "{} and the {} {wanted}; {}, so every pod on a second node stays in ContainerCreating with a Multi-Attach error.",
            words::volumes(situation.exclusive()),
            workload.kind,
            situation.placement.eligible,
        ),
        advice: format!(
            "{}{}",
            advice(workload.kind),
            words::shared_class(situation)
        ),
        brief: format!(
            "{} serves one node, but the pods may be on several; the others never start",
            words::first_of(situation.exclusive())
        ),
        volumes,
    })
}

/// Whether the pods of one revision are always on one node. Affinity is no help
/// to a DaemonSet, whose pods are bound to their nodes.
fn apart_is_impossible(situation: &Situation<'_>) -> bool {
    match situation.workload.kind {
        WorkloadKind::DaemonSet => situation.placement.one_node.is_some(),
        _ => situation.pins_replicas(),
    }
}

const fn advice(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::DaemonSet => {
            "Use a volume that many nodes can have, or limit the DaemonSet to the one node that needs it."
        }
        WorkloadKind::Job | WorkloadKind::CronJob => {
            "Set parallelism to 1, or keep the pods on one node with required pod affinity, or use a volume that many nodes can have."
        }
        WorkloadKind::StatefulSet => {
            "Move the claim to volumeClaimTemplates so that each pod has its own, or set replicas to 1, or use a volume that many nodes can have."
        }
        WorkloadKind::Deployment | WorkloadKind::ReplicaSet | WorkloadKind::Pod => {
            "Set replicas to 1, or use a StatefulSet with volumeClaimTemplates, or a volume that many nodes can have, or keep the pods on one node with required pod affinity."
        }
    }
}
