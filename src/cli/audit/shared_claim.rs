//! The ways out for two workloads that share a claim and are apart.

use serde_json::{Value, json};

use engine::model::pod::HOSTNAME;
use engine::model::volume_attachment::VolumeAttachment;
use engine::model::workload::{Workload, WorkloadKind};
use engine::rules::codes;
use engine::snapshot::View;
use engine::verdict::Finding;

/// A merge patch to one of the two, and the workload after it.
pub(super) struct Step {
    pub(super) patch: Value,
    pub(super) after: Workload,
}

/// The steps, in their order, that bring the workload of the finding and the only other user of its
/// claim to one node; empty if they cannot.
pub(super) fn steps(
    finding: &Finding,
    workload: &Workload,
    view: View<'_>,
    attachments: &[VolumeAttachment],
) -> Vec<Step> {
    let (codes::WORKLOADS_SHARE_VOLUME, [claim]) = (finding.rule, &finding.volumes[..]) else {
        return Vec::new();
    };
    let metadata = &workload.metadata;
    let mut users = view.workloads_using(&metadata.namespace, claim);
    users.retain(|user| {
        user.has_pods() && (user.kind, &user.metadata.name) != (workload.kind, &metadata.name)
    });
    let [other] = users[..] else {
        return Vec::new();
    };
    match (workload.kind, other.kind) {
        (WorkloadKind::CronJob, WorkloadKind::Deployment) => beside(workload, other),
        (WorkloadKind::Deployment | WorkloadKind::StatefulSet, WorkloadKind::Deployment) => {
            let claim = view.claim(&metadata.namespace, claim).found();
            let is_here = |attachment: &&VolumeAttachment| {
                attachment.is_settled()
                    && claim.is_some_and(|claim| claim.spec.volume_name == attachment.volume)
            };
            match attachments.iter().filter(is_here).collect::<Vec<_>>()[..] {
                [attachment] => on_the_node(&attachment.node, workload, other, view),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

/// `workload` follows the pods of `leader`, by their labels.
fn beside(workload: &Workload, leader: &Workload) -> Vec<Step> {
    let term = json!({
        "labelSelector": {"matchLabels": leader.template.labels},
        "topologyKey": HOSTNAME,
    });
    let (Ok(read), true) =
        (serde_json::from_value(term.clone()), workload.template.affinity.is_empty())
    else {
        return Vec::new();
    };
    let mut after = workload.clone();
    after.template.affinity = Box::new([read]);
    let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    let path = workload.kind.pod_spec_path();
    let patch = path
        .rsplit('.')
        .fold(json!({"affinity": {"podAffinity": terms}}), |value, field| json!({field: value}));
    vec![Step { patch, after }]
}

/// Both get the node that has the volume. `workload` is stopped meanwhile: an update that moves one
/// of the two may be refused while the other runs.
fn on_the_node(node: &str, workload: &Workload, other: &Workload, view: View<'_>) -> Vec<Step> {
    let node = view.node(node).found();
    let Some(host) = node.and_then(|node| node.metadata.labels.get(HOSTNAME)) else {
        return Vec::new();
    };
    let moved = |user: &Workload| {
        let mut moved = user.clone();
        let selector = user.template.node_selector.iter();
        moved.template.node_selector = selector.chain([(HOSTNAME, host)]).collect();
        moved
    };
    let template = json!({"spec": {"nodeSelector": {HOSTNAME: host}}});
    let stopped = Workload { replicas: 0, ..moved(workload) };
    vec![
        Step { patch: json!({"spec": {"replicas": 0, "template": template}}), after: stopped },
        Step { patch: json!({"spec": {"template": template}}), after: moved(other) },
        Step { patch: json!({"spec": {"replicas": workload.replicas}}), after: moved(workload) },
    ]
}
