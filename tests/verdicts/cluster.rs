//! Small clusters in shorthand.

use std::collections::BTreeMap;

use engine::model::object::{Object, ObjectKind};
use engine::model::server_version::ServerVersion;
use serde::Deserialize;
use serde::de::DeserializeSeed;
use serde_json::{Value, json};

use super::shorthand::{Claim, Shorthand, Storage, merge};

/// A small cluster. By default, three nodes in two zones; the class `disk` (`disk.example.com`,
/// which attaches), the class `ebs`, and the claims of the case.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Snapshot {
    /// Node name → its labels besides the host name, its `taints` and its `allocatable` resources.
    nodes: BTreeMap<String, Value>,
    /// Claim name → the claim.
    claims: BTreeMap<String, Claim>,
    /// Whether volumes of `disk.example.com` are attached.
    attach_required: bool,
    /// Whether files represent the cluster, which may have more objects than they contain.
    pub(crate) files: bool,
    /// The kind whose list is incomplete.
    unheard: Option<String>,
    /// The bytes that objects in namespaces may take.
    memory: Option<usize>,
    /// The version of the API server.
    server: Option<String>,
    /// Further objects: shorthand workloads or whole manifests.
    also: Vec<Shorthand>,
}

impl Default for Snapshot {
    fn default() -> Self {
        let node = |zone: &str| json!({"topology.kubernetes.io/zone": zone});
        Self {
            nodes: [("n1", "a"), ("n2", "a"), ("n3", "b")]
                .map(|(name, zone)| (name.to_owned(), node(zone)))
                .into(),
            claims: BTreeMap::new(),
            attach_required: true,
            files: false,
            unheard: None,
            memory: None,
            server: None,
            also: Vec::new(),
        }
    }
}

/// The kinds on which a volume depends.
const HEARD_OF: [ObjectKind; 5] = [
    ObjectKind::Claim,
    ObjectKind::Volume,
    ObjectKind::StorageClass,
    ObjectKind::CsiDriver,
    ObjectKind::Node,
];

/// The storage that the claims of a case have in common.
const STORAGE: Storage<'_> = Storage {
    namespace: "shop",
    class: "disk",
    driver: "disk.example.com",
    volumes: "pv-",
    handles: "",
};

/// The manifest that the shorthand stands for, by default in the namespace `shop`.
pub(crate) fn manifest(shorthand: &Shorthand) -> Value {
    let mut shorthand = shorthand.clone();
    shorthand.namespace.get_or_insert_with(|| "shop".to_owned());
    shorthand.manifest()
}

/// The object as the engine reads it.
pub(crate) fn read(manifest: &Value) -> Object {
    let text = |field: &str| manifest[field].as_str().unwrap_or_default();
    let kind = ObjectKind::of_manifest(text("apiVersion"), text("kind"))
        .unwrap_or_else(|| panic!("{manifest} is of no kind that is read"));
    kind.deserialize(manifest).expect("the object has its kind's shape")
}

impl Snapshot {
    /// The cluster's facts.
    pub(crate) fn facts(&self) -> engine::snapshot::Snapshot {
        use engine::snapshot::Snapshot;

        let mut facts = match &self.unheard {
            None => Snapshot::complete(),
            Some(_) => Snapshot::new(),
        };
        if let Some(memory) = self.memory {
            facts = facts.limited(memory);
        }
        if let Some(version) = &self.server {
            (facts.server, _) = ServerVersion::read(version);
        }
        for object in self.objects() {
            facts.apply(read(&object));
        }
        if let Some(unheard) = &self.unheard {
            for kind in HEARD_OF.into_iter().filter(|kind| kind.name() != unheard) {
                facts.synced(kind);
            }
        }
        facts
    }

    /// The objects of the cluster.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let class = |name: &str, provisioner: &str| {
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                   "metadata": {"name": name}, "provisioner": provisioner})
        };
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "shop"}}}),
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
                   "metadata": {"name": "disk.example.com"}, "spec": {"attachRequired": self.attach_required}}),
            class("disk", "disk.example.com"),
            class("ebs", "ebs.csi.aws.com"),
        ];
        for (name, labels) in &self.nodes {
            let mut labels = labels.clone();
            let taints = labels
                .as_object_mut()
                .and_then(|fields| fields.remove("taints"))
                .unwrap_or(json!([]));
            let allocatable =
                labels.as_object_mut().and_then(|fields| fields.remove("allocatable"));
            if labels.get("kubernetes.io/hostname").is_none() {
                labels["kubernetes.io/hostname"] = json!(name);
            }
            objects.push(json!({"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": labels}, "spec": {"taints": taints},
                "status": {"allocatable": allocatable}}));
        }
        for (name, claim) in &self.claims {
            let mut object = claim.manifest(name, &STORAGE);
            if let Some(volume) = claim.volume(name, &STORAGE) {
                let bound = json!({
                    "spec": { "volumeName": format!("{}{name}", STORAGE.volumes) },
                    "status": { "accessModes": claim.volume, "phase": "Bound" },
                });
                let as_written = std::mem::replace(&mut object, bound);
                merge(&mut object, &as_written);
                objects.push(volume);
            }
            objects.push(object);
        }
        objects.extend(self.also.iter().map(manifest));
        objects
    }
}
