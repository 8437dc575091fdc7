//! The resources that an informer watches, and their objects as they arrive.

use std::borrow::Cow;

use kube::core::{ApiResource, DynamicResourceScope, GroupVersionKind, ObjectMeta, Resource};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::value::RawValue;

use engine::model::object::{Object, ObjectKind};
use engine::model::workload::WorkloadKind;
use engine::model::{ListRoom, from_json};

/// Selects pods that have not ended: ended pods use no volume, and no user writes their status.
/// Labels would exclude more, because nearly all pods and ReplicaSets have an owner that is judged
/// in their place. But anybody can write the labels that controllers write, so all are received,
/// and the snapshot keeps few.
const NOT_FINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Every watched kind. Those on which most verdicts depend come first.
pub(super) const WATCHED: [ObjectKind; 22] = [
    ObjectKind::Claim,
    ObjectKind::Volume,
    ObjectKind::StorageClass,
    ObjectKind::CsiDriver,
    ObjectKind::Node,
    ObjectKind::CsiNode,
    ObjectKind::Namespace,
    ObjectKind::Workload(WorkloadKind::Deployment),
    ObjectKind::Workload(WorkloadKind::StatefulSet),
    ObjectKind::Workload(WorkloadKind::DaemonSet),
    ObjectKind::Workload(WorkloadKind::ReplicaSet),
    ObjectKind::Workload(WorkloadKind::ReplicationController),
    ObjectKind::Workload(WorkloadKind::Job),
    ObjectKind::Workload(WorkloadKind::CronJob),
    ObjectKind::Workload(WorkloadKind::Pod),
    ObjectKind::Autoscaler,
    ObjectKind::RuntimeClass,
    ObjectKind::Workload(WorkloadKind::Rollout),
    ObjectKind::Workload(WorkloadKind::ScaledJob),
    ObjectKind::Workload(WorkloadKind::DeploymentConfig),
    ObjectKind::Workload(WorkloadKind::CloneSet),
    ObjectKind::ScaledObject,
];

/// The field selector that limits which objects of a kind the API server sends.
pub(super) fn field_selector(kind: ObjectKind) -> Option<String> {
    (kind == ObjectKind::Workload(WorkloadKind::Pod)).then(|| NOT_FINISHED.to_owned())
}

/// The path of the list of all objects of a kind.
pub(super) fn list_path(kind: ObjectKind) -> String {
    RawObject::url_path(&api_resource(kind), None)
}

/// The resource of a kind as the client names it.
pub fn api_resource(kind: ObjectKind) -> ApiResource {
    let api_version = kind.api_version();
    let version = api_version.rsplit('/').next().unwrap_or(api_version);
    let group_version_kind = GroupVersionKind::gvk(kind.group(), version, kind.name());
    ApiResource::from_gvk_with_plural(&group_version_kind, kind.plural())
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
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Box<RawValue>")]
pub(super) struct RawObject {
    meta: ObjectMeta,
    json: Box<RawValue>,
}

impl RawObject {
    /// Reads the object into the model.
    pub(super) fn read(&self, kind: ObjectKind) -> Result<Object, serde_json::Error> {
        kind.read(self.json.get(), &ListRoom::endless())
    }

    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        from_json(self.json.get())
    }

    pub(super) fn name(&self) -> &str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    pub(super) fn namespace(&self) -> &str {
        self.meta.namespace.as_deref().unwrap_or_default()
    }
}

impl From<Box<RawValue>> for RawObject {
    fn from(json: Box<RawValue>) -> Self {
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

        let Head { metadata } = serde_json::from_str(json.get()).unwrap_or_default();
        Self {
            meta: ObjectMeta {
                name: metadata.name,
                namespace: metadata.namespace,
                resource_version: metadata.resource_version,
                ..ObjectMeta::default()
            },
            json,
        }
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
