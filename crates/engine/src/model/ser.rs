//! Serializes fields so that deserializing them gives the same value.

/// Whether a field can be omitted, because its absence means the same.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
