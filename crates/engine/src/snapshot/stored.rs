//! Objects as the table stores them: which fields are kept, and under which keys they are
//! in the index.

use std::sync::Arc;

use super::key::{IndexKey, ObjectKey};
use crate::model::autoscaler::Autoscaler;
use crate::model::claim::Claim;
use crate::model::csi_node::CsiNode;
use crate::model::labels::Labels;
use crate::model::lease::Lease;
use crate::model::node::Node;
use crate::model::object::{Namespace, Object, ObjectKind};
use crate::model::pod::PodVolumeSource;
use crate::model::runtime_class::RuntimeClass;
use crate::model::storage_class::{CsiDriver, StorageClass};
use crate::model::volume::Volume;
use crate::model::volume_attachment::VolumeAttachment;
use crate::model::workload::{Workload, WorkloadKind};

/// Declares the types that are stored.
macro_rules! stored {
    ($($kind:ident)*) => {
        /// An object, reduced to what decides about other objects. Cloning it is cheap.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "each variant holds what its name says")]
        pub enum StoredObject {
            $($kind(Arc<$kind>),)*
        }

        impl StoredObject {
            /// Whether `other` is this very object, not merely an equal one.
            pub(super) fn is_same(&self, other: &Self) -> bool {
                match (self, other) {
                    $((Self::$kind(one), Self::$kind(other)) => Arc::ptr_eq(one, other),)*
                    _ => false,
                }
            }
        }

        $(impl Typed for $kind {
            fn of(stored: &StoredObject) -> Option<&Self> {
                match stored {
                    StoredObject::$kind(object) => Some(object),
                    _ => None,
                }
            }
        })*
    };
}

stored! {
    Workload Claim Volume StorageClass CsiDriver Node Namespace Autoscaler Lease
    RuntimeClass VolumeAttachment CsiNode
}

/// A type of object that can be stored.
pub(super) trait Typed: Sized + 'static {
    /// The object, if it is of this type.
    fn of(stored: &StoredObject) -> Option<&Self>;
}

impl StoredObject {
    /// The object without what no decision about other objects reads: the labels of claims,
    /// workloads and autoscalers (not those of their pods).
    /// `None` for scales, which decide about no other object.
    pub fn of(mut object: Object) -> Option<Self> {
        if let Object::Workload(Workload { metadata, .. })
        | Object::Claim(Claim { metadata, .. })
        | Object::Autoscaler(Autoscaler { metadata, .. }) = &mut object
        {
            metadata.labels = Labels::default();
        }
        if let Object::Node(node) = &mut object {
            node.spec.out_of_service = false;
        }
        Some(match object {
            Object::Workload(workload) => Self::Workload(Arc::new(workload)),
            Object::Claim(claim) => Self::Claim(Arc::new(claim)),
            Object::Volume(volume) => Self::Volume(Arc::new(volume)),
            Object::StorageClass(class) => Self::StorageClass(Arc::new(class)),
            Object::CsiDriver(driver) => Self::CsiDriver(Arc::new(driver)),
            Object::CsiNode(node) => Self::CsiNode(Arc::new(node)),
            Object::Node(node) => Self::Node(Arc::new(node)),
            Object::Namespace(namespace) => Self::Namespace(Arc::new(namespace)),
            Object::Autoscaler(autoscaler) => Self::Autoscaler(Arc::new(autoscaler)),
            Object::Lease(lease) => Self::Lease(Arc::new(lease)),
            Object::RuntimeClass(class) => Self::RuntimeClass(Arc::new(class)),
            Object::VolumeAttachment(attachment) => Self::VolumeAttachment(Arc::new(attachment)),
            Object::Scale(_) => return None,
        })
    }

    /// Whether it may decide about other objects. The owner does instead of an object whose owner
    /// is judged in every cluster, unless that has pods with claims of its own.
    pub(super) fn is_kept(&self) -> bool {
        let uses_claims = |it: &Workload| it.has_pods() && it.names_claims();
        !self.is_owned() || Workload::of(self).is_some_and(uses_claims)
    }

    /// Whether it says that it has an owner that is judged in every cluster. Those of other kinds
    /// may not be watched.
    pub(super) fn is_owned(&self) -> bool {
        let owner = Workload::of(self).and_then(Workload::judged_owner);
        owner.is_some_and(WorkloadKind::is_built_in)
    }

    /// The object's kind.
    pub fn kind(&self) -> ObjectKind {
        self.key().kind
    }

    /// What identifies the object.
    pub fn key(&self) -> ObjectKey<'_> {
        match self {
            Self::Workload(it) => ObjectKey::of(ObjectKind::Workload(it.kind), &it.metadata),
            Self::Claim(it) => ObjectKey::of(ObjectKind::Claim, &it.metadata),
            Self::Volume(it) => ObjectKey::global(ObjectKind::Volume, &it.metadata.name),
            Self::StorageClass(it) => {
                ObjectKey::global(ObjectKind::StorageClass, &it.metadata.name)
            }
            Self::CsiDriver(it) => ObjectKey::global(ObjectKind::CsiDriver, &it.metadata.name),
            Self::CsiNode(it) => ObjectKey::global(ObjectKind::CsiNode, &it.metadata.name),
            Self::Node(it) => ObjectKey::global(ObjectKind::Node, &it.metadata.name),
            Self::Namespace(it) => ObjectKey::global(ObjectKind::Namespace, &it.metadata.name),
            Self::Autoscaler(it) => ObjectKey::of(it.kind.object_kind(), &it.metadata),
            Self::Lease(it) => ObjectKey::of(ObjectKind::Lease, &it.metadata),
            Self::RuntimeClass(it) => {
                ObjectKey::global(ObjectKind::RuntimeClass, &it.metadata.name)
            }
            Self::VolumeAttachment(it) => {
                ObjectKey::global(ObjectKind::VolumeAttachment, &it.metadata.name)
            }
        }
    }

    /// Calls `add` with every key under which the object is in the index.
    pub(super) fn index_keys(&self, add: &mut dyn FnMut(IndexKey<'_>)) {
        match self {
            Self::Workload(workload) => workload_keys(workload, add),
            Self::Volume(volume) => volume_keys(volume, add),
            Self::StorageClass(_) => add(IndexKey::Kind(ObjectKind::StorageClass)),
            Self::Node(node) => {
                add(IndexKey::Kind(ObjectKind::Node));
                for (key, value) in node.metadata.labels.iter() {
                    add(IndexKey::NodeLabel { key, value });
                }
            }
            Self::Autoscaler(autoscaler) => add(IndexKey::Target {
                namespace: &autoscaler.metadata.namespace,
                kind: &autoscaler.spec.scale_target_ref.kind,
                name: &autoscaler.spec.scale_target_ref.name,
            }),
            Self::VolumeAttachment(it) if it.attached => {
                add(IndexKey::Attached(&it.volume));
            }
            Self::Claim(_)
            | Self::VolumeAttachment(_)
            | Self::CsiDriver(_)
            | Self::CsiNode(_)
            | Self::Namespace(_)
            | Self::Lease(_)
            | Self::RuntimeClass(_) => {}
        }
    }
}

fn volume_keys(volume: &Volume, add: &mut dyn FnMut(IndexKey<'_>)) {
    if volume.spec.claim_ref.is_none() {
        add(IndexKey::FreeOfClass(volume.class()));
    }
    if let Some(claim) = volume.claimed_by() {
        add(IndexKey::ClaimedBy {
            namespace: &claim.namespace,
            claim: &claim.name,
        });
    }
    if !volume.spec.handle.is_empty() {
        add(IndexKey::Handle(&volume.spec.handle));
    }
}

fn workload_keys(workload: &Workload, add: &mut dyn FnMut(IndexKey<'_>)) {
    let namespace = workload.metadata.namespace.as_str();
    add(IndexKey::Namespace(namespace));
    for (key, value) in workload.template.labels.iter() {
        add(IndexKey::PodLabel { key, value });
    }
    for volume in &workload.template.volumes {
        if let PodVolumeSource::Claim { name } = &volume.source {
            add(IndexKey::Claim {
                namespace,
                claim: name,
            });
        }
    }
    if let Some(source) = &workload.template_source {
        add(IndexKey::Target {
            namespace,
            kind: &source.kind,
            name: &source.name,
        });
    }
    for (claim, _) in workload.ephemeral_claims() {
        add(IndexKey::Claim {
            namespace,
            claim: &claim,
        });
    }
    for template in &workload.claim_templates {
        let stem = format!("{}-{}", template.metadata.name, workload.metadata.name);
        add(IndexKey::ClaimStem {
            namespace,
            stem: &stem,
        });
    }
}
