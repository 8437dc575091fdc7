//! VolumeAttachments.

use serde::Deserialize;

use super::Text;
use super::de::nullable;
use super::metadata::Metadata;
use super::resource::Resource;

/// A `storage.k8s.io` VolumeAttachment: a volume that is attached to a node, or being attached or
/// detached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Resource<Spec, Status>")]
pub struct VolumeAttachment {
    /// Name and the guard's annotations.
    pub metadata: Metadata,
    /// The persistent volume's name; empty for an inline volume of a pod.
    pub volume: Text,
    /// The node.
    pub node: Text,
    /// Whether it is attached, according to the driver.
    pub attached: bool,
    /// The driver's last error on attaching it.
    pub attach_error: Option<String>,
    /// The driver's last error on detaching it.
    pub detach_error: Option<String>,
}

impl VolumeAttachment {
    /// Whether the volume is attached and not about to be detached. A volume that is about to be
    /// detached is no longer mounted, whatever its status says (`Attach` in
    /// `pkg/volume/csi/csi_attacher.go`).
    pub const fn is_settled(&self) -> bool {
        self.attached && !self.metadata.is_being_deleted()
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    node_name: Text,
    #[serde(deserialize_with = "nullable")]
    source: Source,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Source {
    #[serde(deserialize_with = "nullable")]
    persistent_volume_name: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    #[serde(deserialize_with = "nullable")]
    attached: bool,
    attach_error: Option<Fault>,
    detach_error: Option<Fault>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fault {
    #[serde(deserialize_with = "nullable")]
    message: String,
}

impl From<Resource<Spec, Status>> for VolumeAttachment {
    fn from(written: Resource<Spec, Status>) -> Self {
        let status = written.status;
        Self {
            metadata: written.metadata,
            volume: written.spec.source.persistent_volume_name,
            node: written.spec.node_name,
            attached: status.attached,
            attach_error: status.attach_error.map(|error| error.message),
            detach_error: status.detach_error.map(|error| error.message),
        }
    }
}
