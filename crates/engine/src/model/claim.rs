//! Persistent volume claims.

use serde::{Deserialize, Serialize};

use super::Text;
use super::access_mode::{AccessModes, VolumeMode};
use super::de::{name, nullable, some_name};
use super::metadata::CLASS_BETA;
use super::quantity::Quantity;
use super::resource::Resource;
use super::selector::LabelSelector;
use super::ser::is_default;

/// A persistent volume claim.
pub type Claim = Resource<ClaimSpec, ClaimStatus>;

/// The storage that a claim requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimSpec {
    /// The requested modes.
    pub access_modes: AccessModes,
    /// Filesystem or block device.
    pub volume_mode: VolumeMode,
    /// The requested size.
    #[serde(deserialize_with = "nullable")]
    pub resources: ClaimResources,
    /// The class in the field; see [`Claim::class`].
    #[serde(deserialize_with = "some_name", skip_serializing_if = "is_default")]
    pub storage_class_name: Option<Text>,
    /// The volume that the claim is bound to or requests by name; empty if there is none.
    #[serde(deserialize_with = "name", skip_serializing_if = "is_default")]
    pub volume_name: Text,
    /// Restricts the volumes that the claim can be bound to; an empty one allows all.
    #[serde(skip_serializing_if = "is_default")]
    pub selector: Option<LabelSelector>,
    /// The volume or snapshot that the volume is copied from.
    #[serde(skip_serializing_if = "is_default")]
    pub data_source: Option<DataSource>,
    /// The newer field for the same purpose.
    #[serde(skip_serializing_if = "is_default")]
    pub data_source_ref: Option<DataSource>,
    /// The VolumeAttributesClass, whose parameters override those of the storage class; empty:
    /// none.
    #[serde(deserialize_with = "name", skip_serializing_if = "is_default")]
    pub volume_attributes_class_name: Text,
}

/// The object that fills a new volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DataSource {
    /// `VolumeSnapshot`, `PersistentVolumeClaim`, or a kind that a populator reads.
    #[serde(deserialize_with = "nullable")]
    pub kind: Text,
}

/// The resources of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimResources {
    /// The minimum.
    #[serde(deserialize_with = "nullable")]
    pub requests: Capacity,
}

/// An amount of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Capacity {
    /// The size.
    #[serde(deserialize_with = "nullable")]
    pub storage: Quantity,
}

/// The storage that a claim is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimStatus {
    /// The modes of the volume; empty while the claim is unbound.
    #[serde(skip_serializing_if = "is_default")]
    pub access_modes: AccessModes,
    /// The phase that the binding controller reports.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub phase: ClaimPhase,
}

/// The phase of a claim's binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ClaimPhase {
    /// It has no volume yet.
    Pending,
    /// It was bound, and its volume is gone or another claim's.
    Lost,
    /// It is bound, or its phase is not known.
    #[default]
    #[serde(other)]
    Other,
}

impl Claim {
    /// The requested class, from the older annotation or the field. An empty name requests no
    /// class, `None` the default one.
    pub fn class(&self) -> Option<&str> {
        self.metadata.annotations.get(CLASS_BETA).or(self.spec.storage_class_name.as_deref())
    }

    /// The object that fills the volume.
    pub fn data_source(&self) -> Option<&DataSource> {
        self.spec.data_source_ref.as_ref().or(self.spec.data_source.as_ref())
    }
}
