//! `colocate`: keep all pods of the workload on one node.

use json_patch::Patch;
use serde_json::{Value, json};

use super::{Remedy, edit, recreate};
use crate::analysis::Analysis;
use crate::analysis::constraints::contradiction;
use crate::model::pod::HOSTNAME;
use crate::model::workload::{Workload, WorkloadKind};
use crate::rules::codes;

pub(super) const REMEDY: Remedy = Remedy {
    name: "colocate",
    cost: "It changes the pod template, which starts a rollout. All pods share one node. During a rollout old and new pods have the same files open: a database, or other software that locks files, does not survive that. After a drain or the loss of the node, pods may wait for minutes. A Deployment with several pods also becomes Recreate, so that all stop before the first one starts; other pods on several nodes must be deleted once. Some drivers of node-local storage refuse a second mount.",
    change: "keep all pods on one node with required pod affinity",
    effect: "required pod affinity now keeps all pods on one node",
    cures: &[
        codes::ROLLING_UPDATE_OVERLAP,
        codes::UNGUARDED_VOLUME,
        codes::MISLABELLED_VOLUME,
        codes::REPLICAS_SHARE_VOLUME,
        codes::AUTOSCALER_EXCEEDS_VOLUME,
    ],
    kinds: &[
        WorkloadKind::Deployment,
        WorkloadKind::ReplicaSet,
        WorkloadKind::StatefulSet,
        WorkloadKind::Job,
        WorkloadKind::Rollout,
        WorkloadKind::DeploymentConfig,
        WorkloadKind::CloneSet,
    ],
    works,
    patch,
};

const PATH: [&str; 6] = [
    "spec",
    "template",
    "spec",
    "affinity",
    "podAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
];

/// Whether the pods can be on one node. If they request devices, that is not known: the node may
/// have too few left.
fn works(analysis: &Analysis<'_>) -> bool {
    contradiction(analysis).is_none() && analysis.workload.template.extended_resources.is_empty()
}

fn patch(workload: &Workload, raw: &Value, pods_there: i64) -> Option<Patch> {
    if workload.template_source.is_some() {
        return None;
    }
    let is_made = workload.kind == WorkloadKind::Job
        && raw.pointer("/spec/manualSelector") != Some(&Value::Bool(true));
    let written = raw
        .pointer("/spec/selector")
        .filter(|selector| selector.as_object().is_some_and(|fields| !fields.is_empty()));
    let name = workload.metadata.name.as_str();
    let selector = match workload.kind {
        _ if is_made && name.is_empty() => return None,
        // A Job's own selector is made after admission, but its pods always carry the Job's name as
        // a label.
        _ if is_made => json!({"matchLabels": {"batch.kubernetes.io/job-name": name}}),
        WorkloadKind::DeploymentConfig => json!({"matchLabels": written?}),
        _ => written?.clone(),
    };
    let term = json!({"labelSelector": selector, "topologyKey": HOSTNAME});
    let mut patch = edit::append(raw, &PATH, term);
    // A new pod may go to the node of any old one, even of one that waits for the volume.
    if pods_there > 1 && recreate::suits(workload.kind) && !patch.0.is_empty() {
        let recreate = recreate::patch(workload, raw, pods_there)?;
        patch.0.extend(recreate.0);
    }
    Some(patch)
}
