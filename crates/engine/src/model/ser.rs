//! Writing fields so that reading them finds the same again.

use serde::ser::{SerializeMap, Serializer};

/// Whether a field need not be written: reading takes its absence for this.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Writes an empty object in place of one of which only that it is there is known.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) fn object_if<S: Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_map(Some(0))?.end()
}
