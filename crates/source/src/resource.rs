//! The resources that an informer watches, and their objects as they arrive.

use std::borrow::Cow;

use kube::core::{ApiResource, DynamicResourceScope, ObjectMeta, Resource};
use kube::{Api, Client};
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::value::RawValue;

use engine::model::ListRoom;
use engine::model::object::{Object, ObjectKind};
use engine::model::workload::WorkloadKind;

/// One resource of the API server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched {
    pub(super) kind: ObjectKind,
    /// Limits the objects that the API server sends.
    pub(super) field_selector: Option<&'static str>,
}

/// Selects pods that have not ended: ended pods use no volume, and no user writes their status.
/// Labels would exclude more, because nearly all pods and ReplicaSets have an owner that is judged
/// in their place. But anybody can write the labels that controllers write, so all are received,
/// and the snapshot keeps few.
const NOT_FINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Every watched resource. Those on which most verdicts depend come first.
pub(super) const WATCHED: [Watched; 22] = [
    watched(ObjectKind::Claim),
    watched(ObjectKind::Volume),
    watched(ObjectKind::StorageClass),
    watched(ObjectKind::CsiDriver),
    watched(ObjectKind::Node),
    watched(ObjectKind::CsiNode),
    watched(ObjectKind::Namespace),
    watched(ObjectKind::Workload(WorkloadKind::Deployment)),
    watched(ObjectKind::Workload(WorkloadKind::StatefulSet)),
    watched(ObjectKind::Workload(WorkloadKind::DaemonSet)),
    watched(ObjectKind::Workload(WorkloadKind::ReplicaSet)),
    watched(ObjectKind::Workload(WorkloadKind::ReplicationController)),
    watched(ObjectKind::Workload(WorkloadKind::Job)),
    watched(ObjectKind::Workload(WorkloadKind::CronJob)),
    watched(ObjectKind::Workload(WorkloadKind::Pod)).only(NOT_FINISHED),
    watched(ObjectKind::Autoscaler),
    watched(ObjectKind::RuntimeClass),
    watched(ObjectKind::Workload(WorkloadKind::Rollout)),
    watched(ObjectKind::Workload(WorkloadKind::ScaledJob)),
    watched(ObjectKind::Workload(WorkloadKind::DeploymentConfig)),
    watched(ObjectKind::Workload(WorkloadKind::CloneSet)),
    watched(ObjectKind::ScaledObject),
];

/// The Leases of nodes, which are looked up one by one.
const LEASE: Watched = watched(ObjectKind::Lease);

const fn watched(kind: ObjectKind) -> Watched {
    Watched {
        kind,
        field_selector: None,
    }
}

impl Watched {
    /// The resource of this kind, if it is watched or looked up.
    pub(super) fn find(kind: ObjectKind) -> Option<Self> {
        let mut known = WATCHED.into_iter().chain([LEASE]);
        known.find(|watched| watched.kind == kind)
    }

    const fn only(mut self, field_selector: &'static str) -> Self {
        self.field_selector = Some(field_selector);
        self
    }

    /// The resource's name in paths, permissions and metrics.
    pub(super) const fn plural(&self) -> &'static str {
        self.kind.plural()
    }

    /// The resource as the client names it.
    pub(super) fn api_resource(&self) -> ApiResource {
        api_resource(self.kind)
    }

    /// The path of the list of all its objects.
    pub(super) fn path(&self) -> String {
        RawObject::url_path(&self.api_resource(), None)
    }
}

/// The resource of a kind as the client names it.
#[must_use]
pub fn api_resource(kind: ObjectKind) -> ApiResource {
    let api_version = kind.api_version();
    let (_, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    ApiResource {
        group: kind.group().to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.name().to_owned(),
        plural: kind.plural().to_owned(),
    }
}

/// Access to the objects of a resource, in one namespace or, if that is empty, in all.
pub(super) fn access<K>(client: &Client, namespace: &str, resource: &ApiResource) -> Api<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    if namespace.is_empty() {
        Api::all_with(client.clone(), resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, resource)
    }
}

/// An object as text, with the metadata that a watch needs.
///
/// It always deserializes, so a malformed object does not stop the others: [`RawObject::read`]
/// fails for that object alone.
#[derive(Clone, Debug)]
pub(super) struct RawObject {
    meta: ObjectMeta,
    json: Box<RawValue>,
}

impl RawObject {
    /// Reads the object into the model.
    pub(super) fn read(&self, kind: ObjectKind) -> Result<Object, serde_json::Error> {
        kind.read(self.json.get(), &ListRoom::endless())
    }

    /// Reads the object as a `T`.
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
