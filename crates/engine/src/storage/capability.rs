//! The access modes that one class can give for one volume mode.

use super::catalog::Catalog;
use super::condition::{Claimant, Condition, ConditionState};
use super::entry::{Confidence, Entry, Rwop};
use super::modes::ClassModes;
use super::reach::Reach;
use super::second_use::SecondUse;
use crate::model::access_mode::{AccessModes, VolumeMode};
use crate::model::claim::Claim;
use crate::model::labels::Labels;

/// The access modes of a class for one volume mode, with the class parameters taken into account.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capability<'c> {
    /// The volume mode.
    pub(super) volume_mode: VolumeMode,
    /// The modes that the class gives as it is; `None` if unknown, empty if it cannot make volumes
    /// of this mode.
    pub(crate) granted: Option<AccessModes>,
    /// The modes that it could give at most, with every condition met; `None` if unknown.
    pub(super) possible: Option<AccessModes>,
    /// The confidence in the two lists.
    pub(crate) confidence: Confidence,
    /// The evidence for or against ReadWriteOncePod.
    pub(super) rwop: Rwop,
    /// Every condition of the provisioner and whether it holds; empty if the modes are stated.
    pub(super) conditions: Vec<(&'c Condition, ConditionState)>,
}

/// Whether the data of a class lives on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeLocal {
    /// No, as far as is known.
    No,
    /// Yes, and its volumes carry the node affinity that keeps pods there.
    Pinned,
    /// Yes, and the driver's own scheduler keeps pods there; its volumes do not show that.
    Scheduled,
    /// Yes, but nothing keeps pods there: on other nodes they find other data.
    Unpinned,
    /// Yes; whether the volumes carry a node affinity is not known.
    Unknown,
}

impl Catalog {
    /// The capability of a class with this provisioner and these parameters, whatever the claim.
    pub(crate) fn capability(
        &self,
        provisioner: &str,
        parameters: &Labels,
        volume_mode: VolumeMode,
    ) -> Capability<'_> {
        self.capability_for(provisioner, parameters, volume_mode, Claimant::default())
    }

    /// The capability of such a class for this claim.
    pub(crate) fn capability_of_claim(
        &self,
        provisioner: &str,
        parameters: &Labels,
        claim: &Claim,
    ) -> Capability<'_> {
        let claimant = Claimant {
            has_data_source: Some(claim.data_source().is_some()),
            has_attributes_class: !claim.spec.volume_attributes_class_name.is_empty(),
        };
        self.capability_for(provisioner, parameters, claim.spec.volume_mode, claimant)
    }

    /// The capability of such a class for a claimant. An in-tree name counts together with the CSI
    /// driver that took it over: the version of Kubernetes decides which of the two serves a class,
    /// so the modes of either are possible.
    pub(super) fn capability_for(
        &self,
        provisioner: &str,
        parameters: &Labels,
        volume_mode: VolumeMode,
        claim: Claimant,
    ) -> Capability<'_> {
        let mut capability = Capability { volume_mode, ..Capability::default() };
        let Some(entry) = self.get(provisioner) else {
            return capability;
        };
        capability.confidence = entry.modes(volume_mode).confidence;
        capability.take_in(entry, parameters, claim);
        // Modes that a user states for an in-tree name are final; the catalog's are not.
        if capability.confidence != Confidence::Stated
            && let Some(successor) = self.successor(entry)
        {
            capability.take_in(successor, parameters, claim);
        }
        capability
    }

    /// The reach of a ReadWriteOnce volume of a class with this provisioner and these parameters;
    /// `None` if unknown.
    pub fn reach(&self, provisioner: &str, parameters: &Labels) -> Option<Reach> {
        let named = self.get(provisioner)?;
        let entry = self.successor(named).unwrap_or(named);
        last_met(entry, parameters, |condition| condition.reach).or(entry.reach)
    }

    /// Whether the volumes of a class with this provisioner and these parameters live on one node.
    pub fn node_local(&self, provisioner: &str, parameters: &Labels) -> NodeLocal {
        let Some(entry) = self.get(provisioner) else {
            return NodeLocal::No;
        };
        let said = last_met(entry, parameters, |condition| {
            Some((condition.node_local?, condition.pv_node_affinity))
        });
        let (here, affinity) = said.unwrap_or((entry.node_local, None));
        match (here, affinity.or(entry.pv_node_affinity)) {
            (false, _) => NodeLocal::No,
            (true, Some(true)) => NodeLocal::Pinned,
            (true, _) if entry.own_scheduler => NodeLocal::Scheduled,
            (true, Some(false)) => NodeLocal::Unpinned,
            (true, None) => NodeLocal::Unknown,
        }
    }

    /// The result of a second use of such volumes if nothing attaches them; `None` if unknown, for
    /// example if a parameter decides and `parameters` is `None`.
    pub(crate) fn second_use(
        &self,
        provisioner: &str,
        parameters: Option<&Labels>,
    ) -> Option<SecondUse> {
        let named = self.get(provisioner)?;
        let entry = self.successor(named).unwrap_or(named);
        let Some(parameters) = parameters else {
            let is_open = entry.conditions.iter().any(|condition| condition.second_use.is_some());
            return entry.second_use.filter(|_| !is_open);
        };
        last_met(entry, parameters, |condition| condition.second_use).or(entry.second_use)
    }

    /// The driver that took an in-tree provisioner over.
    fn successor(&self, entry: &Entry) -> Option<&Entry> {
        entry.replaced_by.as_deref().and_then(|name| self.get(name))
    }
}

impl<'c> Capability<'c> {
    /// Adds the capability of `entry`.
    fn take_in(&mut self, entry: &'c Entry, parameters: &Labels, claim: Claimant) {
        let list = entry.modes(self.volume_mode);
        let mut set = None;
        let mut add = AccessModes::EMPTY;
        // Conditions do not apply to modes that a user states.
        if list.confidence != Confidence::Stated {
            for condition in &entry.conditions {
                let state = condition.state(parameters, claim);
                if state == ConditionState::Met {
                    let effect = condition.effect(self.volume_mode);
                    add = add.union(effect.add);
                    set = effect.set.or(set);
                }
                self.conditions.push((condition, state));
            }
        }
        let granted = set.or(list.granted.map(|modes| modes.union(add)));
        self.possible = match self.granted {
            None => list.possible,
            // If one of the two is not known, there is no bound.
            Some(_) => (self.possible.zip(list.possible)).map(|(one, other)| one.union(other)),
        };
        let both = [self.granted, granted].into_iter().flatten();
        self.granted = both.reduce(AccessModes::union);
        self.confidence = self.confidence.max(list.confidence);
        if matches!(self.rwop, Rwop::Unknown | Rwop::Refused) {
            self.rwop = entry.rwop;
        }
    }

    /// This capability, with the modes that the StorageClass states for itself in place of the
    /// catalog's.
    pub(crate) fn with_stated(mut self, stated: ClassModes) -> Self {
        if let Some(modes) = stated.of(self.volume_mode) {
            self.granted = Some(modes);
            self.possible = Some(modes);
            self.confidence = Confidence::Stated;
            self.conditions.clear();
        }
        self
    }
}

/// The value that `says` gives for the last condition of the entry that has one and holds, whatever
/// the claim. Few conditions have a value, so few are evaluated.
fn last_met<T>(
    entry: &Entry,
    parameters: &Labels,
    says: impl Fn(&Condition) -> Option<T>,
) -> Option<T> {
    entry.conditions.iter().rev().find_map(|condition| {
        let said = says(condition)?;
        let state = condition.state(parameters, Claimant::default());
        (state == ConditionState::Met).then_some(said)
    })
}
