//! The facts of an index as YAML that [`super::facts`] reads back.
//!
//! Written from the facts themselves, so what the tool does not use is not in
//! it: no pod, no container, no annotation of others, no volume handle.

use std::io;

use serde_json::{Map, Value, json};

use crate::cluster::{Cluster, Stored};
use crate::model::claim::Claim;
use crate::model::labels::Labels;
use crate::model::metadata::Metadata;
use crate::model::node::{Node, NodeSelector};
use crate::model::object::Namespace;
use crate::model::quantity::Quantity;
use crate::model::selector::{LabelSelector, Operator, Requirement};
use crate::model::storage_class::{CsiDriver, StorageClass};
use crate::model::volume::{Volume, VolumeSource};

/// Written for the moment at which a claim's deletion was asked for: only that
/// it was is known.
const SOME_TIME: &str = "1970-01-01T00:00:00Z";

/// Stands for a class parameter that may be a secret.
const REDACTED: &str = "REDACTED";

/// Parts of the names of class parameters that hold a secret itself rather than
/// the name of a Secret (`restuserkey` of the in-tree GlusterFS provisioner).
const SECRET_PARAMETERS: [&str; 6] = [
    "password",
    "passphrase",
    "restuserkey",
    "secretkey",
    "accesskey",
    "token",
];

/// A snapshot that could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The place it goes to does not take it.
    #[error(
        "The snapshot could not be written: {0}. Check the disk and the permissions of the target."
    )]
    Write(#[from] io::Error),
    /// A fact that YAML cannot hold.
    #[error("A fact could not be put as YAML: {0}. Please report this.")]
    Encode(#[from] serde_saphyr::ser::Error),
}

/// Writes namespaces, classes, drivers, nodes, volumes and claims, each kind
/// sorted by name, so that two snapshots of one cluster compare line by line.
/// What may be a secret in a class's parameters is replaced by `REDACTED`.
///
/// # Errors
///
/// When `out` does not take what is written to it.
pub fn write(cluster: &Cluster, out: &mut dyn io::Write) -> Result<(), SnapshotError> {
    let mut manifests: Vec<_> = cluster
        .objects()
        .filter_map(|object| {
            let (place, manifest) = match object {
                Stored::Namespace(it) => (0, namespace(it)),
                Stored::StorageClass(it) => (1, storage_class(it)),
                Stored::CsiDriver(it) => (2, csi_driver(it)),
                Stored::Node(it) => (3, node(it)),
                Stored::Volume(it) => (4, volume(it)),
                Stored::Claim(it) => (5, claim(it)),
                Stored::Workload(_) | Stored::Autoscaler(_) => return None,
            };
            let key = object.key();
            Some(((place, key.namespace, key.name), manifest))
        })
        .collect();
    manifests.sort_unstable_by_key(|(key, _)| *key);
    for (_, manifest) in manifests {
        let document = serde_saphyr::to_string(&manifest)?;
        write!(out, "---\n{document}")?;
    }
    Ok(())
}

fn namespace(namespace: &Namespace) -> Value {
    let mut metadata = metadata(&namespace.metadata);
    set(&mut metadata, "labels", labels(&namespace.metadata.labels));
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

fn storage_class(class: &StorageClass) -> Value {
    let parameters: Map<String, Value> = class
        .parameters
        .iter()
        .map(|(key, value)| {
            let name = key.to_ascii_lowercase();
            let secret = SECRET_PARAMETERS.iter().any(|part| name.contains(part));
            (key.to_owned(), json!(if secret { REDACTED } else { value }))
        })
        .collect();
    let topologies: Vec<Value> = class
        .allowed_nodes
        .iter()
        .flat_map(|nodes| &nodes.node_selector_terms)
        .map(|term| {
            let requirements: Vec<Value> = term
                .match_expressions
                .iter()
                .map(|requirement| json!({"key": requirement.key, "values": requirement.values}))
                .collect();
            json!({"matchLabelExpressions": requirements})
        })
        .collect();
    let mut metadata = named(&class.name);
    set(&mut metadata, "creationTimestamp", json!(class.created));
    set(&mut metadata, "annotations", labels(&class.annotations));
    let mut manifest = object("storage.k8s.io/v1", "StorageClass", metadata);
    manifest.insert("provisioner".to_owned(), json!(class.provisioner));
    set(&mut manifest, "parameters", Value::Object(parameters));
    set(&mut manifest, "allowedTopologies", Value::Array(topologies));
    Value::Object(manifest)
}

fn csi_driver(driver: &CsiDriver) -> Value {
    let mut manifest = object("storage.k8s.io/v1", "CSIDriver", named(&driver.name));
    manifest.insert(
        "spec".to_owned(),
        json!({"attachRequired": driver.attach_required}),
    );
    Value::Object(manifest)
}

fn node(node: &Node) -> Value {
    let mut metadata = named(&node.name);
    set(&mut metadata, "labels", labels(&node.labels));
    let taints: Vec<Value> = node
        .taints
        .iter()
        .map(|taint| json!({"key": taint.key, "value": taint.value, "effect": taint.effect}))
        .collect();
    let mut spec = Map::new();
    set(&mut spec, "taints", Value::Array(taints));
    let mut manifest = object("v1", "Node", metadata);
    set(&mut manifest, "spec", Value::Object(spec));
    if let Some(resources) = &node.extended_resources {
        let there: Map<String, Value> = resources
            .0
            .iter()
            .map(|name| (name.to_string(), json!("1")))
            .collect();
        manifest.insert("status".to_owned(), json!({"allocatable": there}));
    }
    Value::Object(manifest)
}

fn volume(volume: &Volume) -> Value {
    let mut metadata = named(&volume.name);
    set(&mut metadata, "labels", labels(&volume.labels));
    let mut spec = Map::new();
    spec.insert("accessModes".to_owned(), json!(volume.access_modes));
    spec.insert("volumeMode".to_owned(), json!(volume.volume_mode));
    spec.insert("capacity".to_owned(), size(volume.capacity));
    set(&mut spec, "storageClassName", json!(volume.class));
    match &volume.source {
        VolumeSource::Csi(driver) => spec.insert("csi".to_owned(), json!({"driver": driver})),
        VolumeSource::InTree(in_tree) => spec.insert(in_tree.field.to_owned(), json!({})),
        VolumeSource::Unknown => None,
    };
    if let Some((namespace, name)) = &volume.claim {
        let claim = json!({"namespace": namespace, "name": name});
        spec.insert("claimRef".to_owned(), claim);
    }
    if let Some(nodes) = &volume.node_affinity {
        let affinity = json!({"required": node_selector(nodes)});
        spec.insert("nodeAffinity".to_owned(), affinity);
    }
    let mut manifest = object("v1", "PersistentVolume", metadata);
    manifest.insert("spec".to_owned(), Value::Object(spec));
    Value::Object(manifest)
}

fn claim(claim: &Claim) -> Value {
    let mut spec = Map::new();
    spec.insert("accessModes".to_owned(), json!(claim.access_modes));
    spec.insert("volumeMode".to_owned(), json!(claim.volume_mode));
    spec.insert(
        "resources".to_owned(),
        json!({"requests": size(claim.request)}),
    );
    if let Some(class) = &claim.class {
        spec.insert("storageClassName".to_owned(), json!(class));
    }
    set(&mut spec, "volumeName", json!(claim.volume));
    if let Some(selector) = &claim.selector {
        spec.insert("selector".to_owned(), label_selector(selector));
    }
    if claim.has_data_source {
        spec.insert("dataSource".to_owned(), json!({}));
    }
    let mut status = Map::new();
    set(&mut status, "accessModes", json!(claim.bound_modes));
    let mut manifest = object("v1", "PersistentVolumeClaim", metadata(&claim.metadata));
    manifest.insert("spec".to_owned(), Value::Object(spec));
    set(&mut manifest, "status", Value::Object(status));
    Value::Object(manifest)
}

fn object(api_version: &str, kind: &str, metadata: Map<String, Value>) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), json!(api_version));
    object.insert("kind".to_owned(), json!(kind));
    object.insert("metadata".to_owned(), Value::Object(metadata));
    object
}

fn named(name: &str) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(name));
    metadata
}

fn metadata(of: &Metadata) -> Map<String, Value> {
    let mut metadata = Map::new();
    set(&mut metadata, "name", json!(of.name));
    set(&mut metadata, "generateName", json!(of.generate_name));
    set(&mut metadata, "namespace", json!(of.namespace));
    set(&mut metadata, "annotations", labels(&of.annotations));
    if let Some(owner) = &of.controller {
        let owner = json!([{"kind": owner.kind, "name": owner.name, "controller": true}]);
        metadata.insert("ownerReferences".to_owned(), owner);
    }
    if of.deleting {
        metadata.insert("deletionTimestamp".to_owned(), json!(SOME_TIME));
    }
    metadata
}

/// Sets the field unless there is nothing in it: reading takes both for the same.
fn set(object: &mut Map<String, Value>, field: &str, value: Value) {
    let empty = match &value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    if !empty {
        object.insert(field.to_owned(), value);
    }
}

fn labels(labels: &Labels) -> Value {
    labels
        .iter()
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect::<Map<_, _>>()
        .into()
}

fn size(size: Quantity) -> Value {
    json!({"storage": size.0.to_string()})
}

fn label_selector(selector: &LabelSelector) -> Value {
    let mut written = Map::new();
    set(&mut written, "matchLabels", labels(&selector.match_labels));
    set(
        &mut written,
        "matchExpressions",
        requirements(&selector.match_expressions),
    );
    Value::Object(written)
}

fn node_selector(selector: &NodeSelector) -> Value {
    let terms: Vec<Value> = selector
        .node_selector_terms
        .iter()
        .map(|term| {
            let mut written = Map::new();
            set(
                &mut written,
                "matchExpressions",
                requirements(&term.match_expressions),
            );
            set(
                &mut written,
                "matchFields",
                requirements(&term.match_fields),
            );
            Value::Object(written)
        })
        .collect();
    json!({"nodeSelectorTerms": terms})
}

fn requirements(requirements: &[Requirement]) -> Value {
    requirements
        .iter()
        .map(|requirement| {
            let mut written = Map::new();
            written.insert("key".to_owned(), json!(requirement.key));
            written.insert("operator".to_owned(), json!(operator(requirement.operator)));
            set(&mut written, "values", json!(requirement.values));
            Value::Object(written)
        })
        .collect()
}

const fn operator(operator: Operator) -> &'static str {
    match operator {
        Operator::In => "In",
        Operator::NotIn => "NotIn",
        Operator::Exists => "Exists",
        Operator::DoesNotExist => "DoesNotExist",
        Operator::Gt => "Gt",
        Operator::Lt => "Lt",
        Operator::Unknown => "Unknown",
    }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
