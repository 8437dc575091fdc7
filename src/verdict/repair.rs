//! Trying remedies: a patch counts only if the patched object, judged again, is
//! better off.

use json_patch::Patch;
use serde::de::DeserializeSeed;
use serde_json::Value;

use crate::model::object::{Object, ObjectKind};
use crate::model::workload::Workload;
use crate::policy::RemedyChoice;
use crate::remedy::{self, REMEDIES, Remedy};
use crate::rules::{Hazard, Subject, codes, judge};
use crate::situation::{Situation, World};

/// A workload as it was received, or as patches made it, with what the rules
/// find in it.
pub(super) struct Patient<'a> {
    pub(super) workload: Workload,
    pub(super) raw: Value,
    pub(super) hazards: Vec<Hazard>,
    pub(super) previous: Option<&'a Workload>,
    pub(super) world: World<'a>,
}

/// What a remedy makes of a patient.
pub(super) struct Cure {
    pub(super) patch: Patch,
    pub(super) workload: Workload,
    pub(super) raw: Value,
    pub(super) hazards: Vec<Hazard>,
}

impl Patient<'_> {
    /// Every remedy that helps against `hazard`, the chosen one first.
    pub(super) fn proposals(
        &self,
        hazard: &Hazard,
        choice: RemedyChoice,
    ) -> Vec<(&'static Remedy, Patch)> {
        let chosen = self.chosen(hazard, choice);
        let rest = REMEDIES
            .iter()
            .filter_map(|remedy| remedy::named(remedy.name))
            .filter(|remedy| chosen.is_none_or(|chosen| chosen.name != remedy.name));
        chosen
            .into_iter()
            .chain(rest)
            .filter_map(|remedy| Some((remedy, self.try_remedy(remedy, hazard)?.patch)))
            .collect()
    }

    /// The remedy the policy chooses against `hazard`, and what it makes of the
    /// object; `None` where it does not help.
    pub(super) fn cure(
        &self,
        hazard: &Hazard,
        choice: RemedyChoice,
    ) -> Option<(&'static Remedy, Cure)> {
        let remedy = self.chosen(hazard, choice)?;
        Some((remedy, self.try_remedy(remedy, hazard)?))
    }

    fn chosen(&self, hazard: &Hazard, choice: RemedyChoice) -> Option<&'static Remedy> {
        let automatic = || remedy::automatic(hazard.rule, self.workload.kind, self.most_pods());
        match choice {
            RemedyChoice::Auto => automatic(),
            named => remedy::named(named.name())
                // A remedy named for rollouts says nothing about a leftover.
                .filter(|remedy| remedy.suits(hazard.rule, self.workload.kind))
                .or_else(|| automatic().filter(|_| hazard.rule == codes::LEFTOVER_ROLLING_UPDATE)),
        }
    }

    /// The most pods the workload may come to have, its autoscalers counted.
    fn most_pods(&self) -> i64 {
        let metadata = &self.workload.metadata;
        self.world
            .view
            .autoscalers_of(self.workload.kind, &metadata.namespace, &metadata.name)
            .iter()
            .map(|autoscaler| autoscaler.max_replicas)
            .fold(self.workload.replicas, i64::max)
    }

    fn try_remedy(&self, remedy: &'static Remedy, hazard: &Hazard) -> Option<Cure> {
        if !remedy.suits(hazard.rule, self.workload.kind) {
            return None;
        }
        let patch = remedy.patch(&self.workload, &self.raw)?;
        let mut raw = self.raw.clone();
        json_patch::patch(&mut raw, &patch).ok()?;
        let kind = ObjectKind::Workload(self.workload.kind);
        let Ok(Object::Workload(mut workload)) = kind.deserialize(&raw) else {
            return None;
        };
        // What the request said beside the object counts for the patched one too.
        workload.metadata.namespace = self.workload.metadata.namespace.clone();
        workload.metadata.name = self.workload.metadata.name.clone();
        let situation = Situation::of(&workload, self.previous, self.world);
        let hazards = judge(&Subject::Workload(situation));
        let milder = |after: &Hazard| {
            (after.rule != hazard.rule || after.outcome > hazard.outcome)
                && !remedy.is_useless_with(after.rule)
        };
        let is_old = |after: &Hazard| {
            self.hazards
                .iter()
                .any(|before| after.is_covered_by(before))
        };
        let helps = hazards.iter().all(|after| milder(after) && is_old(after));
        helps.then_some(Cure {
            patch,
            workload,
            raw,
            hazards,
        })
    }
}
