//! The keys by which objects are looked up.

use crate::model::metadata::Metadata;
use crate::model::object::ObjectKind;

/// The kind, namespace and name of an object, which identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey<'a> {
    /// The kind.
    pub kind: ObjectKind,
    /// The namespace; empty if there is none.
    pub namespace: &'a str,
    /// The name, or the prefix in place of one.
    pub name: &'a str,
}

impl<'a> ObjectKey<'a> {
    pub(super) const fn new(kind: ObjectKind, namespace: &'a str, name: &'a str) -> Self {
        Self { kind, namespace, name }
    }

    /// The key of an object without a namespace.
    pub(super) const fn global(kind: ObjectKind, name: &'a str) -> Self {
        Self::new(kind, "", name)
    }

    /// The namespace whose users create the object; for a Namespace itself, its name.
    pub fn tenant(self) -> &'a str {
        if self.kind == ObjectKind::Namespace { self.name } else { self.namespace }
    }

    /// The key of an object. In files, an object of a namespace may have a prefix in place of a
    /// name, which then identifies it.
    pub fn of(kind: ObjectKind, metadata: &'a Metadata) -> Self {
        if !kind.is_namespaced() {
            Self::global(kind, &metadata.name)
        } else if metadata.name.is_empty() {
            Self::new(kind, &metadata.namespace, &metadata.generate_name)
        } else {
            Self::new(kind, &metadata.namespace, &metadata.name)
        }
    }
}

/// A property by which the index finds objects.
#[derive(Clone, Copy, Debug, Hash)]
#[allow(missing_docs, reason = "the fields hold what their names say")]
pub enum IndexKey<'a> {
    /// Its kind, for the kinds that are listed.
    Kind(ObjectKind),
    /// The annotation that makes a class a default one.
    DefaultClass,
    /// The namespace of a workload.
    Namespace(&'a str),
    /// A label of a workload's pods.
    PodLabel { key: &'a str, value: &'a str },
    /// A label of a node.
    NodeLabel { key: &'a str, value: &'a str },
    /// A claim that a workload's pods name.
    Claim { namespace: &'a str, claim: &'a str },
    /// The name, without a dash and a number, of claims that a claim template makes.
    ClaimStem { namespace: &'a str, stem: &'a str },
    /// The workload that an autoscaler scales, or that has a Rollout's pod template.
    Target { namespace: &'a str, kind: &'a str, name: &'a str },
    /// The class of a volume without a `claimRef`.
    FreeOfClass(&'a str),
    /// A volume's name in its CSI driver.
    Handle(&'a str),
    /// The persistent volume that an attachment attaches.
    Attached(&'a str),
    /// The claim in a volume's `claimRef`.
    ClaimedBy { namespace: &'a str, claim: &'a str },
}
