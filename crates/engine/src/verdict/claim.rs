//! Judging a claim, alone and with the workloads that wait for it.

use std::collections::HashSet;

use super::{Evaluation, Suppressed, Verdict};
use crate::analysis::{Analysis, Facts};
use crate::model::claim::Claim;
use crate::model::object::Object;
use crate::policy::{Action, Resolved};
use crate::rules::{ClaimReview, Hazard, Outcome, judge_claim, judge_workload};
use crate::snapshot::{Overlay, Turn};

impl Evaluation<'_> {
    pub(super) fn claim(&self, claim: &Claim) -> Verdict {
        let old = match self.review.old {
            Some(Object::Claim(old)) => Some(old),
            _ => None,
        };
        let hazards = judge_claim(&ClaimReview {
            claim,
            old,
            facts: self.facts,
        });
        let mut verdict = if hazards.is_empty() {
            Verdict::default()
        } else {
            self.with_policy(
                &claim.metadata,
                "PersistentVolumeClaim",
                self.owner_is_real(&claim.metadata),
                |resolved| self.plain(&hazards, resolved),
            )
        };
        if old.is_none() {
            self.waiting_workloads(claim, &mut verdict);
        }
        verdict
    }

    /// Judges a new claim with the workloads that wait for it. The policy of each workload
    /// decides about its hazards.
    fn waiting_workloads(&self, claim: &Claim, verdict: &mut Verdict) {
        let metadata = &claim.metadata;
        let waiting = self
            .facts
            .view
            .workloads_using(&metadata.namespace, &metadata.name);
        if waiting.is_empty() {
            return;
        }
        let view = self.facts.view;
        let overlay = Overlay {
            arriving: Some(claim),
            ..*view.overlay()
        };
        let facts = Facts {
            view: view.with(&overlay),
            ..self.facts
        };
        let mut reported = HashSet::new();
        for workload in waiting {
            if !workload.has_pods()
                || self.facts.view.workload_turn(workload) != Turn::Never
            {
                continue;
            }
            let hazards: Vec<Hazard> = judge_workload(&Analysis::of(workload, None, facts))
                .into_iter()
                .filter(|hazard| {
                    hazard.volumes.contains(&metadata.name) && reported.insert(hazard.rule)
                })
                .map(|hazard| {
                    let who = format!("{} {} waits for it", workload.kind, workload.metadata.name);
                    Hazard {
                        field_path: "spec.accessModes".to_owned(),
                        what: format!("{who}: {}", hazard.what),
                        brief: format!("{who}: {}", hazard.brief),
                        ..hazard
                    }
                })
                .collect();
            if hazards.is_empty() {
                continue;
            }
            let found = self.with_policy(
                &workload.metadata,
                workload.kind.name(),
                workload.metadata.controller.is_some(),
                |resolved| self.about_waiting(&hazards, resolved),
            );
            verdict.findings.extend(found.findings);
            verdict.notices.extend(found.notices);
        }
        verdict.findings.sort_by_key(|finding| finding.outcome);
    }

    /// Decides about the hazards of a workload that waits for the claim under
    /// review. A patch of the claim cannot fix the workload. Where the policy says to fix, a
    /// rollout that would never finish is fixed when it starts; pods that could never start
    /// are not.
    fn about_waiting(&self, hazards: &[Hazard], resolved: &Resolved<'_>) -> Verdict {
        let mut verdict = self.plain(hazards, resolved);
        for (finding, hazard) in verdict.findings.iter_mut().zip(hazards) {
            let decision = resolved.decide(hazard.rule, hazard.outcome, hazard.certainty);
            if decision.action == Action::Fix && hazard.outcome != Outcome::Stuck {
                finding.action = Action::Warn;
                finding.lowered = decision.lowered.map(Suppressed::from);
            }
        }
        verdict
    }
}
