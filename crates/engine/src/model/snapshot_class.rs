//! VolumeSnapshotClasses.

use serde::Deserialize;

use super::Text;
use super::de::nullable;
use super::labels::Labels;

/// The annotation of the default class (external-snapshotter,
/// `IsDefaultSnapshotClassAnnotation`).
const DEFAULT: &str = "snapshot.storage.kubernetes.io/is-default-class";

/// A VolumeSnapshotClass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SnapshotClass {
    metadata: Metadata,
    /// The driver that creates the snapshots.
    #[serde(deserialize_with = "nullable")]
    pub driver: Text,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Metadata {
    name: Text,
    #[serde(deserialize_with = "nullable")]
    annotations: Labels,
}

impl SnapshotClass {
    /// The class's name.
    #[must_use]
    pub const fn name(&self) -> &Text {
        &self.metadata.name
    }

    /// Whether it is the default class.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.metadata.annotations.get(DEFAULT) == Some("true")
    }
}
