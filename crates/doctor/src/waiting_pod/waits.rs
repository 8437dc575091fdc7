//! Whether something shows that a pod waits for a volume.

use super::WaitingPod;
use crate::cause::kind_of;
use crate::messages::Statement;
use engine::analysis::AttachConstraint;
use engine::model::strategy::Strategy;
use engine::model::workload::WorkloadKind;
use engine::snapshot::Lookup;

impl WaitingPod<'_> {
    /// Whether the claim has no volume or does not exist.
    pub(crate) fn has_no_volume(&self) -> bool {
        let view = self.view();
        let claim = view.claim(&self.pod.meta.namespace, self.claim);
        match (&claim, self.volume.as_deref()) {
            (Lookup::NotSynced, _) => false,
            (Lookup::Absent, _) => true,
            (Lookup::Found(_), None) => self.index.facts.observed.has_read("persistentvolumes"),
            (Lookup::Found(_), Some(volume)) => {
                matches!(view.volume(volume), Lookup::Absent)
                    || self.volume_of_another_claim().is_some()
                    || self.unbound_volume().is_some()
            }
        }
    }

    /// Whether the pod waits until the claim has a volume, rather than the claim for the pod.
    pub(super) fn waits_for_its_claim(&self) -> bool {
        let statements = [Statement::NotBound, Statement::NoClaim, Statement::ClaimEnds];
        self.pod.node.is_some()
            || !self.binds_late()
            || self.unbound_volume().is_some()
            || statements.into_iter().any(|statement| self.is_said(statement))
            || self.claim_warning().is_some()
    }

    /// Whether a pod that is on a node waits until the volume is attached there or can be mounted.
    pub(super) fn waits_for_attachment(&self) -> bool {
        if self.is_attached_to_its_node() || self.said.is_some() {
            return self.said.is_some();
        }
        let is_seen = self.own_attachment().is_some()
            || self.foreign_attachments().next().is_some()
            || self.holders.iter().any(|holder| holder.node != self.pod.node)
            || self.has_known_attachments();
        self.is_attached() && is_seen
    }

    /// Whether a pod has no node because of the volume.
    pub(super) fn waits_for_a_node(&self) -> bool {
        let is_somewhere = self.used.reach.is_some();
        if (self.is_said(Statement::NodeConflict) && is_somewhere)
            || (self.is_said(Statement::LimitOfNodes) && self.is_attached())
        {
            return true;
        }
        let taken = self.is_said(Statement::TakenByAnotherPod);
        let follows = (self.is_said(Statement::NoPodToFollow) && !self.holders.is_empty())
            || self.may_be_first_of_its_like();
        match self.used.attach_constraint {
            AttachConstraint::SinglePod => taken,
            AttachConstraint::Exclusive { .. } => follows,
            AttachConstraint::Unknown(_) => follows || taken,
            AttachConstraint::Free | AttachConstraint::Driver(_) => false,
        }
    }

    /// Whether the pod keeps the volume on a node that does not answer, or longer than it may,
    /// while the next pod is not created before this one is gone.
    pub(super) fn is_stranded(&self) -> bool {
        matches!(
            self.used.attach_constraint,
            AttachConstraint::Exclusive { .. } | AttachConstraint::SinglePod
        ) && self.is_attached()
            && self.is_replaced_after_deletion()
            && (self.lost_node().is_some() || self.overdue(self.pod).is_some())
    }

    /// Whether the next pod is created only when this one is gone. A StatefulSet never has two pods
    /// of one name, and a Deployment with the strategy Recreate has no new pod beside an old one.
    /// The successor of an evicted pod is created at once.
    pub(super) fn is_replaced_after_deletion(&self) -> bool {
        let has_another =
            self.index.users(&self.pod.meta.namespace, self.claim).iter().any(|other| {
                other.meta.name != self.pod.meta.name
                    && !other.is_ending()
                    && other.workload() == self.pod.workload()
            });
        if has_another {
            return false;
        }
        match self.workload() {
            Some(workload) if workload.kind == WorkloadKind::Deployment => {
                workload.has_pods() && matches!(workload.strategy, Strategy::Recreate { .. })
            }
            _ => kind_of(self.pod) == Some(WorkloadKind::StatefulSet),
        }
    }
}
