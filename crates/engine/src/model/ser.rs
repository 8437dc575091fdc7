//! Serializes fields so that deserializing them gives the same value.

use serde::ser::{SerializeMap, Serializer};

/// Whether a field can be omitted, because its absence means the same.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Writes an empty object, as only the presence of the object was read.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) fn object_if<S: Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_map(Some(0))?.end()
}
