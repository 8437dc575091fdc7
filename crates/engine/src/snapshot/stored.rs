//! Objects as the table stores them: the fields that are kept, and the keys under which the index
//! has them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::key::{IndexKey, ObjectKey};
use crate::model::autoscaler::Autoscaler;
use crate::model::claim::Claim;
use crate::model::labels::Labels;
use crate::model::lease::Lease;
use crate::model::metadata::Metadata;
use crate::model::node::Node;
use crate::model::object::{Namespace, Object, ObjectKind};
use crate::model::runtime_class::RuntimeClass;
use crate::model::storage_class::{CsiDriver, CsiNode, StorageClass};
use crate::model::volume::Volume;
use crate::model::volume_attachment::VolumeAttachment;
use crate::model::workload::Workload;

/// Declares the types that are stored, each with the kind of its objects.
macro_rules! stored {
    ($($kind:ident($object:ident): $object_kind:expr,)*) => {
        /// An object, reduced to the fields that decide about other objects. Cloning it is cheap.
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

            /// The key that identifies the object.
            pub fn key(&self) -> ObjectKey<'_> {
                match self {
                    $(Self::$kind($object) => ObjectKey::of($object_kind, &$object.metadata),)*
                }
            }

            /// The metadata.
            pub(super) fn metadata(&self) -> &Metadata {
                match self {
                    $(Self::$kind($object) => &$object.metadata,)*
                }
            }

            /// The object, shared; `None` for scales, which decide about no other object.
            fn shared(object: Object) -> Option<Self> {
                Some(match object {
                    $(Object::$kind(object) => Self::$kind(Arc::new(object)),)*
                    Object::Scale(_) => return None,
                })
            }
        }

        $(impl Typed for $kind {
            fn of(stored: &StoredObject) -> Option<&Self> {
                match stored {
                    StoredObject::$kind(object) => Some(object),
                    _ => None,
                }
            }

            fn of_object(object: &Object) -> Option<&Self> {
                match object {
                    Object::$kind(object) => Some(object),
                    _ => None,
                }
            }
        })*
    };
}

stored! {
    Workload(object): ObjectKind::Workload(object.kind),
    Claim(object): ObjectKind::Claim,
    Volume(object): ObjectKind::Volume,
    StorageClass(object): ObjectKind::StorageClass,
    CsiDriver(object): ObjectKind::CsiDriver,
    Node(object): ObjectKind::Node,
    Namespace(object): ObjectKind::Namespace,
    Autoscaler(object): object.kind(),
    Lease(object): ObjectKind::Lease,
    RuntimeClass(object): ObjectKind::RuntimeClass,
    VolumeAttachment(object): ObjectKind::VolumeAttachment,
    CsiNode(object): ObjectKind::CsiNode,
}

/// A type of object that can be stored.
pub(super) trait Typed: Sized + 'static {
    /// The object, if it is of this type.
    fn of(stored: &StoredObject) -> Option<&Self>;

    /// The same for an object that is not stored.
    fn of_object(object: &Object) -> Option<&Self>;
}

impl StoredObject {
    /// The object without the fields that decide about no other object, such as the labels of
    /// claims, workloads and autoscalers (not those of their pods). `None` for scales, which decide
    /// about no other object.
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
        Self::shared(object)
    }

    /// Whether it may decide about other objects. If its owner is judged in every cluster, the
    /// owner decides instead, unless the object has pods with claims of its own.
    pub(super) fn is_kept(&self) -> bool {
        !self.is_owned()
            || Workload::of(self).is_some_and(|workload| {
                workload.has_pods() && workload.template.claims().next().is_some()
            })
    }

    /// Whether it names an owner that is judged in every cluster. Owners of other kinds may not be
    /// watched.
    pub(super) fn is_owned(&self) -> bool {
        Workload::of(self)
            .and_then(Workload::judged_owner)
            .is_some_and(|(kind, _)| kind.is_built_in())
    }

    /// About the bytes that it takes in memory, with its entries in the index; 0 for kinds whose
    /// objects a namespace's users cannot create.
    pub(super) fn size(&self) -> usize {
        let mut size = Size(ROW);
        match self {
            Self::Workload(workload) => workload.hash(&mut size),
            Self::Claim(claim) => claim.hash(&mut size),
            Self::Autoscaler(autoscaler) => autoscaler.hash(&mut size),
            Self::Namespace(namespace) => namespace.hash(&mut size),
            _ => return 0,
        }
        self.index_keys(&mut |_| size.0 += INDEX_ENTRY);
        size.0
    }

    /// The object's kind.
    pub fn kind(&self) -> ObjectKind {
        self.key().kind
    }

    /// Calls `add` with every key under which the object is in the index.
    pub(super) fn index_keys(&self, add: &mut dyn FnMut(IndexKey<'_>)) {
        match self {
            Self::Workload(workload) => workload_keys(workload, add),
            Self::Volume(volume) => volume_keys(volume, add),
            Self::StorageClass(class) => {
                add(IndexKey::Kind(ObjectKind::StorageClass));
                if class.is_default() {
                    add(IndexKey::DefaultClass);
                }
            }
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
            Self::VolumeAttachment(attachment) if attachment.attached => {
                add(IndexKey::Attached(&attachment.volume));
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

/// The bytes of an object's row in the table.
const ROW: usize = 64;

/// The bytes of an entry in the index.
const INDEX_ENTRY: usize = 64;

/// Adds up the content of an object as it is hashed, and for each field the memory beside its
/// content. `derive(Hash)` leaves out no field.
struct Size(usize);

impl Hasher for Size {
    fn write(&mut self, content: &[u8]) {
        const FIELD: usize = 8;
        self.0 += FIELD + content.len();
    }

    fn finish(&self) -> u64 {
        0
    }
}

fn volume_keys(volume: &Volume, add: &mut dyn FnMut(IndexKey<'_>)) {
    if volume.spec.claim_ref.is_none() {
        add(IndexKey::FreeOfClass(volume.class()));
    }
    if let Some(claim) = volume.claimed_by() {
        add(IndexKey::ClaimedBy { namespace: &claim.namespace, claim: &claim.name });
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
    for claim in workload.template.claims() {
        add(IndexKey::Claim { namespace, claim });
    }
    if let Some(source) = &workload.template_source {
        add(IndexKey::Target { namespace, kind: &source.kind, name: &source.name });
    }
    for (claim, _) in workload.ephemeral_claims() {
        add(IndexKey::Claim { namespace, claim: &claim });
    }
    for stem in workload.claim_stems() {
        add(IndexKey::ClaimStem { namespace, stem: &stem });
    }
}
