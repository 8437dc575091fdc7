//! Persistent volume claims.

use serde::Deserialize;
use serde::de::Deserializer;

use super::Text;
use super::access_mode::{AccessModes, VolumeMode};
use super::de::{nullable, present};
use super::metadata::{CLASS_BETA, Metadata};
use super::quantity::Quantity;
use super::selector::LabelSelector;

/// A claim, reduced to what decides which volume it has or will get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Name, namespace and the rest.
    pub metadata: Metadata,
    /// The access modes asked for.
    pub access_modes: AccessModes,
    /// The access modes of the bound volume, as the status repeats them.
    pub bound_modes: AccessModes,
    /// The class: `None` takes the default one, an empty name none at all.
    pub class: Option<Text>,
    /// The bound volume's name, empty while unbound.
    pub volume: Text,
    /// File system or raw block device.
    pub volume_mode: VolumeMode,
    /// The size asked for.
    pub request: Quantity,
    /// Labels the volume must have, for volumes made beforehand.
    pub selector: Option<LabelSelector>,
    /// Whether the volume is to be filled from a snapshot or another claim.
    pub has_data_source: bool,
}

impl<'de> Deserialize<'de> for Claim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default, deserialize_with = "nullable")]
            metadata: Metadata,
            #[serde(default, deserialize_with = "nullable")]
            spec: Spec,
            #[serde(default, deserialize_with = "nullable")]
            status: Status,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Spec {
            access_modes: AccessModes,
            storage_class_name: Option<Text>,
            #[serde(deserialize_with = "nullable")]
            volume_name: Text,
            volume_mode: VolumeMode,
            #[serde(deserialize_with = "nullable")]
            resources: Resources,
            selector: Option<LabelSelector>,
            #[serde(deserialize_with = "present")]
            data_source: bool,
            #[serde(deserialize_with = "present")]
            data_source_ref: bool,
        }

        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Resources {
            #[serde(deserialize_with = "nullable")]
            requests: Requests,
        }

        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Requests {
            #[serde(deserialize_with = "nullable")]
            storage: Quantity,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Status {
            access_modes: AccessModes,
        }

        let Wire {
            metadata,
            spec,
            status,
        } = Wire::deserialize(deserializer)?;
        let class = metadata
            .annotations
            .get(CLASS_BETA)
            .map(Text::from)
            .or(spec.storage_class_name);
        Ok(Self {
            metadata,
            access_modes: spec.access_modes,
            bound_modes: status.access_modes,
            class,
            volume: spec.volume_name,
            volume_mode: spec.volume_mode,
            request: spec.resources.requests.storage,
            selector: spec.selector,
            has_data_source: spec.data_source || spec.data_source_ref,
        })
    }
}
