//! What objects are looked up by.

use crate::model::metadata::Metadata;
use crate::model::object::ObjectKind;

/// What makes an object the one it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey<'a> {
    pub kind: ObjectKind,
    /// The namespace, empty where there is none.
    pub namespace: &'a str,
    pub name: &'a str,
}

impl<'a> ObjectKey<'a> {
    /// The key of an object without a namespace.
    pub(super) const fn global(kind: ObjectKind, name: &'a str) -> Self {
        Self {
            kind,
            namespace: "",
            name,
        }
    }

    /// The key of an object in a namespace. Objects in files may leave their
    /// name to the API server: two of them with different prefixes are two.
    pub(super) fn of(kind: ObjectKind, metadata: &'a Metadata) -> Self {
        Self {
            kind,
            namespace: &metadata.namespace,
            name: if metadata.name.is_empty() {
                &metadata.generate_name
            } else {
                &metadata.name
            },
        }
    }
}

/// Something an object is looked up by beside its name.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) enum IndexKey<'a> {
    /// It is of this kind. Kept only for kinds that are walked through.
    Kind(ObjectKind),
    /// It is a workload in this namespace.
    Namespace(&'a str),
    /// Its pods carry this label.
    PodLabel { key: &'a str, value: &'a str },
    /// It is a node with this label.
    NodeLabel { key: &'a str, value: &'a str },
    /// Its pods name this claim.
    Claim { namespace: &'a str, claim: &'a str },
    /// Its claim templates make claims of this name, a dash and a number.
    ClaimStem { namespace: &'a str, stem: &'a str },
    /// It scales this workload.
    Target {
        namespace: &'a str,
        kind: &'a str,
        name: &'a str,
    },
    /// It is a volume of this class that no claim has taken.
    FreeOfClass(&'a str),
    /// It is a volume that its CSI driver calls so.
    Handle(&'a str),
    /// It is a volume that names this claim.
    ClaimedBy { namespace: &'a str, claim: &'a str },
}
