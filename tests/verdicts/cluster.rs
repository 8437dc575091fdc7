//! Small clusters in shorthand.

use std::collections::BTreeMap;

use engine::model::object::ObjectKind;
use serde::Deserialize;
use serde::de::DeserializeSeed;
use serde_json::{Value, json};

use super::shorthand::{Shorthand, merge};

/// Three nodes in two zones, unless the case says otherwise; the class `disk`
/// (`disk.example.com`, which attaches), the class `ebs`, and the claims named.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Snapshot {
    /// Node name → its labels beside the host name, and its `taints` and what is
    /// `allocatable` there.
    nodes: BTreeMap<String, Value>,
    /// Claim name → what it is.
    claims: BTreeMap<String, Claim>,
    /// Whether volumes of `disk.example.com` are attached.
    attach_required: bool,
    /// Whether files stand for the cluster, which may hold more than they.
    pub(crate) files: bool,
    /// The kind of which not all objects have been heard.
    unheard: Option<String>,
    /// Other objects: shorthand workloads or whole manifests.
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

/// A claim in namespace `shop`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    /// The access modes it asks for.
    modes: Vec<String>,
    /// The access modes of the volume it is bound to; unbound without.
    #[serde(default)]
    volume: Option<Vec<String>>,
    /// Merged into the volume's manifest.
    #[serde(default)]
    volume_with: Value,
    /// The class.
    #[serde(default)]
    class: Option<String>,
    /// Merged into the claim's manifest.
    #[serde(default)]
    with: Value,
}

/// The manifest that a case means: in namespace `shop` unless it says otherwise.
pub(crate) fn manifest(shorthand: &Shorthand) -> Value {
    let mut shorthand = shorthand.clone();
    shorthand.namespace.get_or_insert_with(|| "shop".to_owned());
    shorthand.manifest()
}

impl Snapshot {
    /// The cluster's facts.
    pub(crate) fn facts(&self) -> engine::snapshot::Snapshot {
        use engine::snapshot::Snapshot;

        let mut facts = match &self.unheard {
            None => Snapshot::complete(),
            Some(_) => Snapshot::new(),
        };
        for object in self.objects() {
            let kind = ObjectKind::of_manifest(
                object["apiVersion"].as_str().unwrap_or_default(),
                object["kind"].as_str().unwrap_or_default(),
            )
            .unwrap_or_else(|| panic!("{object} is of no kind that is read"));
            facts.apply(
                kind.deserialize(&object)
                    .expect("the object has its kind's shape"),
            );
        }
        if let Some(unheard) = &self.unheard {
            for kind in HEARD_OF.into_iter().filter(|it| it.name() != unheard) {
                facts.synced(kind);
            }
        }
        facts
    }

    fn objects(&self) -> Vec<Value> {
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
                .and_then(|it| it.remove("taints"))
                .unwrap_or(json!([]));
            let allocatable = labels
                .as_object_mut()
                .and_then(|it| it.remove("allocatable"));
            if labels.get("kubernetes.io/hostname").is_none() {
                labels["kubernetes.io/hostname"] = json!(name);
            }
            objects.push(json!({"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": labels}, "spec": {"taints": taints},
                "status": {"allocatable": allocatable}}));
        }
        for (name, claim) in &self.claims {
            let class = claim.class.as_deref().unwrap_or("disk");
            let mut object = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": "shop"},
                "spec": {"accessModes": claim.modes, "storageClassName": class,
                         "resources": {"requests": {"storage": "1Gi"}}}});
            if let Some(modes) = &claim.volume {
                let volume_name = format!("pv-{name}");
                object["spec"]["volumeName"] = json!(volume_name);
                object["status"] = json!({"accessModes": modes, "phase": "Bound"});
                let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
                    "metadata": {"name": volume_name},
                    "spec": {"accessModes": modes, "capacity": {"storage": "1Gi"}, "storageClassName": class,
                             "csi": {"driver": "disk.example.com", "volumeHandle": name},
                             "claimRef": {"namespace": "shop", "name": name}}});
                merge(&mut volume, &claim.volume_with);
                objects.push(volume);
            }
            merge(&mut object, &claim.with);
            objects.push(object);
        }
        objects.extend(self.also.iter().map(manifest));
        objects
    }
}
