//! Whether objects have the fields that the API server requires. Examples leave some of them out,
//! and patches, which kustomize and other tools merge into objects, have few of them.

use super::locate::{Spot, locate};
use super::tree::{Id, Shape, Tree};
use super::visit::Manifest;
use engine::model::object::{Object, ObjectKind};
use engine::model::words::listed;
use engine::model::workload::WorkloadKind;

/// Whether an object has all fields that the API server requires.
#[derive(Clone, Debug)]
pub enum Completeness {
    /// It has all of them.
    Whole,
    /// It lacks some, as examples do, and the rest can be judged.
    Incomplete(Incomplete),
    /// It is a patch, or another part of an object: the first field that it lacks.
    Part(&'static str),
}

/// The required fields that an object lacks.
#[derive(Clone, Debug)]
pub struct Incomplete {
    /// The paths of the fields; at least one.
    pub fields: Vec<&'static str>,
    /// The place of the first one.
    pub spot: Spot,
    /// Two sentences about them.
    pub text: String,
}

/// The required fields that an object lacks.
///
/// Source: the validation of each kind in the Kubernetes tree (`pkg/apis/*/validation`).
pub(super) struct Missing {
    /// The field without which nothing can be judged.
    essential: Option<&'static str>,
    /// The fields that examples leave out, and that decide little.
    others: Vec<&'static str>,
}

impl Missing {
    pub(super) fn of(manifest: &Manifest<'_, '_>, kind: ObjectKind) -> Self {
        let is_missing = |field: &&str| !has(manifest.tree, manifest.id, field);
        let is_elsewhere =
            kind == ObjectKind::Workload(WorkloadKind::Rollout) && !is_missing(&"spec.workloadRef");
        let (essential, others) = match required(kind, manifest.api_version) {
            _ if is_elsewhere => (None, &[][..]),
            required => required,
        };
        // Objects in a namespace may have a prefix instead of a name.
        let is_nameless = is_missing(&"metadata.name")
            && (!kind.is_namespaced() || is_missing(&"metadata.generateName"));
        Self {
            essential: essential.filter(is_missing),
            others: is_nameless
                .then_some("metadata.name")
                .into_iter()
                .chain(others.iter().copied().filter(is_missing))
                .collect(),
        }
    }

    /// Whether the object may be a patch, which may have any value in the place of a list or a
    /// number.
    pub(super) fn may_be_patch(&self) -> bool {
        self.essential.is_some() || self.others.contains(&SELECTOR)
    }

    pub(super) fn completeness(self, manifest: &Manifest<'_, '_>, object: &Object) -> Completeness {
        let Some(first) = self.essential.or(self.others.first().copied()) else {
            return Completeness::Whole;
        };
        // A patch of a pod template has no selector either.
        if self.essential.is_some() || first != LABELS && !is_example(manifest, object) {
            return Completeness::Part(first);
        }
        let spot = |field| locate(manifest.tree, manifest.id, field);
        let named: Vec<String> = self
            .others
            .iter()
            .map(|field| match manifest.line(spot(field).start) {
                Some(line) => format!("{field} (line {line})"),
                None => (*field).to_owned(),
            })
            .collect();
        let (are, them) = if named.len() == 1 { ("is", "it") } else { ("are", "them") };
        let text = format!(
            "{} {are} missing, and the API server requires {them}. The rest is judged, and each finding on it is an assumption.",
            listed(&named, "and")
        );
        Completeness::Incomplete(Incomplete {
            spot: spot(first).moved_by(manifest.part.start),
            fields: self.others,
            text,
        })
    }
}

const SELECTOR: &str = "spec.selector";

const LABELS: &str = "spec.template.metadata.labels";

/// The fields that objects of `kind` must have: the essential one, and the others.
fn required(
    kind: ObjectKind,
    api_version: &str,
) -> (Option<&'static str>, &'static [&'static str]) {
    use WorkloadKind::{
        CloneSet, CronJob, DaemonSet, Deployment, DeploymentConfig, Job, ReplicaSet, Rollout,
        ScaledJob, StatefulSet,
    };
    let (essential, others): (_, &[_]) = match kind {
        ObjectKind::Workload(Job | DeploymentConfig) => ("spec.template.spec", &[]),
        // In these versions, the selector defaults to the template's labels.
        ObjectKind::Workload(Deployment | ReplicaSet | StatefulSet | DaemonSet)
            if matches!(api_version, "extensions/v1beta1" | "apps/v1beta1") =>
        {
            ("spec.template.spec", &[LABELS])
        }
        ObjectKind::Workload(
            Deployment | ReplicaSet | StatefulSet | DaemonSet | Rollout | CloneSet,
        ) => ("spec.template.spec", &[SELECTOR, LABELS]),
        ObjectKind::Workload(ScaledJob) => ("spec.jobTargetRef.template.spec", &[]),
        ObjectKind::Workload(CronJob) => ("spec.jobTemplate.spec.template.spec", &[]),
        ObjectKind::Claim | ObjectKind::Volume => ("spec.accessModes", &[]),
        ObjectKind::StorageClass => ("provisioner", &[]),
        ObjectKind::Autoscaler | ObjectKind::ScaledObject => ("spec.scaleTargetRef", &[]),
        _ => return (None, &[]),
    };
    (Some(essential), others)
}

/// Whether an object that lacks required fields is an example, which shows its volumes or at least
/// its image, and not a patch of another object.
fn is_example(manifest: &Manifest<'_, '_>, object: &Object) -> bool {
    match object {
        Object::Workload(workload) => {
            let template = &workload.template;
            !template.volumes.is_empty()
                || !template.ephemeral.is_empty()
                || !workload.claim_templates.is_empty()
                // Tools that make pods, such as Jenkins, have templates without a name.
                || workload.kind != WorkloadKind::Pod && has_image(manifest, workload.kind)
        }
        Object::Claim(_) | Object::Autoscaler(_) => true,
        _ => false,
    }
}

fn has_image(manifest: &Manifest<'_, '_>, kind: WorkloadKind) -> bool {
    let tree = manifest.tree;
    tree.at(manifest.id, kind.pod_spec_path())
        .and_then(|spec| tree.sequence(spec, "containers"))
        .is_some_and(|list| tree.children(list).any(|item| tree.string(item, "image").is_some()))
}

/// Whether the field at `path` has a value other than `null`, an empty text and an empty list.
fn has(tree: &Tree<'_>, id: Id, path: &str) -> bool {
    tree.at(id, path).is_some_and(|value| {
        let value = tree.target(value);
        match &tree.node(value).shape {
            Shape::Scalar(scalar) => {
                !scalar.text.is_empty() && scalar.meaning() != super::scalar::Meaning::Null
            }
            Shape::Sequence => tree.children(value).next().is_some(),
            Shape::Mapping | Shape::Alias(_) => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::split::parts;
    use super::super::versions::kind_of;
    use super::*;

    #[test]
    fn required_fields_depend_on_the_kind() {
        const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");
        const CLAIM: (&str, &str) = ("v1", "PersistentVolumeClaim");
        let labelled = "template: {metadata: {labels: {a: b}}, spec: {}}";
        let table = [
            (DEPLOYMENT, format!("spec: {{selector: {{}}, {labelled}}}"), ""),
            (DEPLOYMENT, format!("spec: {{{labelled}}}"), "; spec.selector"),
            (
                DEPLOYMENT,
                "spec: {template: {spec: {}}}".to_owned(),
                "; spec.selector spec.template.metadata.labels",
            ),
            (
                DEPLOYMENT,
                "spec: {selector: {}, replicas: 2}".to_owned(),
                "spec.template.spec; spec.template.metadata.labels",
            ),
            (
                ("extensions/v1beta1", "Deployment"),
                "spec: {template: {spec: {}}}".to_owned(),
                "; spec.template.metadata.labels",
            ),
            (
                ("batch/v1", "CronJob"),
                "spec: {suspend: true}".to_owned(),
                "spec.jobTemplate.spec.template.spec",
            ),
            (
                ("argoproj.io/v1alpha1", "Rollout"),
                "spec: {workloadRef: {name: web}}".to_owned(),
                "",
            ),
            (CLAIM, "spec: {accessModes: [ReadWriteOnce]}".to_owned(), ""),
            (CLAIM, "spec: {accessModes: null}".to_owned(), "spec.accessModes"),
            (CLAIM, "spec: {accessModes: []}".to_owned(), "spec.accessModes"),
            (("storage.k8s.io/v1", "StorageClass"), "parameters: {}".to_owned(), "provisioner"),
            (("v1", "Node"), "spec: {}".to_owned(), ""),
        ];
        for ((api_version, kind), text, expected) in table {
            let text = format!("metadata: {{name: a}}\n{text}");
            let tree = Tree::parse(&text).unwrap().unwrap();
            let part = &parts(&text)[0];
            let manifest = Manifest { tree: &tree, id: tree.root(), api_version, kind, part };
            let (object, _) = kind_of(api_version, kind).unwrap();
            let found = Missing::of(&manifest, object);
            let (essential, others) = expected.split_once("; ").unwrap_or((expected, ""));
            assert_eq!(found.essential.unwrap_or_default(), essential, "{kind} {text}");
            assert_eq!(found.others.join(" "), others, "{kind} {text}");
        }
    }
}
