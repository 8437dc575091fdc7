//! Judging a claim, alone and with the workloads that wait for it.

use hashbrown::HashSet;

use super::{Evaluation, Finding, Verdict};
use crate::analysis::{Analysis, Facts};
use crate::model::claim::Claim;
use crate::model::object::{Object, ObjectKind};
use crate::policy::{Action, Resolved};
use crate::rules::{ClaimReview, Hazard, Outcome, Subject, judge, judge_workload};
use crate::snapshot::{Overlay, Place, Turn};

impl Evaluation<'_> {
    pub(super) fn claim(&self, claim: &Claim) -> Verdict {
        let old = match self.review.old {
            Some(Object::Claim(old)) => Some(old),
            _ => None,
        };
        let hazards = judge(Subject::Claim(&ClaimReview { claim, old, facts: self.facts }));
        let metadata = &claim.metadata;
        let is_owned = || self.owner_is_real(metadata);
        let kind = ObjectKind::Claim.name();
        let mut verdict = self.decided(&hazards, metadata, kind, is_owned, |_, _, _| {});
        if old.is_none() {
            self.waiting_workloads(claim, &mut verdict);
        }
        verdict
    }

    /// Judges a new claim with the workloads that wait for it. The policy of each workload
    /// decides about its hazards.
    fn waiting_workloads(&self, claim: &Claim, verdict: &mut Verdict) {
        let (metadata, view) = (&claim.metadata, self.facts.view);
        let waiting = view.workloads_using(&metadata.namespace, &metadata.name);
        let arriving: &dyn Place = &Object::Claim(claim.clone());
        let nearer = view.overlay().nearer.or(Some(arriving));
        let overlay = Overlay { nearer, ..*view.overlay() };
        let facts = Facts { view: view.with(&overlay), ..self.facts };
        let mut reported = HashSet::new();
        for workload in waiting {
            if !workload.has_pods() || view.workload_turn(workload) != Turn::Never {
                continue;
            }
            let mut hazards = judge_workload(&Analysis::of(workload, None, facts));
            hazards.retain(|hazard| {
                hazard.volumes.contains(&metadata.name) && reported.insert(hazard.rule)
            });
            let who = format!("{} {} waits for it", workload.kind, workload.metadata.name);
            for hazard in &mut hazards {
                hazard.field_path = "spec.accessModes".to_owned();
                hazard.what = format!("{who}: {}", hazard.what);
                hazard.brief = format!("{who}: {}", hazard.brief);
            }
            let (user, kind) = (&workload.metadata, workload.kind.name());
            let is_owned = || user.controller.is_some();
            let found = self.decided(&hazards, user, kind, is_owned, may_be_fixed_later);
            verdict.findings.extend(found.findings);
            verdict.notices.extend(found.notices);
        }
        verdict.findings.sort_by_key(|finding| finding.outcome);
    }
}

/// Lowers a finding to a warning if the policy fixes it later. A patch of the claim under review
/// cannot fix the workload that waits for it. A rollout that would never finish is fixed when it
/// starts; pods that could never start are not.
fn may_be_fixed_later(finding: &mut Finding, hazard: &Hazard, resolved: &Resolved<'_>) {
    let decision = resolved.decide(hazard);
    if decision.action == Action::Fix && hazard.outcome != Outcome::Stuck {
        finding.action = Action::Warn;
        finding.lowered = decision.lowered;
    }
}
