//! The parts that nearly all objects have.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::de::nullable;
use super::metadata::Metadata;
use super::ser::is_default;

/// An object with the spec and the status of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(
    default,
    bound(
        deserialize = "Spec: Default + Deserialize<'de>, Status: Default + Deserialize<'de>",
        serialize = "Spec: Default + PartialEq + Serialize, Status: Default + PartialEq + Serialize"
    )
)]
pub struct Resource<Spec, Status = Skipped> {
    /// Name, namespace and the rest.
    #[serde(deserialize_with = "nullable")]
    pub metadata: Metadata,
    /// The part that users write.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub spec: Spec,
    /// The part that controllers write.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub status: Status,
}

/// A part or an object whose content is skipped. Only its presence is known, so it is serialized as
/// an empty object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "IgnoredAny")]
pub struct Skipped {}

impl From<IgnoredAny> for Skipped {
    fn from(_: IgnoredAny) -> Self {
        Self {}
    }
}
