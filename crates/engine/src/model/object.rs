//! The kinds of object that are read, in one table, and an object of any of them.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer};

use super::Text;
use super::autoscaler::{Autoscaler, Scale};
use super::bounded::{Bounded, ListRoom};
use super::claim::Claim;
use super::lease::Lease;
use super::metadata::Metadata;
use super::node::Node;
use super::resource::{Resource, Skipped};
use super::runtime_class::RuntimeClass;
use super::storage_class::{CsiDriver, CsiNode, StorageClass};
use super::volume::Volume;
use super::volume_attachment::VolumeAttachment;
use super::workload::{Workload, WorkloadKind};

/// A namespace: its labels and the guard's annotations.
pub type Namespace = Resource<Skipped>;

/// The names of a kind in the API, and whether its objects are in namespaces.
pub(super) struct KindRow {
    pub(super) api_version: &'static str,
    pub(super) name: &'static str,
    /// The resource's name in paths, permissions and metrics.
    pub(super) plural: &'static str,
    pub(super) is_namespaced: bool,
}

impl KindRow {
    pub(super) const fn namespaced(
        api_version: &'static str,
        name: &'static str,
        plural: &'static str,
    ) -> Self {
        Self { api_version, name, plural, is_namespaced: true }
    }

    const fn cluster(api_version: &'static str, name: &'static str, plural: &'static str) -> Self {
        Self { is_namespaced: false, ..Self::namespaced(api_version, name, plural) }
    }
}

/// The API group of an `apiVersion`, empty for the core one.
pub(super) fn group_of(api_version: &str) -> &str {
    let group = api_version.split_once('/');
    group.map_or("", |(group, _)| group)
}

/// Declares every kind that is no workload, once: its variant and type, whether its objects
/// are in namespaces, its `apiVersion`, its name and its plural name.
macro_rules! kinds {
    ($($kind:ident: $scope:ident $api_version:literal $name:literal $plural:literal)*) => {
        /// The kinds of object that are read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each kind is named like its type")]
        pub enum ObjectKind {
            /// A kind whose objects make pods.
            Workload(WorkloadKind),
            /// KEDA's autoscaler, which is read as an [`Autoscaler`].
            ScaledObject,
            $($kind,)*
        }

        impl ObjectKind {
            const OTHERS: &[Self] = &[Self::ScaledObject, $(Self::$kind,)*];

            const fn row(self) -> KindRow {
                match self {
                    Self::Workload(kind) => kind.row(),
                    Self::ScaledObject => {
                        KindRow::namespaced("keda.sh/v1alpha1", "ScaledObject", "scaledobjects")
                    }
                    $(Self::$kind => KindRow::$scope($api_version, $name, $plural),)*
                }
            }
        }

        /// An object, reduced to the fields that decide verdicts.
        #[allow(
            clippy::large_enum_variant,
            reason = "values are made once and moved into an `Arc`; a box would cost each review an allocation"
        )]
        #[allow(missing_docs, reason = "each kind is named like its type")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Object {
            /// An object that makes pods.
            Workload(Workload),
            $($kind($kind),)*
        }

        /// Reads an object of this kind straight from the bytes.
        impl<'de> DeserializeSeed<'de> for ObjectKind {
            type Value = Object;

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Object, D::Error> {
                Ok(match self {
                    Self::Workload(kind) => Object::Workload(Workload::read(kind, deserializer)?),
                    Self::ScaledObject => {
                        Object::Autoscaler(Autoscaler::read_scaled_object(deserializer)?)
                    }
                    $(Self::$kind => Object::$kind($kind::deserialize(deserializer)?),)*
                })
            }
        }

        impl Object {
            /// The metadata.
            pub const fn metadata(&self) -> &Metadata {
                match self {
                    Self::Workload(workload) => &workload.metadata,
                    $(Self::$kind(object) => &object.metadata,)*
                }
            }

            /// The metadata, to be completed.
            pub const fn metadata_mut(&mut self) -> &mut Metadata {
                match self {
                    Self::Workload(workload) => &mut workload.metadata,
                    $(Self::$kind(object) => &mut object.metadata,)*
                }
            }

            /// The kind.
            pub const fn kind(&self) -> ObjectKind {
                if let Self::Autoscaler(autoscaler) = self {
                    return autoscaler.kind();
                }
                match self {
                    Self::Workload(workload) => ObjectKind::Workload(workload.kind),
                    $(Self::$kind(_) => ObjectKind::$kind,)*
                }
            }
        }
    };
}

kinds! {
    Claim: namespaced "v1" "PersistentVolumeClaim" "persistentvolumeclaims"
    Volume: cluster "v1" "PersistentVolume" "persistentvolumes"
    StorageClass: cluster "storage.k8s.io/v1" "StorageClass" "storageclasses"
    CsiDriver: cluster "storage.k8s.io/v1" "CSIDriver" "csidrivers"
    CsiNode: cluster "storage.k8s.io/v1" "CSINode" "csinodes"
    Node: cluster "v1" "Node" "nodes"
    Namespace: cluster "v1" "Namespace" "namespaces"
    Autoscaler: namespaced "autoscaling/v2" "HorizontalPodAutoscaler" "horizontalpodautoscalers"
    Scale: namespaced "autoscaling/v1" "Scale" "scales"
    Lease: namespaced "coordination.k8s.io/v1" "Lease" "leases"
    VolumeAttachment: cluster "storage.k8s.io/v1" "VolumeAttachment" "volumeattachments"
    RuntimeClass: cluster "node.k8s.io/v1" "RuntimeClass" "runtimeclasses"
}

impl ObjectKind {
    /// Reads an object of this kind from JSON; entries of lists for which there is no room are
    /// left out.
    ///
    /// # Errors
    /// The text is not JSON, or a field does not have the type that it has in the API.
    pub fn read(self, json: &str, room: &ListRoom) -> serde_json::Result<Object> {
        let mut json = serde_json::Deserializer::from_str(json);
        self.deserialize(Bounded(&mut json, room))
    }

    /// A reference to an object of this kind in a namespace.
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
    pub fn of(group: &str, kind: &str) -> Option<Self> {
        WorkloadKind::ALL
            .into_iter()
            .map(Self::Workload)
            .chain(Self::OTHERS.iter().copied())
            .find(|known| known.name() == kind && known.group() == group)
    }

    /// The kind for the `apiVersion` and `kind` of a manifest.
    pub fn of_manifest(api_version: &str, kind: &str) -> Option<Self> {
        Self::of(group_of(api_version), kind)
    }

    /// The `apiVersion` of its manifests.
    pub const fn api_version(self) -> &'static str {
        self.row().api_version
    }

    /// The API group, empty for the core one.
    pub fn group(self) -> &'static str {
        group_of(self.api_version())
    }

    /// The kind's name.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The resource's name in paths, permissions and metrics.
    pub const fn plural(self) -> &'static str {
        self.row().plural
    }

    /// Whether every cluster serves it. Other kinds are served only if their controller is
    /// installed.
    pub const fn is_built_in(self) -> bool {
        match self {
            Self::Workload(kind) => kind.is_built_in(),
            Self::ScaledObject => false,
            _ => true,
        }
    }

    /// Whether objects of this kind are in namespaces.
    pub const fn is_namespaced(self) -> bool {
        self.row().is_namespaced
    }
}

/// A reference to an object in messages and reports.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// `apps/v1` for example.
    pub api_version: Text,
    /// `Deployment` for example.
    pub kind: Text,
    /// The namespace; absent for objects that have none.
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
