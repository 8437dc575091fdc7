//! Objects as the table holds them: what of each is kept, and what it is found by.

use super::key::{IndexKey, ObjectKey};
use crate::model::autoscaler::Autoscaler;
use crate::model::claim::Claim;
use crate::model::labels::Labels;
use crate::model::lease::Lease;
use crate::model::node::Node;
use crate::model::object::{Namespace, Object, ObjectKind};
use crate::model::pod::PodVolumeSource;
use crate::model::runtime_class::RuntimeClass;
use crate::model::storage_class::{CsiDriver, StorageClass};
use crate::model::volume::Volume;
use crate::model::workload::Workload;

/// An object, reduced to what decides about others than itself.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each holds what its name says")]
pub enum StoredObject {
    Workload(Box<Workload>),
    Claim(Box<Claim>),
    Volume(Box<Volume>),
    StorageClass(Box<StorageClass>),
    CsiDriver(Box<CsiDriver>),
    Node(Box<Node>),
    Namespace(Box<Namespace>),
    Autoscaler(Box<Autoscaler>),
    Lease(Box<Lease>),
    RuntimeClass(Box<RuntimeClass>),
}

impl StoredObject {
    /// The object without the labels of claims, workloads and autoscalers
    /// themselves, which no decision about others asks for; their pods' labels
    /// stay. Nor what nodes have attached. `None` for what decides about nothing
    /// but itself: a scale, which is no object, and a volume attachment.
    #[must_use]
    pub fn of(mut object: Object) -> Option<Self> {
        if let Object::Workload(Workload { metadata, .. })
        | Object::Claim(Claim { metadata, .. })
        | Object::Autoscaler(Autoscaler { metadata, .. }) = &mut object
        {
            metadata.labels = Labels::default();
        }
        if let Object::Node(node) = &mut object {
            node.spec.out_of_service = false;
            node.status.volumes_attached = Box::default();
        }
        Some(match object {
            Object::Workload(workload) => Self::Workload(Box::new(workload)),
            Object::Claim(claim) => Self::Claim(Box::new(claim)),
            Object::Volume(volume) => Self::Volume(Box::new(volume)),
            Object::StorageClass(class) => Self::StorageClass(Box::new(class)),
            Object::CsiDriver(driver) => Self::CsiDriver(Box::new(driver)),
            Object::Node(node) => Self::Node(Box::new(node)),
            Object::Namespace(namespace) => Self::Namespace(Box::new(namespace)),
            Object::Autoscaler(autoscaler) => Self::Autoscaler(Box::new(autoscaler)),
            Object::Lease(lease) => Self::Lease(Box::new(lease)),
            Object::RuntimeClass(class) => Self::RuntimeClass(Box::new(class)),
            Object::Scale(_) | Object::VolumeAttachment(_) => return None,
        })
    }

    /// Whether others are judged by it: not by what is judged with its owner.
    pub(super) fn is_kept(&self) -> bool {
        !matches!(self, Self::Workload(workload) if workload.owner_is_judged())
    }

    /// The object's kind.
    #[must_use]
    pub fn kind(&self) -> ObjectKind {
        self.key().kind
    }

    /// What makes the object the one it is. It must not change while it is held.
    pub fn key(&self) -> ObjectKey<'_> {
        match self {
            Self::Workload(it) => ObjectKey::of(ObjectKind::Workload(it.kind), &it.metadata),
            Self::Claim(it) => ObjectKey::of(ObjectKind::Claim, &it.metadata),
            Self::Volume(it) => ObjectKey::global(ObjectKind::Volume, &it.metadata.name),
            Self::StorageClass(it) => {
                ObjectKey::global(ObjectKind::StorageClass, &it.metadata.name)
            }
            Self::CsiDriver(it) => ObjectKey::global(ObjectKind::CsiDriver, &it.metadata.name),
            Self::Node(it) => ObjectKey::global(ObjectKind::Node, &it.metadata.name),
            Self::Namespace(it) => ObjectKey::global(ObjectKind::Namespace, &it.metadata.name),
            Self::Autoscaler(it) => ObjectKey::of(ObjectKind::Autoscaler, &it.metadata),
            Self::Lease(it) => ObjectKey::of(ObjectKind::Lease, &it.metadata),
            Self::RuntimeClass(it) => {
                ObjectKey::global(ObjectKind::RuntimeClass, &it.metadata.name)
            }
        }
    }

    /// Calls `add` with everything it is looked up by beside its name.
    pub(super) fn traits(&self, add: &mut dyn FnMut(IndexKey<'_>)) {
        match self {
            Self::Workload(workload) => of_workload(workload, add),
            Self::Volume(volume) => of_volume(volume, add),
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
            Self::Claim(_)
            | Self::CsiDriver(_)
            | Self::Namespace(_)
            | Self::Lease(_)
            | Self::RuntimeClass(_) => {}
        }
    }
}

fn of_volume(volume: &Volume, add: &mut dyn FnMut(IndexKey<'_>)) {
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

fn of_workload(workload: &Workload, add: &mut dyn FnMut(IndexKey<'_>)) {
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

/// A type of object, to be taken out of what is held.
pub(super) trait Typed: Sized + 'static {
    /// The object, where it is of this type.
    fn of(stored: &StoredObject) -> Option<&Self>;
}

macro_rules! typed {
    ($($kind:ident),*) => {
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

typed!(
    Workload,
    Claim,
    Volume,
    StorageClass,
    CsiDriver,
    Node,
    Namespace,
    Autoscaler,
    Lease,
    RuntimeClass
);
