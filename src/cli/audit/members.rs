//! An object of a cluster that is judged together with the others.

use jiff::Timestamp;
use serde_json::Value;

use engine::model::object::{Object, ObjectRef};
use engine::snapshot::StoredObject;
use engine::verdict::Document;

/// An object that is judged.
pub(super) struct Member {
    pub(super) object: Object,
    pub(super) reference: ObjectRef,
}

impl Member {
    pub(super) fn from_stored(stored: &StoredObject) -> Option<Self> {
        let object = match stored {
            StoredObject::Workload(workload) => Object::Workload((**workload).clone()),
            StoredObject::Claim(claim) => Object::Claim((**claim).clone()),
            StoredObject::Autoscaler(autoscaler) => Object::Autoscaler((**autoscaler).clone()),
            _ => return None,
        };
        let metadata = object.metadata();
        let reference = object.kind().reference(&metadata.namespace, &metadata.name);
        Some(Self { object, reference })
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
