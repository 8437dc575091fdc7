//! Trying remedies: a remedy counts only if the patched object, judged again, has fewer or milder
//! hazards.

use std::borrow::Cow;

use serde_json::Value;

use super::Proposal;
use super::existing_violations::is_new;
use super::scaling::as_judged;
use crate::analysis::{Analysis, Facts};
use crate::model::ListRoom;
use crate::model::object::{Object, ObjectKind};
use crate::model::uid::Uid;
use crate::model::workload::{Workload, WorkloadKind};
use crate::policy::RemedyChoice;
use crate::remedy::applied::Applied;
use crate::remedy::{self, REMEDIES, Remedy};
use crate::rules::{Hazard, codes, judge_workload};

/// A workload as it was received or patched, with its hazards.
pub(super) struct Judged<'a> {
    pub(super) workload: Cow<'a, Workload>,
    pub(super) document: Cow<'a, Value>,
    pub(super) hazards: Vec<Hazard>,
    pub(super) previous: Option<&'a Workload>,
    /// The way in which the object is applied, which can decide whether a remedy helps.
    pub(super) applied: Applied,
    pub(super) facts: Facts<'a>,
}

impl Judged<'_> {
    /// Every remedy that helps against `hazard`, the chosen one first.
    pub(super) fn proposals(&self, hazard: &Hazard, choice: RemedyChoice) -> Vec<Proposal> {
        let chosen = self.chosen(hazard, choice);
        let mut proposals: Vec<Proposal> =
            REMEDIES.iter().filter_map(|remedy| Some(self.try_remedy(remedy, hazard)?.0)).collect();
        proposals.sort_by_key(|proposal| {
            chosen.is_none_or(|chosen| chosen.name != proposal.remedy.name)
        });
        proposals
    }

    /// The remedy that the policy chooses against `hazard`, and the workload with its patch; `None`
    /// if it does not help.
    pub(super) fn repair(&self, hazard: &Hazard, choice: RemedyChoice) -> Option<(Proposal, Self)> {
        self.try_remedy(self.chosen(hazard, choice)?, hazard)
    }

    /// The remedy that the policy chooses against `hazard`, whether it helps or not; `None` if it
    /// does not suit the rule or the kind of workload.
    fn chosen(&self, hazard: &Hazard, choice: RemedyChoice) -> Option<&'static Remedy> {
        let choice = match choice {
            // A remedy named for rollouts says nothing about a leftover.
            _ if hazard.rule == codes::LEFTOVER_ROLLING_UPDATE => RemedyChoice::DropLeftover,
            RemedyChoice::Auto => self.automatic(),
            named => named,
        };
        remedy::named(choice.name()).filter(|remedy| remedy.suits(hazard.rule, self.workload.kind))
    }

    /// The remedy if nobody chose one: it is best to stop a single pod first, by the strategy that
    /// can be applied; several pods must be kept together.
    fn automatic(&self) -> RemedyChoice {
        match self.workload.kind {
            _ if self.most_pods() > 1 => RemedyChoice::Colocate,
            WorkloadKind::Deployment if self.applied.may_refuse_recreate() => {
                RemedyChoice::ZeroSurge
            }
            WorkloadKind::Deployment | WorkloadKind::DeploymentConfig => RemedyChoice::Recreate,
            WorkloadKind::Rollout => RemedyChoice::ZeroSurge,
            _ => RemedyChoice::Colocate,
        }
    }

    /// The most pods that the workload may come to have, with its autoscalers counted.
    fn most_pods(&self) -> i64 {
        self.facts
            .view
            .autoscalers(&self.workload)
            .iter()
            .map(|autoscaler| autoscaler.spec.max_replicas)
            .fold(self.workload.replicas, i64::max)
    }

    fn try_remedy(&self, remedy: &'static Remedy, hazard: &Hazard) -> Option<(Proposal, Self)> {
        if !remedy.suits(hazard.rule, self.workload.kind) {
            return None;
        }
        let patch = remedy.patch(&self.workload, &self.document, self.previous)?;
        let proposal = Proposal { remedy, patch };
        let document = proposal.applied_to(&self.document)?;
        let workload = as_judged(Cow::Owned(self.read(&document)?), self.facts);
        let analysis = Analysis::of(&workload, self.previous, self.facts);
        if !(remedy.works)(&analysis) {
            return None;
        }
        let hazards = judge_workload(&analysis);
        let helps = hazards.iter().all(|after| {
            (after.rule != hazard.rule || after.outcome > hazard.outcome)
                && !is_new(after, &self.hazards)
        });
        helps.then(|| {
            let result = Self {
                workload: Cow::Owned(workload.into_owned()),
                document: Cow::Owned(document),
                hazards,
                ..*self
            };
            (proposal, result)
        })
    }

    /// The workload in the patched `document`; `None` if the API server would refuse it.
    fn read(&self, document: &Value) -> Option<Workload> {
        let kind = ObjectKind::Workload(self.workload.kind);
        let Ok(Object::Workload(mut workload)) =
            kind.read(&document.to_string(), &ListRoom::endless())
        else {
            return None;
        };
        // The API server refuses to change the template of an existing Job
        // (`validatePodTemplateUpdate` in `pkg/apis/batch/validation/validation.go`).
        let is_there = self.previous.is_some() || workload.metadata.uid != Uid::default();
        if is_there
            && workload.kind == WorkloadKind::Job
            && workload.template != self.workload.template
        {
            return None;
        }
        // The request's own name and namespace apply to the patched object too.
        workload.metadata.namespace = self.workload.metadata.namespace.clone();
        workload.metadata.name = self.workload.metadata.name.clone();
        // The containers are copied too: no patch changes them, and the document may lack them.
        let (patched, whole) = (&mut workload.template, &self.workload.template);
        patched.host_ports = whole.host_ports.clone();
        patched.extended_resources = whole.extended_resources.clone();
        patched.volumes.clone_from(&whole.volumes);
        if workload.template_source.is_some() {
            workload.template = self.workload.template.clone();
        }
        workload.ready = self.workload.ready;
        Some(workload)
    }
}
