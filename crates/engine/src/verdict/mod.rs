//! The engine, which judges what one object means for its volumes.
//!
//! Every front end calls [`evaluate`], so the webhook, `check` and the others give the same
//! verdict on the same object.
//!
//! ```text
//! Review ─▶ Analysis ─▶ rules ─▶ hazards ─▶ policy ─▶ findings ─▶ remedy ─▶ Verdict
//!                          ▲                                        │
//!                          └────────── the patched object ──────────┘
//! ```

mod claim;
mod complexity_limit;
mod denial;
mod existing_violations;
mod fencing;
mod finding;
mod operators;
mod owner;
mod repair;
mod scaling;
mod ship_now;
mod workload;

use std::borrow::Cow;

use jiff::Timestamp;
use json_patch::Patch;
use serde_json::Value;

pub use complexity_limit::size;
pub use denial::DENIAL_LENGTH;
pub use finding::{Finding, Proposal, WARNING_LENGTH, shortened};

use crate::analysis::Facts;
use crate::model::metadata::Metadata;
use crate::model::object::{Object, ObjectRef};
use crate::model::workload::WorkloadKind;
use crate::policy::{Action, Policy, RemedyChoice, Resolved, Target};
use crate::rules::{Hazard, Outcome};
use crate::snapshot::{UsersOfClaims, View, WorkBudget};
use crate::storage::Catalog;

/// Ignored annotations are reported one by one up to this number.
const MOST_NOTICES: usize = 8;

/// The submitted object and its request. Each part is read only if it is needed.
pub trait Document {
    /// The object as it was received.
    fn object(&self) -> Option<&Value>;

    /// Whether the update changes the pod template in any way; true if the documents cannot be
    /// compared.
    fn changes_template(&self) -> bool {
        true
    }

    /// The account that sends the request; `None` if there is none, as for files.
    fn requester(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// Whether the request deletes the object; the object is then the stored one.
    fn deletes(&self) -> bool {
        false
    }

    /// Whether the object's lists were cut when it was read.
    fn is_cut(&self) -> bool {
        false
    }

    /// The time of the judgement, which decides whether overrides have expired; `None` if it is
    /// unknown.
    fn moment(&self) -> Option<Timestamp> {
        None
    }
}

/// An object to judge.
#[derive(Clone, Copy)]
pub struct Review<'a> {
    /// The object.
    pub object: &'a Object,
    /// The object before the update under way; `None` for a new object.
    pub old: Option<&'a Object>,
    /// The object's name, for messages and the policy.
    pub reference: &'a ObjectRef,
    /// For an [`Object::Scale`]: the kind of workload it scales.
    pub scaled: Option<WorkloadKind>,
    /// The submitted document.
    pub document: &'a dyn Document,
    /// The result that the caller wants besides the findings.
    pub mode: Mode,
}

/// The result that the caller wants besides the findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing. A finding that the policy says to fix is denied if it is grave, else it is a
    /// warning.
    Judge,
    /// A patch for the findings that the policy says to fix.
    Admit,
    /// No patch, but every remedy that helps with each finding.
    Propose,
    /// A patch for the findings that would be denied or fixed, if a remedy helps. Several pods are
    /// put on one node only if the caller or the policy chose that. Guesses are repaired only with
    /// a remedy that the caller chose and that is right for every class.
    Repair {
        /// The remedy to take in place of the one that the policy chooses.
        remedy: Option<RemedyChoice>,
    },
}

/// The result of a review.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The findings, the gravest first.
    pub findings: Vec<Finding>,
    /// The patch that goes with the findings whose action is [`Action::Fix`].
    pub patch: Option<Patch>,
    /// Sentences for the user that are no findings, about ignored annotations for example.
    pub notices: Vec<String>,
    /// Whether the object was too complex to judge; the finding then says so.
    pub too_complex: bool,
    /// Whether the policy lets the object's own annotations override it.
    pub may_be_overridden: bool,
}

impl Verdict {
    /// The gravest action of all findings; [`Action::Ignore`] if there are none.
    pub fn action(&self) -> Action {
        self.findings.iter().map(|finding| finding.action).min().unwrap_or(Action::Ignore)
    }

    /// The verdict with warnings in place of denials, and a sentence that says why.
    pub fn without_denials(mut self, why: &str) -> Self {
        for finding in &mut self.findings {
            if finding.action == Action::Deny {
                finding.action = Action::Warn;
            }
        }
        self.notices.push(finding::shortened(why));
        self
    }

    /// The verdict on a rollback to a template whose pods run. It starts no pods, so only refusals
    /// by the API server are still denied. The template is not patched, as it would no longer be
    /// the old one.
    pub fn of_rollback(mut self, why: &str) -> Self {
        for finding in &mut self.findings {
            let gives_way = match finding.action {
                Action::Deny => finding.outcome != Outcome::Refused,
                Action::Fix => finding.patches_template(),
                Action::Warn | Action::Ignore => false,
            };
            if gives_way {
                finding.action = Action::Ignore;
                finding.remedies.clear();
            }
        }
        self.notices.push(finding::shortened(why));
        self.with_patch()
    }

    /// The verdict with its patch, put together from the remedies of the findings that it fixes.
    fn with_patch(mut self) -> Self {
        let operations: Vec<_> = self
            .with(Action::Fix)
            .flat_map(|finding| &finding.remedies)
            .flat_map(|proposal| proposal.patch.0.clone())
            .collect();
        self.patch = (!operations.is_empty()).then_some(Patch(operations));
        self
    }

    /// The findings with that action.
    pub fn with(&self, action: Action) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.action == action)
    }
}

impl FromIterator<Finding> for Verdict {
    fn from_iter<I: IntoIterator<Item = Finding>>(findings: I) -> Self {
        Self { findings: findings.into_iter().collect(), ..Self::default() }
    }
}

/// A policy and the catalog with the policy's corrections.
#[derive(Clone, Debug)]
pub struct EffectivePolicy {
    policy: Policy,
    catalog: Catalog,
}

impl EffectivePolicy {
    /// Adds the policy's own provisioners to the catalog.
    pub fn new(policy: Policy, catalog: &Catalog) -> Self {
        let catalog = catalog.with_overrides(policy.provisioners().to_vec());
        Self { policy, catalog }
    }

    /// The policy.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The catalog.
    pub const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The facts of that view, under this policy.
    pub fn facts<'a>(&'a self, view: View<'a>) -> Facts<'a> {
        Facts { view, catalog: &self.catalog, nodes: self.policy.nodes(), rule: None }
    }
}

/// Judges one object in a cluster.
pub fn evaluate(review: &Review<'_>, view: View<'_>, effective: &EffectivePolicy) -> Verdict {
    evaluate_by(None, review, view, effective)
}

/// Judges one object only by the rule with this code, which needs fewer facts; `None` for all rules.
pub fn evaluate_by(
    rule: Option<&'static str>,
    review: &Review<'_>,
    view: View<'_>,
    effective: &EffectivePolicy,
) -> Verdict {
    let steps = WorkBudget::new(complexity_limit::WORK_BUDGET);
    let view = view.within(&steps);
    let users = match (review.object, review.mode) {
        // Elsewhere, each user that is looked up would have to be confirmed.
        (Object::Workload(workload), Mode::Propose) => {
            view.users_of_claims(workload, complexity_limit::MOST_USERS)
        }
        _ => Some(UsersOfClaims::default()),
    };
    let are_too_many = users.is_none();
    let users = users.unwrap_or_default();
    let evaluation = Evaluation {
        review,
        policy: &effective.policy,
        facts: Facts { rule, ..effective.facts(view.with_users(&users)) },
    };
    if review.object.metadata().is_being_deleted() {
        return Verdict::default();
    }
    if are_too_many || review.document.is_cut() {
        return evaluation.too_complex(are_too_many);
    }
    let verdict = match review.object {
        Object::Workload(workload) => evaluation.workload(workload),
        Object::Claim(claim) => Some(evaluation.claim(claim)),
        Object::Autoscaler(autoscaler) => evaluation.autoscaler(autoscaler),
        Object::Scale(scale) => evaluation.scale(scale),
        Object::Node(node) => evaluation.node(node),
        Object::VolumeAttachment(attachment) => evaluation.attachment(attachment),
        Object::Volume(_)
        | Object::StorageClass(_)
        | Object::CsiDriver(_)
        | Object::CsiNode(_)
        | Object::Namespace(_)
        | Object::Lease(_)
        | Object::RuntimeClass(_) => None,
    };
    if steps.is_exhausted() {
        return evaluation.too_complex(false);
    }
    verdict.unwrap_or_default()
}

/// One review with everything that is needed to judge it.
struct Evaluation<'a> {
    review: &'a Review<'a>,
    policy: &'a Policy,
    facts: Facts<'a>,
}

impl Evaluation<'_> {
    /// Decides about the hazards of an object that has no remedies. `controlled` says whether a
    /// controller would undo a change of the object; `adjust` may change each finding afterwards.
    fn decided(
        &self,
        hazards: &[Hazard],
        metadata: &Metadata,
        kind: &str,
        controlled: impl FnOnce() -> bool,
        adjust: impl Fn(&mut Finding, &Hazard, &Resolved<'_>),
    ) -> Verdict {
        if hazards.is_empty() {
            return Verdict::default();
        }
        self.with_policy(metadata, kind, controlled(), |resolved| {
            hazards
                .iter()
                .map(|hazard| {
                    let decision = resolved.decide(hazard);
                    let action = decision.without_remedy;
                    let mut finding =
                        Finding::decided(hazard, self.review.reference, action, decision);
                    adjust(&mut finding, hazard, resolved);
                    finding
                })
                .collect()
        })
    }

    /// Gathers what the policy says about an object, lets `decide` use it, and adds the policy's
    /// notices.
    fn with_policy(
        &self,
        metadata: &Metadata,
        kind: &str,
        controlled: bool,
        decide: impl FnOnce(&Resolved<'_>) -> Verdict,
    ) -> Verdict {
        let namespace = self.facts.view.namespace(&metadata.namespace).found();
        let name = metadata.shown_name();
        let mut target = Target {
            namespace: &metadata.namespace,
            namespace_metadata: namespace.map(|namespace| &namespace.metadata),
            kind,
            name: &name,
            annotations: &metadata.annotations,
            controlled,
            now: self.review.document.moment(),
        };
        target.controlled |=
            self.names_unknown_owner(metadata) && self.policy.resolve(&target).object_may_override;
        let resolved = self.policy.resolve(&target);
        let mut verdict = decide(&resolved);
        verdict.may_be_overridden = resolved.object_may_override;
        let passed_over = resolved.passed_over();
        verdict.notices.extend(
            passed_over
                .iter()
                .take(MOST_NOTICES)
                .map(|notice| finding::shortened(&notice.to_string())),
        );
        if passed_over.len() > MOST_NOTICES {
            let more = "Other parts of the multi-attach-guard.dev annotations are ignored too.";
            verdict.notices.push(more.to_owned());
        }
        verdict
    }
}
