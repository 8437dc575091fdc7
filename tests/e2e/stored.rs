//! The objects that the API server has stored.

use std::collections::BTreeMap;

use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::harness::{ControlPlane, Namespace};

/// The judged kinds and their API versions, for [`versions`].
const JUDGED: [(&str, &str); 11] = [
    ("Deployment", "apps/v1"),
    ("ReplicaSet", "apps/v1"),
    ("StatefulSet", "apps/v1"),
    ("DaemonSet", "apps/v1"),
    ("Job", "batch/v1"),
    ("CronJob", "batch/v1"),
    ("Pod", "v1"),
    ("HorizontalPodAutoscaler", "autoscaling/v2"),
    ("PersistentVolumeClaim", "v1"),
    ("Node", "v1"),
    ("VolumeAttachment", "storage.k8s.io/v1"),
];

/// The cluster-wide kinds.
const OF_THE_CLUSTER: [&str; 6] =
    ["Node", "VolumeAttachment", "PersistentVolume", "StorageClass", "CSIDriver", "Namespace"];

fn api(client: &kube::Client, kind: (&str, &str), namespace: &str) -> Api<DynamicObject> {
    let (kind, api_version) = kind;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if OF_THE_CLUSTER.contains(&kind) {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}

/// Creates an object with its status.
pub(crate) fn create(
    plane: &ControlPlane,
    client: &kube::Client,
    namespace: &str,
    manifest: &Value,
) -> Result<(), String> {
    // All Leases of nodes are in one namespace.
    let own = manifest.pointer("/metadata/namespace");
    let namespace = own.and_then(Value::as_str).unwrap_or(namespace);
    let text = |field: &str| manifest[field].as_str().unwrap();
    let api = api(client, (text("kind"), text("apiVersion")), namespace);
    let object: DynamicObject = serde_json::from_value(manifest.clone()).unwrap();
    plane
        .block_on(async {
            let created = api.create(&PostParams::default(), &object).await?;
            if let Some(status) = manifest.get("status") {
                let name = created.metadata.name.as_deref().unwrap_or_default();
                let patch = Patch::Merge(json!({ "status": status }));
                api.patch_status(name, &PatchParams::default(), &patch).await?;
            }
            Ok(())
        })
        .map_err(|error: kube::Error| format!("{manifest} cannot be created: {error}"))
}

/// Reads `Kind/name`; `None` if it does not exist.
pub(crate) fn read(namespace: &Namespace<'_>, object: &str) -> Option<Value> {
    let (kind, name) = object.split_once('/').unwrap();
    let kind = *JUDGED
        .iter()
        .find(|judged| judged.0 == kind)
        .unwrap_or_else(|| panic!("{kind} is not in the list of kinds"));
    let api = api(&namespace.plane.client(), kind, namespace);
    let found = namespace.plane.block_on(api.get_opt(name)).unwrap();
    found.map(|stored| serde_json::to_value(stored).unwrap())
}

/// The resource versions of all judged objects in the namespace, by `Kind/name`. Cluster-wide
/// objects are included if they have the namespace's name.
pub(crate) fn versions(namespace: &Namespace<'_>) -> BTreeMap<String, String> {
    let client = namespace.plane.client();
    namespace.plane.block_on(async {
        let lists = JUDGED.into_iter().map(|kind| {
            let api = api(&client, kind, namespace);
            async move {
                let list = api.list(&ListParams::default()).await.unwrap();
                list.items.into_iter().filter_map(move |object| {
                    let name = object.metadata.name?;
                    let version = object.metadata.resource_version.unwrap_or_default();
                    let is_its = !OF_THE_CLUSTER.contains(&kind.0) || name == **namespace;
                    is_its.then(|| (format!("{}/{name}", kind.0), version))
                })
            }
        });
        let all = futures_util::future::join_all(lists).await;
        all.into_iter().flatten().collect()
    })
}
