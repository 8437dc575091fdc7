//! The objects that one judgement sees from its place, besides those of the cluster.

use std::fmt::Debug;

use super::key::{IndexKey, ObjectKey};
use crate::model::object::Object;

/// Objects that take precedence over those with the same kind and name in the cluster. They contain
/// no nodes.
pub trait Place: Debug {
    /// The object with this key that counts here.
    fn object(&self, key: ObjectKey<'_>) -> Option<&Object>;

    /// A superset of the objects here that have all these index keys, one for each name. The users
    /// of a claim by their claim templates are under [`IndexKey::Claim`] as well.
    fn objects(&self, keys: &[IndexKey<'_>]) -> Vec<&Object>;
}

/// A place in which only this object is.
impl Place for Object {
    fn object(&self, key: ObjectKey<'_>) -> Option<&Object> {
        (ObjectKey::of(self.kind(), self.metadata()) == key).then_some(self)
    }

    fn objects(&self, _: &[IndexKey<'_>]) -> Vec<&Object> {
        vec![self]
    }
}
