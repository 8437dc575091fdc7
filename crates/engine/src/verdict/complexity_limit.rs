//! What is said of an object that is too much to judge.

use super::{Evaluation, Verdict, existing_violations};
use crate::model::object::Object;
use crate::policy::Action;
use crate::rules::{Certainty, Hazard, Outcome, codes};

/// The steps that one judgement may make. Ordinary ones make some tens, and the worst
/// that were drawn by lot (`benches/knots.rs`) end within 50 ms.
pub(super) const WORK_BUDGET: usize = 400_000;

impl Evaluation<'_> {
    /// The verdict on an object whose judging came to no end.
    pub(super) fn too_complex(&self) -> Verdict {
        let Some(metadata) = self.review.object.metadata() else {
            return Verdict::default();
        };
        let (what, advice) = match self.review.document.is_cut() {
            true => (
                "its lists are longer than the guard reads, so it could not be verified that no \
                 pod gets stuck."
                    .to_owned(),
                "Give it fewer volumes, containers and other entries.",
            ),
            false => (
                format!(
                    "it involves so many workloads, volumes and nodes that judging it takes \
                     more than {WORK_BUDGET} steps, which is where the guard stops, so it could not be \
                     verified that no pod gets stuck."
                ),
                "Give each workload claims of its own, or simpler affinity.",
            ),
        };
        let hazard = Hazard {
            rule: codes::UNRESOLVED_CLAIM,
            outcome: Outcome::Unknown,
            certainty: Certainty::Verified,
            field_path: "metadata.name".to_owned(),
            volumes: Vec::new(),
            excess: 0,
            what,
            advice: advice.to_owned(),
            brief: "too much to judge, so it was not verified that no pod gets stuck".to_owned(),
        };
        let kind = &self.review.reference.kind;
        let controlled = self.owner_is_real(metadata);
        let mut verdict = self.with_policy(metadata, kind, controlled, |resolved| {
            self.plain(&[hazard], resolved)
        });
        if !self.is_to_blame() {
            for finding in &mut verdict.findings {
                finding.action = finding.action.max(Action::Warn);
                finding.lowered = None;
            }
        }
        verdict.too_complex = true;
        verdict
    }

    /// Whether the review may bring a hazard about: what leaves pods as they are does not.
    fn is_to_blame(&self) -> bool {
        match (self.review.object, self.review.old) {
            (Object::Workload(new), Some(Object::Workload(old))) => {
                new.replicas > old.replicas
                    || existing_violations::starts_a_rollout(new, self.review.document)
            }
            _ => true,
        }
    }
}
