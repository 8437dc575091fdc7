//! Whether the owner that an object names is real.
//!
//! Objects that a controller writes are exempt: their owner was judged, or the controller would
//! undo a change. But anybody can write an owner reference.

use super::Evaluation;
use crate::model::metadata::Metadata;
use crate::model::object::Object;
use crate::model::workload::WorkloadKind;
use crate::snapshot::Lookup;

/// Whether the account is one of the control plane's own controllers, which run
/// under one account together or under one each (`--use-service-account-credentials`
/// of kube-controller-manager).
fn is_control_plane(account: &str) -> bool {
    account == "system:kube-controller-manager"
        || account.starts_with("system:serviceaccount:kube-system:")
}

fn is_service_account(account: &str) -> bool {
    account.starts_with("system:serviceaccount:")
}

impl Evaluation<'_> {
    /// Whether a controller sends the request, of the control plane or any other.
    pub(super) fn is_from_a_service_account(&self) -> bool {
        let account = self.review.document.requester();
        account.is_some_and(|it| is_control_plane(&it) || is_service_account(&it))
    }

    /// Whether the owner that controls the object under review is real. It is if the request comes
    /// from one of the control plane's controllers, or the owner exists with that uid, or the
    /// owner cannot be looked up and the request comes from a service account. Files have no
    /// requester; their owner references are trusted.
    pub(super) fn owner_is_real(&self, metadata: &Metadata) -> bool {
        let Some(owner) = &metadata.controller else {
            return false;
        };
        let Some(account) = self.review.document.requester() else {
            return true;
        };
        if is_control_plane(&account) {
            return true;
        }
        let kind = WorkloadKind::from_name(&owner.kind)
            .filter(|kind| kind.group() == owner.group.as_str());
        let there = kind.map(|kind| {
            let view = self.facts.view;
            view.workload(kind, &metadata.namespace, &owner.name)
        });
        match there {
            Some(Lookup::Found(there)) => !there.metadata.uid.contradicts(owner.uid),
            Some(Lookup::Absent) => false,
            // The owner reference was judged when it was written.
            Some(Lookup::NotSynced) | None => {
                let before = self.review.old.and_then(Object::metadata);
                is_service_account(&account)
                    || before.is_some_and(|before| before.controller == metadata.controller)
            }
        }
    }
}
