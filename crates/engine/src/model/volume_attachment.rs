//! The object that stands for a volume being attached to a node.

use serde::Deserialize;

use super::Text;
use super::de::nullable;
use super::metadata::Metadata;

/// A `storage.k8s.io` VolumeAttachment: which volume, where, and whether by now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    /// Name and the project's own annotations.
    #[serde(deserialize_with = "nullable")]
    pub metadata: Metadata,
    /// What is to be attached.
    #[serde(deserialize_with = "nullable")]
    pub spec: VolumeAttachmentSpec,
    /// What became of it.
    #[serde(deserialize_with = "nullable")]
    pub status: VolumeAttachmentStatus,
}

/// What is to be attached where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeAttachmentSpec {
    /// The node.
    #[serde(deserialize_with = "nullable")]
    pub node_name: Text,
    /// The volume.
    #[serde(deserialize_with = "nullable")]
    pub source: VolumeAttachmentSource,
}

/// The volume of an attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeAttachmentSource {
    /// Its name; empty for a volume that a pod describes itself.
    #[serde(deserialize_with = "nullable")]
    pub persistent_volume_name: Text,
}

/// What became of an attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct VolumeAttachmentStatus {
    /// Whether the volume is at the node.
    #[serde(deserialize_with = "nullable")]
    pub attached: bool,
}
