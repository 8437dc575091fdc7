//! Whether the owner that an object names is real.
//!
//! What a controller writes is spared, as its owner was judged or as the
//! controller would fight back. Anybody can write an owner reference, though.

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

impl Evaluation<'_> {
    /// Whether the object under review has an owner that controls it: one of the
    /// control plane's controllers or, for an owner that cannot be looked up, any
    /// service account asks for it, or the owner is there and not another one of
    /// that name. Where nobody asks for it, as in files, owners are believed.
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
            // What it said before was judged when it was said.
            Some(Lookup::NotSynced) | None => {
                let before = self.review.old.and_then(Object::metadata);
                account.starts_with("system:serviceaccount:")
                    || before.is_some_and(|before| before.controller == metadata.controller)
            }
        }
    }
}
