//! Any object the project knows, read by its kind.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer};

use super::Text;
use super::autoscaler::{Autoscaler, Scale};
use super::claim::Claim;
use super::lease::Lease;
use super::metadata::Metadata;
use super::node::Node;
use super::runtime_class::RuntimeClass;
use super::storage_class::{CsiDriver, StorageClass};
use super::volume::Volume;
use super::volume_attachment::VolumeAttachment;
use super::workload::{Workload, WorkloadKind};

/// A namespace: its labels and the project's own annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct Namespace {
    /// Name, labels and annotations.
    #[serde(default)]
    pub metadata: Metadata,
}

/// The kinds of object that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// Something that makes pods.
    Workload(WorkloadKind),
    /// `v1` PersistentVolumeClaim.
    Claim,
    /// `v1` PersistentVolume.
    Volume,
    /// `storage.k8s.io` StorageClass.
    StorageClass,
    /// `storage.k8s.io` CSIDriver.
    CsiDriver,
    /// `v1` Node.
    Node,
    /// `v1` Namespace.
    Namespace,
    /// `autoscaling` HorizontalPodAutoscaler.
    Autoscaler,
    /// `autoscaling` Scale.
    Scale,
    /// `coordination.k8s.io` Lease.
    Lease,
    /// `storage.k8s.io` VolumeAttachment.
    VolumeAttachment,
    /// `node.k8s.io` RuntimeClass.
    RuntimeClass,
}

impl ObjectKind {
    /// Names an object of the kind that is in a namespace.
    #[must_use]
    pub fn reference(self, namespace: &str, name: &str) -> ObjectRef {
        ObjectRef {
            api_version: self.api_version().into(),
            kind: self.name().into(),
            namespace: Some(namespace.into()),
            name: name.into(),
        }
    }

    /// The kind for an API group (empty: core) and a kind's name; `None` for
    /// kinds that are not read, custom resources of the same name included.
    #[must_use]
    pub fn of(group: &str, kind: &str) -> Option<Self> {
        Some(match (group, kind) {
            ("", "PersistentVolumeClaim") => Self::Claim,
            ("", "PersistentVolume") => Self::Volume,
            ("", "Node") => Self::Node,
            ("", "Namespace") => Self::Namespace,
            ("storage.k8s.io", "StorageClass") => Self::StorageClass,
            ("storage.k8s.io", "CSIDriver") => Self::CsiDriver,
            ("autoscaling", "HorizontalPodAutoscaler") => Self::Autoscaler,
            ("autoscaling", "Scale") => Self::Scale,
            ("coordination.k8s.io", "Lease") => Self::Lease,
            ("storage.k8s.io", "VolumeAttachment") => Self::VolumeAttachment,
            ("node.k8s.io", "RuntimeClass") => Self::RuntimeClass,
            (group, kind) => {
                let kind = WorkloadKind::from_name(kind)?;
                if kind.group() != group {
                    return None;
                }
                Self::Workload(kind)
            }
        })
    }

    /// The kind for the `apiVersion` and `kind` of a manifest.
    #[must_use]
    pub fn of_manifest(api_version: &str, kind: &str) -> Option<Self> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self::of(group, kind)
    }

    /// The `apiVersion` of its manifests.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Workload(kind) => kind.api_version(),
            Self::Claim | Self::Volume | Self::Node | Self::Namespace => "v1",
            Self::StorageClass | Self::CsiDriver | Self::VolumeAttachment => "storage.k8s.io/v1",
            Self::Autoscaler => "autoscaling/v2",
            Self::Scale => "autoscaling/v1",
            Self::Lease => "coordination.k8s.io/v1",
            Self::RuntimeClass => "node.k8s.io/v1",
        }
    }

    /// The kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workload(kind) => kind.name(),
            Self::Claim => "PersistentVolumeClaim",
            Self::Volume => "PersistentVolume",
            Self::StorageClass => "StorageClass",
            Self::CsiDriver => "CSIDriver",
            Self::Node => "Node",
            Self::Namespace => "Namespace",
            Self::Autoscaler => "HorizontalPodAutoscaler",
            Self::Scale => "Scale",
            Self::Lease => "Lease",
            Self::VolumeAttachment => "VolumeAttachment",
            Self::RuntimeClass => "RuntimeClass",
        }
    }
}

/// Reads an object of the kind it holds, straight from the bytes.
impl<'de> DeserializeSeed<'de> for ObjectKind {
    type Value = Object;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Object, D::Error> {
        Ok(match self {
            Self::Workload(kind) => Object::Workload(Workload::read(kind, deserializer)?),
            Self::Claim => Object::Claim(Claim::deserialize(deserializer)?),
            Self::Volume => Object::Volume(Volume::deserialize(deserializer)?),
            Self::StorageClass => Object::StorageClass(StorageClass::deserialize(deserializer)?),
            Self::CsiDriver => Object::CsiDriver(CsiDriver::deserialize(deserializer)?),
            Self::Node => Object::Node(Node::deserialize(deserializer)?),
            Self::Namespace => Object::Namespace(Namespace::deserialize(deserializer)?),
            Self::Autoscaler => Object::Autoscaler(Autoscaler::deserialize(deserializer)?),
            Self::Scale => Object::Scale(Scale::deserialize(deserializer)?),
            Self::Lease => Object::Lease(Lease::deserialize(deserializer)?),
            Self::VolumeAttachment => {
                Object::VolumeAttachment(VolumeAttachment::deserialize(deserializer)?)
            }
            Self::RuntimeClass => Object::RuntimeClass(RuntimeClass::deserialize(deserializer)?),
        })
    }
}

/// An object, reduced to facts.
// Values are made once and moved into an `Arc`; boxing the large ones would
// cost an allocation on the path of every review.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// Something that makes pods.
    Workload(Workload),
    /// A claim.
    Claim(Claim),
    /// A persistent volume.
    Volume(Volume),
    /// A storage class.
    StorageClass(StorageClass),
    /// A CSI driver.
    CsiDriver(CsiDriver),
    /// A node.
    Node(Node),
    /// A namespace.
    Namespace(Namespace),
    /// An autoscaler.
    Autoscaler(Autoscaler),
    /// A request to scale.
    Scale(Scale),
    /// A node's sign of life.
    Lease(Lease),
    /// A volume at a node.
    VolumeAttachment(VolumeAttachment),
    /// How containers are run.
    RuntimeClass(RuntimeClass),
}

impl Object {
    /// The metadata, for the kinds that keep it.
    #[must_use]
    pub const fn metadata(&self) -> Option<&Metadata> {
        match self {
            Self::Workload(workload) => Some(&workload.metadata),
            Self::Claim(claim) => Some(&claim.metadata),
            Self::Namespace(namespace) => Some(&namespace.metadata),
            Self::Autoscaler(autoscaler) => Some(&autoscaler.metadata),
            Self::Scale(scale) => Some(&scale.metadata),
            Self::Node(node) => Some(&node.metadata),
            Self::Lease(lease) => Some(&lease.metadata),
            Self::VolumeAttachment(attachment) => Some(&attachment.metadata),
            Self::Volume(_)
            | Self::StorageClass(_)
            | Self::CsiDriver(_)
            | Self::RuntimeClass(_) => None,
        }
    }

    /// The metadata, to be completed by what a request says beside the object.
    pub const fn metadata_mut(&mut self) -> Option<&mut Metadata> {
        match self {
            Self::Workload(workload) => Some(&mut workload.metadata),
            Self::Claim(claim) => Some(&mut claim.metadata),
            Self::Namespace(namespace) => Some(&mut namespace.metadata),
            Self::Autoscaler(autoscaler) => Some(&mut autoscaler.metadata),
            Self::Scale(scale) => Some(&mut scale.metadata),
            Self::Lease(lease) => Some(&mut lease.metadata),
            Self::Volume(_)
            | Self::StorageClass(_)
            | Self::CsiDriver(_)
            | Self::Node(_)
            | Self::VolumeAttachment(_)
            | Self::RuntimeClass(_) => None,
        }
    }
}

/// Names one object, as messages and reports do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// `apps/v1` for example.
    pub api_version: Text,
    /// `Deployment` for example.
    pub kind: Text,
    /// The namespace, absent for objects that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text>,
    /// The name.
    pub name: Text,
}

/// `Deployment shop/web`.
impl std::fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}
