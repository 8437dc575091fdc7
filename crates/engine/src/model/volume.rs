//! Persistent volumes.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::Text;
use super::access_mode::{AccessModes, VolumeMode};
use super::claim::Capacity;
use super::de::nullable;
use super::in_tree::InTreeType;
use super::metadata::{CLASS_BETA, Metadata};
use super::node::NodeSelector;
use super::resource::Resource;
use super::ser::is_default;
use super::uid::Uid;

/// A persistent volume, reduced to the fields that decide who may use it and where.
pub type Volume = Resource<VolumeSpec, VolumeStatus>;

/// The status of a persistent volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeStatus {
    /// Its phase, `Available` for example.
    #[serde(deserialize_with = "nullable")]
    pub phase: Text,
}

impl Volume {
    /// Whether no claim can be bound to it any more: it is being deleted, its claim was deleted,
    /// or it could not be reclaimed.
    pub(crate) fn is_spent(&self) -> bool {
        let phase = self.status.phase.as_str();
        self.metadata.is_being_deleted() || matches!(phase, "Released" | "Failed")
    }

    /// The claim that its `claimRef` names, unless it is spent.
    pub(crate) fn claimed_by(&self) -> Option<&ClaimRef> {
        self.spec.claim_ref.as_ref().filter(|_| !self.is_spent())
    }

    /// The CSI driver that serves it; `None` for an in-tree or unknown type.
    pub fn csi_driver(&self) -> Option<&str> {
        match &self.spec.source {
            VolumeSource::Csi(driver) => Some(driver),
            VolumeSource::InTree(_) | VolumeSource::Unknown => None,
        }
    }

    /// Whether it is the same volume as `other` to the attach-detach controller, which identifies a
    /// volume by the driver and the driver's name for it (`GetUniqueVolumeNameFromSpec` in
    /// `pkg/volume/util/util.go`).
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.csi_driver().is_some()
            && !self.spec.handle.is_empty()
            && self.spec.source == other.spec.source
            && self.spec.handle == other.spec.handle
    }

    /// Whether it is bound to this claim, not to another one with the same name
    /// (`IsVolumeBoundToClaim` in `component-helpers/storage/volume/pv_helpers.go`). The volume is
    /// bound before the claim is.
    pub(crate) fn is_claimed_by(&self, claim: &Metadata) -> bool {
        let Some(named) = self.claimed_by() else {
            return false;
        };
        let is_same = match (named.uid == Uid::default(), claim.uid == Uid::default()) {
            (true, _) => true,
            (false, true) => self.status.phase == "Bound",
            (false, false) => named.uid == claim.uid,
        };
        is_same && named.namespace == claim.namespace && named.name == claim.name
    }

    /// Its class; empty if it has none. The older annotation takes precedence
    /// (`GetPersistentVolumeClass` in the Kubernetes source).
    pub fn class(&self) -> &str {
        self.metadata.annotations.get(CLASS_BETA).unwrap_or(&self.spec.storage_class_name)
    }
}

/// The properties of a persistent volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenSpec", rename_all = "camelCase")]
pub struct VolumeSpec {
    /// Its access modes.
    pub access_modes: AccessModes,
    /// Filesystem or block device.
    pub volume_mode: VolumeMode,
    /// Its size.
    pub capacity: Capacity,
    /// Its class; empty if it has none.
    #[serde(skip_serializing_if = "is_default")]
    pub storage_class_name: Text,
    /// Its source.
    #[serde(flatten)]
    pub source: VolumeSource,
    /// The CSI driver's name for it; empty if no CSI driver serves it. It is not serialized, because
    /// some drivers put addresses and accounts into it.
    #[serde(skip)]
    pub handle: Text,
    /// The claim that it is bound to, or reserved for.
    #[serde(skip_serializing_if = "is_default")]
    pub claim_ref: Option<ClaimRef>,
    /// The nodes that can attach it; `None` if all can.
    #[serde(serialize_with = "required", skip_serializing_if = "is_default")]
    pub node_affinity: Option<NodeSelector>,
}

#[allow(clippy::ref_option, reason = "serde passes references")]
fn required<S: Serializer>(nodes: &Option<NodeSelector>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("required", nodes)])
}

/// A reference to a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimRef {
    /// The claim's namespace.
    pub namespace: Text,
    /// The claim's name.
    pub name: Text,
    /// The claim's uid, once the two are bound.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub uid: Uid,
}

/// The source of a persistent volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VolumeSource {
    /// A volume of the named CSI driver.
    Csi(Text),
    /// A volume of an in-tree type.
    InTree(&'static InTreeType),
    /// An unknown type.
    #[default]
    Unknown,
}

/// A map with the field of the source.
impl Serialize for VolumeSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let source = match self {
            Self::Csi(driver) => Some(("csi", Some(("driver", driver)))),
            Self::InTree(in_tree) => Some((in_tree.field, None)),
            Self::Unknown => None,
        };
        serializer.collect_map(source.map(|(field, driver)| (field, BTreeMap::from_iter(driver))))
    }
}

/// Declares a spec as it is written: the fields that are read, and a flag for each source that is
/// present.
macro_rules! written_spec {
    ($($source:ident)*) => {
        #[allow(non_snake_case, reason = "each source is named like its field")]
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase", expecting = "a persistent volume's spec")]
        struct WrittenSpec {
            access_modes: AccessModes,
            volume_mode: VolumeMode,
            #[serde(deserialize_with = "nullable")]
            capacity: Capacity,
            #[serde(deserialize_with = "nullable")]
            storage_class_name: Text,
            #[serde(deserialize_with = "nullable")]
            node_affinity: Affinity,
            claim_ref: Option<ClaimRef>,
            csi: Option<Csi>,
            $($source: Option<IgnoredAny>,)*
        }

        impl WrittenSpec {
            /// The source's field, if the source is an in-tree type.
            const fn in_tree(&self) -> Option<&'static str> {
                $(if self.$source.is_some() {
                    return Some(stringify!($source));
                })*
                None
            }
        }
    };
}

written_spec! {
    awsElasticBlockStore azureDisk azureFile cephfs cinder fc flexVolume flocker
    gcePersistentDisk glusterfs hostPath iscsi local nfs photonPersistentDisk portworxVolume
    quobyte rbd scaleIO storageos vsphereVolume
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Affinity {
    required: Option<NodeSelector>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Csi {
    driver: Text,
    #[serde(deserialize_with = "nullable")]
    volume_handle: Text,
}

impl From<WrittenSpec> for VolumeSpec {
    fn from(written: WrittenSpec) -> Self {
        let in_tree = written.in_tree().and_then(InTreeType::of_field);
        let (source, handle) = match (written.csi, in_tree) {
            (Some(csi), _) => (VolumeSource::Csi(csi.driver), csi.volume_handle),
            (None, Some(in_tree)) => (VolumeSource::InTree(in_tree), Text::default()),
            (None, None) => (VolumeSource::Unknown, Text::default()),
        };
        Self {
            source,
            handle,
            access_modes: written.access_modes,
            volume_mode: written.volume_mode,
            capacity: written.capacity,
            storage_class_name: written.storage_class_name,
            node_affinity: written.node_affinity.required,
            claim_ref: written.claim_ref,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_is_found_by_its_field() {
        let read = |text: &str| serde_json::from_str::<Volume>(text).unwrap();
        let csi = read(
            r#"{"metadata":{"name":"pv"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},
               "csi":{"driver":"ebs.csi.aws.com","volumeHandle":"v"},"claimRef":{"namespace":"a","name":"b"}}}"#,
        );
        assert_eq!(csi.spec.source, VolumeSource::Csi("ebs.csi.aws.com".into()));
        let claim = csi.spec.claim_ref.unwrap();
        assert_eq!((&*claim.namespace, &*claim.name), ("a", "b"));
        for in_tree in InTreeType::all() {
            let text = format!(r#"{{"spec":{{"{}":{{"a":1}},"csi":null}}}}"#, in_tree.field);
            assert_eq!(read(&text).spec.source, VolumeSource::InTree(in_tree), "{text}");
        }
        assert_eq!(read(r#"{"spec":{}}"#).spec.source, VolumeSource::Unknown);
    }
}
