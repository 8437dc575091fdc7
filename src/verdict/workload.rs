//! Judging a workload, and repairing it.

use json_patch::Patch;
use serde_json::Value;

use super::finding::shortened;
use super::repair::Patient;
use super::{Aim, Bench, Finding, Proposal, Verdict, ratchet, reason};
use crate::model::object::Object;
use crate::model::workload::Workload;
use crate::policy::{Action, Decision, Resolved};
use crate::rules::{Hazard, Subject, judge};
use crate::situation::Situation;

impl Bench<'_> {
    pub(super) fn workload(&self, workload: &Workload) -> Verdict {
        if workload.owner_is_judged() {
            return Verdict::default();
        }
        let previous = match self.review.old {
            Some(Object::Workload(old)) => Some(old),
            _ => None,
        };
        let subject = Subject::Workload(Situation::of(workload, previous, self.world));
        let hazards = judge(&subject);
        if hazards.is_empty() {
            return Verdict::default();
        }
        let blameless = self.blameless(workload, previous, &hazards);
        self.with_policy(&workload.metadata, workload.kind.name(), |resolved| {
            let patient = Patient {
                workload: workload.clone(),
                raw: Value::Null,
                hazards: Vec::new(),
                previous,
                world: self.world,
            };
            self.treat(patient, hazards, &blameless, resolved)
        })
    }

    /// The hazards the update under way is not to blame for: they were there in
    /// full before it, and it starts no rollout.
    fn blameless(
        &self,
        workload: &Workload,
        previous: Option<&Workload>,
        hazards: &[Hazard],
    ) -> Vec<Hazard> {
        let Some(old) = previous else {
            return Vec::new();
        };
        let mut before = judge(&Subject::Workload(Situation::of(old, None, self.world)));
        if workload.replicas < old.replicas {
            // Percentages mean something else for fewer pods; scaling down is
            // not to blame for that.
            let fewer = Workload {
                replicas: workload.replicas,
                ..old.clone()
            };
            before.extend(judge(&Subject::Workload(Situation::of(
                &fewer, None, self.world,
            ))));
        }
        let kept: Vec<Hazard> = hazards
            .iter()
            .filter(|hazard| !ratchet::is_new(hazard, &before))
            .cloned()
            .collect();
        if kept.is_empty() || ratchet::starts_a_rollout(workload, old, self.review.raw) {
            return Vec::new();
        }
        kept
    }

    /// Decides about each hazard of a workload, and patches it where it is to be
    /// fixed and can be.
    fn treat(
        &self,
        mut patient: Patient<'_>,
        hazards: Vec<Hazard>,
        blameless: &[Hazard],
        resolved: &Resolved<'_>,
    ) -> Verdict {
        let aim = self.review.aim;
        let decide = |hazard: &Hazard| -> Decision<'_> {
            let mut decision = resolved.decide(hazard.rule, hazard.outcome);
            let spared = blameless.contains(hazard);
            if spared && matches!(decision.action, Action::Deny | Action::Fix) {
                decision.action = Action::Warn;
                decision.without_remedy = Action::Warn;
            }
            if !spared && aim == Aim::Repair && decision.action != Action::Ignore {
                decision.action = Action::Fix;
            }
            decision
        };
        let needs_raw = match aim {
            Aim::Judge => false,
            Aim::Propose | Aim::Repair => true,
            Aim::Admit => hazards
                .iter()
                .any(|hazard| decide(hazard).action == Action::Fix),
        };
        if needs_raw && let Some(raw) = self.review.raw.object() {
            patient.raw = raw.clone();
        }
        patient.hazards = hazards;

        let mut verdict = Verdict::default();
        let mut operations = Vec::new();
        if matches!(aim, Aim::Admit | Aim::Repair) && !patient.raw.is_null() {
            while let Some((hazard, remedy, cure)) = patient
                .hazards
                .iter()
                .filter(|hazard| decide(hazard).action == Action::Fix)
                .find_map(|hazard| {
                    let (remedy, cure) = patient.cure(hazard, decide(hazard).remedy)?;
                    Some((hazard.clone(), remedy, cure))
                })
            {
                let mut finding = Finding::new(&hazard, self.review.reference, Action::Fix);
                finding.message = format!(
                    "{}: {} To keep that from happening, {}. {}",
                    self.review.reference, hazard.what, remedy.effect, remedy.cost
                );
                finding.warning = shortened(format!(
                    "{}: fixed with {}: {}",
                    hazard.rule, remedy.name, remedy.effect
                ));
                finding.remedies.push(Proposal {
                    remedy,
                    patch: cure.patch.clone(),
                });
                verdict.findings.push(finding);
                operations.extend(cure.patch.0);
                patient.workload = cure.workload;
                patient.raw = cure.raw;
                patient.hazards = cure.hazards;
            }
        }
        for hazard in &patient.hazards {
            let decision = decide(hazard);
            let action = if decision.action == Action::Fix && aim != Aim::Propose {
                decision.without_remedy
            } else {
                decision.action
            };
            let mut finding = Finding::new(hazard, self.review.reference, action);
            finding.suppressed = decision.suppressed.map(reason);
            if aim == Aim::Propose && !patient.raw.is_null() {
                finding.remedies = patient
                    .proposals(hazard, decision.remedy)
                    .into_iter()
                    .map(|(remedy, patch)| Proposal { remedy, patch })
                    .collect();
                if finding.action == Action::Fix && finding.remedies.is_empty() {
                    finding.action = decision.without_remedy;
                }
            }
            verdict.findings.push(finding);
        }
        verdict.patch = (!operations.is_empty()).then_some(Patch(operations));
        verdict
    }
}
