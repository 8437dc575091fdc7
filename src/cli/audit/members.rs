//! An object of a cluster that is judged together with the others.

use jiff::Timestamp;
use serde_json::Value;

use engine::model::object::{Object, ObjectRef};
use engine::snapshot::StoredObject;
use engine::verdict::{Document, Finding};

/// An object that is judged.
pub(super) struct Member {
    pub(super) object: Object,
    pub(super) reference: ObjectRef,
    /// Whether it has no pods now, and is judged as if it had one.
    is_at_zero: bool,
}

impl Member {
    pub(super) fn from_stored(stored: &StoredObject) -> Option<Self> {
        let mut object = match stored {
            StoredObject::Workload(workload) => Object::Workload((**workload).clone()),
            StoredObject::Claim(claim) => Object::Claim((**claim).clone()),
            StoredObject::Autoscaler(autoscaler) => Object::Autoscaler((**autoscaler).clone()),
            _ => return None,
        };
        let metadata = object.metadata();
        let reference = object.kind().reference(&metadata.namespace, &metadata.name);
        let is_at_zero = match &mut object {
            // It will have pods again; otherwise nobody would keep it.
            Object::Workload(workload) if workload.kind.scales() && workload.replicas == 0 => {
                workload.replicas = 1;
                true
            }
            _ => false,
        };
        Some(Self { object, reference, is_at_zero })
    }

    /// The finding, with a note if it assumes that the object has pods.
    pub(super) fn qualified(&self, mut finding: Finding) -> Finding {
        if self.is_at_zero {
            finding.message += " It has no pods now, and is judged as with one.";
            finding.brief += " (once it has pods)";
        }
        finding
    }
}

/// An object as it is in the cluster, if it was fetched.
pub(super) struct Live<'d> {
    pub(super) document: Option<&'d Value>,
    pub(super) now: Timestamp,
}

impl Document for Live<'_> {
    fn object(&self) -> Option<&Value> {
        self.document
    }

    fn moment(&self) -> Option<Timestamp> {
        Some(self.now)
    }
}
