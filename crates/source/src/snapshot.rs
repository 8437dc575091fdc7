//! Writes a snapshot as YAML that [`super::facts`] reads.
//!
//! The YAML is written from the model, so it contains nothing else: no pods, no containers, no
//! annotations of other tools, no volume handles.

use std::io;

use serde_json::{Value, json, to_value};

use engine::model::object::ObjectKind;
use engine::model::storage_class::StorageClass;
use engine::snapshot::{Snapshot, StoredObject};

/// The kinds that are written, in their order.
pub const KINDS: [ObjectKind; 8] = [
    ObjectKind::Namespace,
    ObjectKind::StorageClass,
    ObjectKind::CsiDriver,
    ObjectKind::Node,
    ObjectKind::Volume,
    ObjectKind::Claim,
    ObjectKind::RuntimeClass,
    ObjectKind::CsiNode,
];

/// The replacement for class parameters that may be secrets.
const REDACTED: &str = "REDACTED";

/// Parts of the names of class parameters that contain a secret itself rather than the name
/// of a Secret (`restuserkey` of the in-tree GlusterFS provisioner).
const SECRET_PARAMETERS: [&str; 6] =
    ["password", "passphrase", "restuserkey", "secretkey", "accesskey", "token"];

/// A snapshot that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The output cannot be written.
    #[error(
        "The snapshot could not be written: {0}. Check the disk and the permissions of the target."
    )]
    Write(#[from] io::Error),
    /// A fact has no form in YAML.
    #[error("A fact could not be written as YAML: {0}. Please report this.")]
    Encode(#[from] serde_saphyr::ser::Error),
    /// A fact has no form in JSON.
    #[error("A fact could not be serialized: {0}. Please report this.")]
    Fact(#[from] serde_json::Error),
}

/// Writes the version of the API server and the objects of the [`KINDS`], each kind sorted by name,
/// so that two snapshots of one cluster compare line by line. Class parameters that may be secrets
/// are replaced by `REDACTED`. `printable` turns the YAML of a document, and the value behind it,
/// into the text to write.
///
/// # Errors
///
/// Fails if `out` cannot be written.
pub fn write(
    cluster: &Snapshot,
    printable: impl Fn(String, &Value) -> String,
    out: &mut dyn io::Write,
) -> Result<(), SnapshotError> {
    let mut manifests = Vec::new();
    for object in cluster.objects() {
        if let Some(manifest) = manifest(object)? {
            let place = KINDS.iter().position(|kind| *kind == object.kind());
            let key = object.key();
            manifests.push(((place, key.namespace, key.name), manifest));
        }
    }
    manifests.sort_unstable_by_key(|(key, _)| *key);
    // As `kubectl version` prints it.
    if let Some(server) = cluster.server.git_version() {
        let version = json!({"serverVersion": {"gitVersion": server}});
        write!(out, "---\n{}", printable(serde_saphyr::to_string(&version)?, &version))?;
    }
    for (_, manifest) in manifests {
        let document = printable(serde_saphyr::to_string(&manifest)?, &manifest);
        write!(out, "---\n{document}")?;
    }
    Ok(())
}

/// The object's manifest; `None` for kinds that are not written.
fn manifest(object: &StoredObject) -> Result<Option<Value>, serde_json::Error> {
    let fields = match object {
        StoredObject::Namespace(namespace) => to_value(&**namespace)?,
        StoredObject::StorageClass(class) => to_value(redacted(class))?,
        StoredObject::CsiDriver(driver) => to_value(&**driver)?,
        StoredObject::Node(node) => to_value(&**node)?,
        StoredObject::Volume(volume) => to_value(&**volume)?,
        StoredObject::Claim(claim) => to_value(&**claim)?,
        StoredObject::RuntimeClass(class) => to_value(&**class)?,
        StoredObject::CsiNode(node) => to_value(&**node)?,
        _ => return Ok(None),
    };
    let kind = object.kind();
    let mut manifest = json!({"apiVersion": kind.api_version(), "kind": kind.name()});
    if let (Value::Object(manifest), Value::Object(fields)) = (&mut manifest, fields) {
        manifest.extend(fields);
        // A uid identifies the owner of a workload, and workloads are not written.
        if let Some(Value::Object(metadata)) = manifest.get_mut("metadata") {
            metadata.remove("uid");
        }
    }
    Ok(Some(manifest))
}

fn redacted(class: &StorageClass) -> StorageClass {
    let parameters = class.parameters.iter().map(|(key, value)| {
        let name = key.to_ascii_lowercase();
        let secret = SECRET_PARAMETERS.iter().any(|part| name.contains(part));
        (key, if secret { REDACTED } else { value })
    });
    StorageClass { parameters: parameters.collect(), ..class.clone() }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
