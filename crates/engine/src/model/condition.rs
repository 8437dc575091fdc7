//! Conditions in the status of an object.

use serde::Deserialize;

use super::Text;
use super::de::nullable;

/// A condition.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Condition {
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub(super) kind: Text,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "nullable")]
    pub(super) status: Text,
}
