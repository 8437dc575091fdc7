//! What the API server has stored.

use std::collections::BTreeMap;

use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::harness::ControlPlane;

/// Kinds, their API version, plural, and whether they are in namespaces.
const KINDS: [(&str, &str, &str, bool); 17] = [
    ("Deployment", "apps/v1", "deployments", true),
    ("ReplicaSet", "apps/v1", "replicasets", true),
    ("StatefulSet", "apps/v1", "statefulsets", true),
    ("DaemonSet", "apps/v1", "daemonsets", true),
    ("Job", "batch/v1", "jobs", true),
    ("CronJob", "batch/v1", "cronjobs", true),
    ("Pod", "v1", "pods", true),
    (
        "HorizontalPodAutoscaler",
        "autoscaling/v2",
        "horizontalpodautoscalers",
        true,
    ),
    (
        "PersistentVolumeClaim",
        "v1",
        "persistentvolumeclaims",
        true,
    ),
    ("Node", "v1", "nodes", false),
    (
        "VolumeAttachment",
        "storage.k8s.io/v1",
        "volumeattachments",
        false,
    ),
    ("ConfigMap", "v1", "configmaps", true),
    ("Lease", "coordination.k8s.io/v1", "leases", true),
    ("PersistentVolume", "v1", "persistentvolumes", false),
    ("StorageClass", "storage.k8s.io/v1", "storageclasses", false),
    ("CSIDriver", "storage.k8s.io/v1", "csidrivers", false),
    ("Namespace", "v1", "namespaces", false),
];

/// The judged kinds, for [`versions`].
const JUDGED: usize = 11;

fn api(client: &kube::Client, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let (kind, api_version, plural, namespaced) = KINDS
        .iter()
        .find(|entry| entry.0 == kind)
        .unwrap_or_else(|| panic!("{kind} is not in the list of kinds"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: (*api_version).to_owned(),
        kind: (*kind).to_owned(),
        plural: (*plural).to_owned(),
    };
    if *namespaced {
        Api::namespaced_with(client.clone(), namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    }
}

fn kind_of(manifest: &Value) -> &str {
    manifest["kind"].as_str().unwrap()
}

/// Creates an object, and what it says of its status.
pub(crate) fn create(
    plane: &ControlPlane,
    client: &kube::Client,
    namespace: &str,
    manifest: &Value,
) -> Result<(), String> {
    // Leases of nodes are all in one namespace.
    let own = manifest.pointer("/metadata/namespace");
    let namespace = own.and_then(Value::as_str).unwrap_or(namespace);
    let api = api(client, kind_of(manifest), namespace);
    let object: DynamicObject = serde_json::from_value(manifest.clone()).unwrap();
    let created = plane.block_on(async {
        let created = api.create(&PostParams::default(), &object).await?;
        if let Some(status) = manifest.get("status") {
            let name = created.metadata.name.as_deref().unwrap_or_default();
            let patch = Patch::Merge(json!({ "status": status }));
            api.patch_status(name, &PatchParams::default(), &patch)
                .await?;
        }
        Ok(())
    });
    created.map_err(|error: kube::Error| format!("{manifest} cannot be created: {error}"))
}

/// Reads `Kind/name`; `None` when it is not there.
pub(crate) fn read(plane: &ControlPlane, namespace: &str, object: &str) -> Option<Value> {
    let (kind, name) = object.split_once('/').unwrap();
    let api = api(&plane.client(), kind, namespace);
    let found = plane.block_on(api.get_opt(name)).unwrap();
    found.map(|object| serde_json::to_value(object).unwrap())
}

/// The resource version of every judged object in the namespace, by `Kind/name`; of those
/// that have no namespace, the ones that are called like it.
pub(crate) fn versions(plane: &ControlPlane, namespace: &str) -> BTreeMap<String, String> {
    let client = plane.client();
    plane.block_on(async {
        let lists = KINDS[..JUDGED].iter().map(|(kind, _, _, namespaced)| {
            let api = api(&client, kind, namespace);
            async move {
                let list = api.list(&ListParams::default()).await.unwrap();
                list.items.into_iter().filter_map(move |object| {
                    let name = object.metadata.name?;
                    let version = object.metadata.resource_version.unwrap_or_default();
                    let is_its = *namespaced || name == namespace;
                    is_its.then(|| (format!("{kind}/{name}"), version))
                })
            }
        });
        let all = futures_util::future::join_all(lists).await;
        all.into_iter().flatten().collect()
    })
}
