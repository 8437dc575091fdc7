//! Objects that exist nowhere, about which the engine is asked.

use serde_json::{Value, json};

use crate::model::ListRoom;
use crate::model::object::{Object, ObjectKind};
use crate::model::workload::{Workload, WorkloadKind};
use crate::verdict::Document;

/// A name that no object has: an exemption by name that covers it covers every object.
pub(super) const NOBODY: &str = "multi-attach-guard-volume-facts-probe";

/// A Deployment that does nothing but use the volume `source`.
pub(super) fn deployment(namespace: &str, source: &Value) -> Option<Workload> {
    let mut volume = source.clone();
    volume["name"] = json!("volume");
    let document = json!({
        "metadata": { "name": NOBODY, "namespace": namespace },
        "spec": { "template": { "spec": { "volumes": [volume] } } },
    });
    let kind = ObjectKind::Workload(WorkloadKind::Deployment);
    match kind.read(&document.to_string(), &ListRoom::endless()) {
        Ok(Object::Workload(workload)) => Some(workload),
        _ => None,
    }
}

/// A review without a submitted document: the guard asks itself.
pub(super) struct Nothing;

impl Document for Nothing {
    fn object(&self) -> Option<&Value> {
        None
    }

    fn changes_template(&self) -> bool {
        false
    }
}
