//! VolumeAttachments.

use serde::Deserialize;

use super::Text;
use super::de::nullable;
use super::metadata::Metadata;

/// A `storage.k8s.io` VolumeAttachment: a volume, a node, and whether it is attached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    /// Name and the guard's annotations.
    #[serde(deserialize_with = "nullable")]
    pub metadata: Metadata,
    /// The volume and the node.
    #[serde(deserialize_with = "nullable")]
    pub spec: VolumeAttachmentSpec,
    /// The status.
    #[serde(deserialize_with = "nullable")]
    pub status: VolumeAttachmentStatus,
}

/// The volume and the node.
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
    /// The persistent volume's name; empty for an inline volume of a pod.
    #[serde(deserialize_with = "nullable")]
    pub persistent_volume_name: Text,
}

/// The status of an attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct VolumeAttachmentStatus {
    /// Whether the volume is attached.
    #[serde(deserialize_with = "nullable")]
    pub attached: bool,
}
