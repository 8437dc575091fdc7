//! The verdict on an object that is too complex to judge.

use super::{Evaluation, Finding, Verdict, existing_violations};
use crate::model::object::Object;
use crate::model::pod::PodAffinityTerm;
use crate::model::selector::{LabelSelector, Requirement};
use crate::rules::{Hazard, Outcome, codes};

/// The steps that one judgement may take. An ordinary one takes tens of them; the worst random
/// ones (`benches/knots.rs`) end within 50 ms.
pub(super) const WORK_BUDGET: usize = 400_000;

/// The most users that the claims of one workload may have in all where every remedy is tried:
/// those of 64 claims with 64 users each. Each user is looked at about 35 times, so many workloads
/// with more would take minutes together.
pub(super) const MOST_USERS: usize = 64 * 64;

/// More entries than any real object has. Real pod templates have tens of them.
pub(super) const HONEST_SIZE: usize = 100;

impl Evaluation<'_> {
    /// The verdict on an object whose judgement exceeded a limit: that of steps, or that of users.
    pub(super) fn too_complex(&self, are_users_too_many: bool) -> Verdict {
        let metadata = self.review.object.metadata();
        let is_cut = self.review.document.is_cut();
        let size = size(self.review.object);
        let is_oversized = is_cut || size > HONEST_SIZE;
        let hazard = hazard(is_cut, size, are_users_too_many);
        let kind = &self.review.reference.kind;
        let controlled = self.owner_is_real(metadata);
        let mut verdict = self.with_policy(metadata, kind, controlled, |resolved| {
            let decision = if is_oversized {
                resolved.decide_oversized(&hazard)
            } else {
                resolved.decide(&hazard)
            };
            let action = decision.without_remedy;
            let mut finding = Finding::decided(&hazard, self.review.reference, action, decision);
            if !self.is_to_blame() {
                finding.only_warn();
            }
            [finding].into_iter().collect()
        });
        verdict.too_complex = true;
        verdict
    }

    /// Whether the request can cause a hazard. A request that leaves the pods as they are cannot.
    fn is_to_blame(&self) -> bool {
        match (self.review.object, self.review.old) {
            (Object::Workload(new), Some(Object::Workload(old))) => {
                new.replicas > old.replicas
                    || new.strategy != old.strategy
                    || existing_violations::starts_a_rollout(old, new, self.review.document)
            }
            _ => true,
        }
    }
}

/// The hazard of an object with this `size` whose lists were cut, or that exceeded a limit.
fn hazard(is_cut: bool, size: usize, are_users_too_many: bool) -> Hazard {
    let steps =
        format!("judging it takes more than {WORK_BUDGET} steps, which is where the guard stops");
    let fewer =
        "Give it fewer of them, or set `too-complex: warn` for its namespace in the policy.";
    let (why, advice) = if is_cut {
        ("its lists are longer than the guard reads".to_owned(), fewer)
    } else if are_users_too_many {
        let why = format!(
            "its claims have more than {MOST_USERS} users in all, and the guard judges no more"
        );
        (why, "Give each workload claims of its own.")
    } else if size > HONEST_SIZE {
        let why =
            format!("with {size} volumes, tolerations, constraints and values in them, {steps}");
        (why, fewer)
    } else {
        let why = format!("it involves so many workloads, volumes and nodes that {steps}");
        (why, "Give each workload claims of its own, or simpler affinity.")
    };
    Hazard {
        field_path: "metadata.name".to_owned(),
        what: format!("{why}, so it could not be verified that no pod gets stuck."),
        advice: advice.to_owned(),
        brief: "too much to judge, so it was not verified that no pod gets stuck".to_owned(),
        ..Hazard::new(codes::UNRESOLVED_CLAIM, Outcome::Unknown)
    }
}

/// The number of entries in the object's lists that affect its pods: its volumes, tolerations and
/// constraints, and the values in these.
pub fn size(object: &Object) -> usize {
    let Object::Workload(workload) = object else {
        return 0;
    };
    let template = &workload.template;
    let node_terms =
        template.node_affinity.iter().flat_map(|affinity| affinity.node_selector_terms.iter());
    let terms = template.affinity.iter().chain(&template.anti_affinity);
    template.node_selector.iter().count()
        + node_terms.map(|term| 1 + of_requirements(term.requirements())).sum::<usize>()
        + terms.map(of_term).sum::<usize>()
        + template.tolerations.len()
        + template
            .spread
            .iter()
            .map(|spread| {
                1 + spread.match_label_keys.len()
                    + spread.label_selector.iter().map(of_labels).sum::<usize>()
            })
            .sum::<usize>()
        + template.volumes.len()
        + template.ephemeral.len()
        + workload.claim_templates.len()
}

fn of_term(term: &PodAffinityTerm) -> usize {
    let selectors = term.label_selector.iter().chain(&term.namespace_selector);
    1 + selectors.map(of_labels).sum::<usize>()
        + term.namespaces.len()
        + term.match_label_keys.len()
        + term.mismatch_label_keys.len()
}

fn of_labels(selector: &LabelSelector) -> usize {
    selector.match_labels.iter().count() + of_requirements(selector.match_expressions.iter())
}

fn of_requirements<'r>(requirements: impl Iterator<Item = &'r Requirement>) -> usize {
    requirements.map(|requirement| 1 + requirement.values.len()).sum()
}
