//! Parts of objects, which kustomize and other tools merge into complete ones.

use super::tree::{Id, Shape, Tree};
use engine::model::object::ObjectKind;
use engine::model::workload::WorkloadKind;

/// The first field that objects of `kind` must have and this one lacks. The API server would refuse
/// such an object, so it can only be a patch or an example.
///
/// Source: the validation of each kind in the Kubernetes tree (`pkg/apis/*/validation`).
pub(super) fn missing(
    tree: &Tree<'_>,
    id: Id,
    kind: ObjectKind,
    api_version: &str,
) -> Option<&'static str> {
    let is_elsewhere =
        kind == ObjectKind::Workload(WorkloadKind::Rollout) && has(tree, id, "spec.workloadRef");
    if is_elsewhere {
        return None;
    }
    required(kind, api_version).iter().copied().find(|field| !has(tree, id, field))
}

fn required(kind: ObjectKind, api_version: &str) -> &'static [&'static str] {
    use WorkloadKind::{
        CloneSet, CronJob, DaemonSet, Deployment, DeploymentConfig, Job, ReplicaSet, Rollout,
        ScaledJob, StatefulSet,
    };
    match kind {
        ObjectKind::Workload(Job | DeploymentConfig) => &["spec.template.spec"],
        // In these versions, the selector defaults to the template's labels.
        ObjectKind::Workload(Deployment | ReplicaSet | StatefulSet | DaemonSet)
            if matches!(api_version, "extensions/v1beta1" | "apps/v1beta1") =>
        {
            &["spec.template.spec"]
        }
        ObjectKind::Workload(
            Deployment | ReplicaSet | StatefulSet | DaemonSet | Rollout | CloneSet,
        ) => &["spec.selector", "spec.template.spec"],
        ObjectKind::Workload(ScaledJob) => &["spec.jobTargetRef.template.spec"],
        ObjectKind::Workload(CronJob) => &["spec.jobTemplate.spec.template.spec"],
        ObjectKind::Claim | ObjectKind::Volume => &["spec.accessModes"],
        ObjectKind::StorageClass => &["provisioner"],
        ObjectKind::Autoscaler | ObjectKind::ScaledObject => &["spec.scaleTargetRef"],
        _ => &[],
    }
}

/// Whether the field at `path` has a value other than `null` and an empty list.
fn has(tree: &Tree<'_>, id: Id, path: &str) -> bool {
    tree.at(id, path).is_some_and(|value| {
        let value = tree.target(value);
        match &tree.node(value).shape {
            Shape::Scalar(scalar) => scalar.meaning() != super::scalar::Meaning::Null,
            Shape::Sequence => tree.children(value).next().is_some(),
            Shape::Mapping | Shape::Alias(_) => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::versions::kind_of;
    use super::*;

    #[test]
    fn what_the_api_server_would_refuse_is_a_part() {
        let table = [
            ("apps/v1", "Deployment", "spec: {selector: {}, template: {spec: {}}}", None),
            ("apps/v1", "Deployment", "spec: {template: {spec: {}}}", Some("spec.selector")),
            (
                "apps/v1",
                "Deployment",
                "spec: {selector: {}, replicas: 2}",
                Some("spec.template.spec"),
            ),
            ("extensions/v1beta1", "Deployment", "spec: {template: {spec: {}}}", None),
            (
                "batch/v1",
                "CronJob",
                "spec: {suspend: true}",
                Some("spec.jobTemplate.spec.template.spec"),
            ),
            ("v1", "PersistentVolumeClaim", "spec: {accessModes: [ReadWriteOnce]}", None),
            ("v1", "PersistentVolumeClaim", "spec: {accessModes: null}", Some("spec.accessModes")),
            ("v1", "PersistentVolumeClaim", "spec: {accessModes: []}", Some("spec.accessModes")),
            ("storage.k8s.io/v1", "StorageClass", "metadata: {name: a}", Some("provisioner")),
            ("v1", "Node", "metadata: {name: a}", None),
        ];
        for (api_version, kind, text, expected) in table {
            let tree = Tree::parse(text).unwrap().unwrap();
            let (object, _) = kind_of(api_version, kind).unwrap();
            let found = missing(&tree, tree.root(), object, api_version);
            assert_eq!(found, expected, "{kind} {text}");
        }
    }
}
