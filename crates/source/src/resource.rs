//! The resources that a live view follows, and their objects as they arrive.

use std::borrow::Cow;

use kube::core::{ApiResource, DynamicResourceScope, ObjectMeta, Resource};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer};
use serde_json::value::RawValue;

use engine::model::object::{Object, ObjectKind};
use engine::model::workload::WorkloadKind;

/// One resource of the API server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched {
    pub(super) kind: ObjectKind,
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    /// The name in paths, permissions and metrics.
    pub(super) plural: &'static str,
    /// Narrows what the API server sends.
    pub(super) label_selector: Option<&'static str>,
}

/// Pods and ReplicaSets are the most numerous objects of a cluster, and nearly
/// all of them have an owner that is judged. No selector can ask for owners, but
/// controllers leave their labels: what they made is not even sent. The price: a
/// ReplicaSet or pod that outlived its owner (`kubectl delete --cascade=orphan`)
/// is not known as another user of its claim; it is judged itself all the same.
const NOT_OF_A_DEPLOYMENT: &str = "!pod-template-hash";
const NOT_OF_A_WORKLOAD: &str = "!pod-template-hash,!controller-revision-hash,!job-name";

/// Every resource, those first on which most verdicts depend.
pub(super) const WATCHED: [Watched; 16] = [
    core(ObjectKind::Claim, "persistentvolumeclaims"),
    core(ObjectKind::Volume, "persistentvolumes"),
    watched(
        ObjectKind::StorageClass,
        "storage.k8s.io",
        "v1",
        "storageclasses",
    ),
    watched(ObjectKind::CsiDriver, "storage.k8s.io", "v1", "csidrivers"),
    core(ObjectKind::Node, "nodes"),
    core(ObjectKind::Namespace, "namespaces"),
    workload(WorkloadKind::Deployment, "deployments"),
    workload(WorkloadKind::StatefulSet, "statefulsets"),
    workload(WorkloadKind::DaemonSet, "daemonsets"),
    workload(WorkloadKind::ReplicaSet, "replicasets").only(NOT_OF_A_DEPLOYMENT),
    workload(
        WorkloadKind::ReplicationController,
        "replicationcontrollers",
    ),
    workload(WorkloadKind::Job, "jobs"),
    workload(WorkloadKind::CronJob, "cronjobs"),
    workload(WorkloadKind::Pod, "pods").only(NOT_OF_A_WORKLOAD),
    watched(
        ObjectKind::Autoscaler,
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
    ),
    watched(
        ObjectKind::RuntimeClass,
        "node.k8s.io",
        "v1",
        "runtimeclasses",
    ),
];

/// The signs of life of the nodes, asked for one by one.
const LEASE: Watched = watched(ObjectKind::Lease, "coordination.k8s.io", "v1", "leases");

const fn watched(
    kind: ObjectKind,
    group: &'static str,
    version: &'static str,
    plural: &'static str,
) -> Watched {
    Watched {
        kind,
        group,
        version,
        plural,
        label_selector: None,
    }
}

const fn core(kind: ObjectKind, plural: &'static str) -> Watched {
    watched(kind, "", "v1", plural)
}

const fn workload(kind: WorkloadKind, plural: &'static str) -> Watched {
    watched(ObjectKind::Workload(kind), kind.group(), "v1", plural)
}

impl Watched {
    /// The resource of that kind, where it is one that is followed or asked for.
    pub(super) fn of(kind: ObjectKind) -> Option<Self> {
        let mut known = WATCHED.into_iter().chain([LEASE]);
        known.find(|watched| watched.kind == kind)
    }

    const fn only(mut self, label_selector: &'static str) -> Self {
        self.label_selector = Some(label_selector);
        self
    }

    /// The resource as the client names it.
    pub(super) fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version: if self.group.is_empty() {
                self.version.to_owned()
            } else {
                format!("{}/{}", self.group, self.version)
            },
            kind: self.kind.name().to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    /// The path of the list of all its objects.
    pub(super) fn path(&self) -> String {
        RawObject::url_path(&self.api_resource(), None)
    }
}

/// An object as its bytes, with the little that following it takes.
///
/// It always deserialises, so one object that is not what its kind says cannot
/// stop the others: [`RawObject::read`] says so for that one alone.
#[derive(Clone, Debug)]
pub(super) struct RawObject {
    meta: ObjectMeta,
    json: Box<RawValue>,
}

impl RawObject {
    /// The object, reduced to facts.
    pub(super) fn read(&self, kind: ObjectKind) -> Result<Object, serde_json::Error> {
        kind.deserialize(&mut serde_json::Deserializer::from_str(self.json.get()))
    }

    /// The object as whatever can be read of it.
    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.json.get())
    }

    pub(super) fn name(&self) -> &str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    pub(super) fn namespace(&self) -> &str {
        self.meta.namespace.as_deref().unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        struct Head {
            metadata: HeadMeta,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct HeadMeta {
            name: Option<String>,
            namespace: Option<String>,
            resource_version: Option<String>,
        }

        let json = Box::<RawValue>::deserialize(deserializer)?;
        let Head { metadata } = serde_json::from_str(json.get()).unwrap_or_default();
        Ok(Self {
            meta: ObjectMeta {
                name: metadata.name,
                namespace: metadata.namespace,
                resource_version: metadata.resource_version,
                ..ObjectMeta::default()
            },
            json,
        })
    }
}

impl Resource for RawObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.kind)
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.group)
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.version)
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.plural)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
