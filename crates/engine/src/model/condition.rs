//! Conditions in the status of an object.

use jiff::Timestamp;
use serde::Deserialize;

use super::Text;
use super::de::nullable;
use super::metadata::time;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Condition {
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub(super) kind: Text,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "nullable")]
    pub(super) status: Text,
    #[serde(deserialize_with = "nullable")]
    pub(super) message: String,
    #[serde(deserialize_with = "time")]
    pub(super) last_transition_time: Option<Timestamp>,
}
