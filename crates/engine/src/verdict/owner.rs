//! Whether the owner that an object names is real.
//!
//! Objects that a controller writes are exempt: their owner was judged, or the controller would
//! undo a change. But anybody can write an owner reference.

use super::Evaluation;
use crate::model::metadata::{Controller, Metadata};
use crate::model::object::Object;
use crate::model::workload::{Workload, WorkloadKind};
use crate::snapshot::Lookup;

/// Whether the account is one of the control plane's own controllers, which run under one account
/// together or under one each (`--use-service-account-credentials` of kube-controller-manager).
fn is_control_plane(account: &str) -> bool {
    account == "system:kube-controller-manager"
        || account.starts_with("system:serviceaccount:kube-system:")
}

fn is_service_account(account: &str) -> bool {
    account.starts_with("system:serviceaccount:")
}

/// Whether an object of that kind can be a controller of others. Kubernetes' own kinds that can are
/// the workloads; the groups of custom kinds have a dot.
fn can_own(owner: &Controller) -> bool {
    let group = owner.group();
    let is_built_in = !group.contains('.') || BUILT_IN_GROUPS.contains(&group);
    !is_built_in || WorkloadKind::find(&owner.kind, group).is_some()
}

/// Kubernetes' own API groups with a dot.
const BUILT_IN_GROUPS: [&str; 17] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// What is known about the owner that an object names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnerLookup {
    Real,
    None,
    /// It cannot be looked up: a custom resource, or a kind that is not watched.
    Unknown,
}

impl Evaluation<'_> {
    /// Whether the owner that controls the object under review is real. An owner of a kind that
    /// controls nothing never is. Any other is real if one of the control plane's controllers sends
    /// the request, or if the owner exists with that uid. An owner that cannot be looked up is real
    /// if a service account sends the request. What is in a cluster has no requester, and its owner
    /// references are trusted.
    pub(super) fn owner_is_real(&self, metadata: &Metadata) -> bool {
        match self.found_owner(metadata) {
            OwnerLookup::Real => true,
            OwnerLookup::None => false,
            OwnerLookup::Unknown => {
                let requester = self.review.document.requester();
                requester.is_some_and(|account| is_service_account(&account))
            }
        }
    }

    /// Whether a file names an owner that cannot be looked up. Anybody could have written it, so it
    /// counts only where the object itself may override the policy.
    pub(super) fn names_unknown_owner(&self, metadata: &Metadata) -> bool {
        self.review.document.requester().is_none()
            && self.found_owner(metadata) == OwnerLookup::Unknown
    }

    /// Whether a person keeps an owner that cannot be looked up. Anybody could have written it, so
    /// it excuses only the faults that the stored object had already.
    pub(super) fn keeps_unknown_owner(&self, metadata: &Metadata) -> bool {
        let before = self.review.old.map(Object::metadata);
        before.is_some_and(|before| before.controller == metadata.controller)
            && self.found_owner(metadata) == OwnerLookup::Unknown
    }

    fn found_owner(&self, metadata: &Metadata) -> OwnerLookup {
        let Some(owner) = metadata.controller.as_deref().filter(|owner| can_own(owner)) else {
            return OwnerLookup::None;
        };
        let view = self.facts.view;
        let requester = self.review.document.requester();
        let is_file = requester.is_none() && view.overlay().files;
        if !is_file && requester.is_none_or(|account| is_control_plane(&account)) {
            return OwnerLookup::Real;
        }
        let there = WorkloadKind::find(&owner.kind, owner.group())
            .map(|kind| view.workload(kind, &metadata.namespace, &owner.name));
        match there {
            Some(Lookup::Found(there)) if !there.metadata.uid.contradicts(owner.uid) => {
                OwnerLookup::Real
            }
            Some(Lookup::Found(_)) => OwnerLookup::None,
            // The checked files may be a part of what is applied.
            Some(Lookup::Absent) if !is_file => OwnerLookup::None,
            Some(Lookup::Absent | Lookup::NotSynced) | None => OwnerLookup::Unknown,
        }
    }

    /// Whether the workload is judged in its owner, which has its volumes and at least as many
    /// pods. Outside the control plane, anybody can name a real owner. Such an owner is not judged
    /// for volumes or pods that it does not have, and releases objects that its selector does not
    /// match.
    pub(super) fn is_judged_in_owner(&self, workload: &Workload) -> bool {
        let view = self.facts.view;
        let metadata = &workload.metadata;
        // A dump of Deployments and pods lacks the ReplicaSets between them.
        let is_dumped = workload.kind == WorkloadKind::Pod && self.names_unknown_owner(metadata);
        if !view.owner_is_judged(workload) || !(is_dumped || self.owner_is_real(metadata)) {
            return false;
        }
        self.review.document.requester().is_none_or(|account| is_control_plane(&account))
            || view.owner_stands_for(workload)
    }
}
