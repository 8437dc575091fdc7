//! The engine: one object and what it means for its volumes.
//!
//! Every door calls [`evaluate`], so that the webhook, `check` and the rest say
//! the same of the same object.
//!
//! ```text
//! Review ─▶ Situation ─▶ rules ─▶ hazards ─▶ policy ─▶ findings ─▶ remedy ─▶ Verdict
//!                          ▲                                        │
//!                          └────────── the patched object ──────────┘
//! ```

mod arrival;
mod finding;
mod ratchet;
mod repair;

use std::collections::HashSet;

use json_patch::Patch;
use serde_json::Value;

pub use finding::{Finding, Proposal, WARNING_LENGTH};

use crate::model::autoscaler::{Autoscaler, Scale};
use crate::model::claim::Claim;
use crate::model::cluster::{ClusterView, Lookup, Turn};
use crate::model::metadata::Metadata;
use crate::model::object::{Object, ObjectRef};
use crate::model::workload::{Workload, WorkloadKind};
use crate::policy::{Action, Decision, Policy, Resolved, Scope, SuppressedBy, Suppression};
use crate::rules::{Hazard, Outcome, Subject, judge};
use crate::situation::{Situation, World};
use crate::storage::{Catalog, OverrideError};
use arrival::WithClaim;
use repair::Patient;

/// The documents behind the facts, read only where they are needed.
pub trait Raw {
    /// The object as it was received.
    fn object(&self) -> Option<&Value>;

    /// The object before the update.
    fn old(&self) -> Option<&Value>;
}

/// What is to be judged.
#[derive(Clone, Copy)]
pub struct Review<'a> {
    /// The object.
    pub object: &'a Object,
    /// The object before the update under way; `None` for a new object.
    pub old: Option<&'a Object>,
    /// The object's name, for messages and the policy.
    pub reference: &'a ObjectRef,
    /// For a [`Scale`]: the kind of workload it scales.
    pub scaled: Option<WorkloadKind>,
    /// The documents.
    pub raw: &'a dyn Raw,
    /// What is asked for beside the findings.
    pub aim: Aim,
}

/// What is asked for beside the findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// No more: what the policy says to fix is denied where it is grave, else
    /// warned of.
    Judge,
    /// A patch where the policy says to fix.
    Admit,
    /// No patch, but every remedy that helps with each finding.
    Propose,
    /// A patch wherever a remedy helps, also where the policy says to deny.
    Repair,
}

/// What comes of a review.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What was found, the gravest first.
    pub findings: Vec<Finding>,
    /// The patch that goes with the findings whose action is [`Action::Fix`].
    pub patch: Option<Patch>,
    /// Things to tell the user about the policy's own annotations, as sentences.
    pub notices: Vec<String>,
}

impl Verdict {
    /// The gravest action of all findings; [`Action::Ignore`] where nothing was found.
    #[must_use]
    pub fn action(&self) -> Action {
        self.findings
            .iter()
            .map(|finding| finding.action)
            .min()
            .unwrap_or(Action::Ignore)
    }

    /// The findings with that action.
    pub fn with(&self, action: Action) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(move |finding| finding.action == action)
    }
}

/// A policy and the catalog as it corrects it.
#[derive(Clone, Debug)]
pub struct Settings {
    policy: Policy,
    catalog: Catalog,
}

impl Settings {
    /// Puts a policy's own provisioners into the catalog.
    ///
    /// # Errors
    /// When the policy's provisioners contradict themselves.
    pub fn new(policy: Policy, catalog: &Catalog) -> Result<Self, OverrideError> {
        let catalog = catalog.with_overrides(policy.provisioners().to_vec())?;
        Ok(Self { policy, catalog })
    }

    /// The policy.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The catalog.
    #[must_use]
    pub const fn catalog(&self) -> &Catalog {
        &self.catalog
    }
}

/// Judges one object in a cluster.
#[must_use]
pub fn evaluate(review: &Review<'_>, view: &dyn ClusterView, settings: &Settings) -> Verdict {
    let world = World {
        view,
        catalog: &settings.catalog,
        nodes: settings.policy.nodes(),
    };
    let bench = Bench {
        review,
        policy: &settings.policy,
        world,
    };
    if review
        .object
        .metadata()
        .is_some_and(|metadata| metadata.deleting)
    {
        return Verdict::default();
    }
    match review.object {
        Object::Workload(workload) => bench.workload(workload),
        Object::Claim(claim) => bench.claim(claim),
        Object::Autoscaler(autoscaler) => bench.autoscaler(autoscaler),
        Object::Scale(scale) => bench.scale(scale),
        Object::Volume(_)
        | Object::StorageClass(_)
        | Object::CsiDriver(_)
        | Object::Node(_)
        | Object::Namespace(_) => Verdict::default(),
    }
}

/// One review with everything that is needed to judge it.
struct Bench<'a> {
    review: &'a Review<'a>,
    policy: &'a Policy,
    world: World<'a>,
}

impl<'a> Bench<'a> {
    fn workload(&self, workload: &Workload) -> Verdict {
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
                finding.warning = finding::shortened(format!(
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

    fn claim(&self, claim: &Claim) -> Verdict {
        let old = match self.review.old {
            Some(Object::Claim(old)) => Some(old),
            _ => None,
        };
        let hazards = judge(&Subject::Claim {
            claim,
            old,
            world: self.world,
        });
        let mut verdict = if hazards.is_empty() {
            Verdict::default()
        } else {
            self.with_policy(&claim.metadata, "PersistentVolumeClaim", |resolved| {
                self.plain(&hazards, resolved)
            })
        };
        if old.is_none() && claim.volume.is_empty() {
            self.waiting_workloads(claim, &mut verdict);
        }
        verdict
    }

    /// Judges a new claim with the workloads that wait for it. Each is decided
    /// about as that workload would be.
    fn waiting_workloads(&self, claim: &Claim, verdict: &mut Verdict) {
        let metadata = &claim.metadata;
        let waiting = self
            .world
            .view
            .workloads_using(&metadata.namespace, &metadata.name);
        if waiting.is_empty() {
            return;
        }
        let view = WithClaim::new(self.world.view, claim);
        let world = World {
            view: &view,
            ..self.world
        };
        let mut told = HashSet::new();
        for workload in waiting {
            if workload.owner_is_judged()
                || !workload.has_pods()
                || self.world.view.workload_turn(&workload) != Turn::Never
            {
                continue;
            }
            let hazards: Vec<Hazard> =
                judge(&Subject::Workload(Situation::of(&workload, None, world)))
                    .into_iter()
                    .filter(|hazard| {
                        hazard.volumes.contains(&metadata.name) && told.insert(hazard.rule)
                    })
                    .map(|hazard| Hazard {
                        field_path: "spec.accessModes".to_owned(),
                        what: format!(
                            "{} {} waits for it; there, {}",
                            workload.kind, workload.metadata.name, hazard.what
                        ),
                        ..hazard
                    })
                    .collect();
            if hazards.is_empty() {
                continue;
            }
            let found = self.with_policy(&workload.metadata, workload.kind.name(), |resolved| {
                self.about_waiting(&hazards, resolved)
            });
            verdict.findings.extend(found.findings);
            verdict.notices.extend(found.notices);
        }
        verdict.findings.sort_by_key(|finding| finding.outcome);
    }

    /// Decides about the hazards of a workload that waits for the claim under
    /// review. The claim cannot be patched to mend the workload; where the
    /// policy says to fix, a rollout that would never finish is mended when it
    /// starts, but pods that could never start are not.
    fn about_waiting(&self, hazards: &[Hazard], resolved: &Resolved<'_>) -> Verdict {
        let mut verdict = self.plain(hazards, resolved);
        for (finding, hazard) in verdict.findings.iter_mut().zip(hazards) {
            let decision = resolved.decide(hazard.rule, hazard.outcome);
            if decision.action == Action::Fix && hazard.outcome != Outcome::Stuck {
                finding.action = Action::Warn;
            }
        }
        verdict
    }

    fn autoscaler(&self, autoscaler: &Autoscaler) -> Verdict {
        let Some(kind) = WorkloadKind::from_name(&autoscaler.target_kind)
            .filter(|kind| kind.group() == autoscaler.target_group.as_str())
        else {
            return Verdict::default();
        };
        let Lookup::Found(workload) = self.world.view.workload(
            kind,
            &autoscaler.metadata.namespace,
            &autoscaler.target_name,
        ) else {
            return Verdict::default();
        };
        let hazards = self.scaled(&workload, autoscaler.max_replicas, Some(autoscaler));
        let before = match self.review.old {
            Some(Object::Autoscaler(old)) if old.target_name == autoscaler.target_name => {
                self.scaled(&workload, old.max_replicas, Some(old))
            }
            _ => Vec::new(),
        };
        if hazards.is_empty() {
            return Verdict::default();
        }
        self.with_policy(
            &autoscaler.metadata,
            "HorizontalPodAutoscaler",
            |resolved| {
                let mut verdict = self.plain(&hazards, resolved);
                for (finding, hazard) in verdict.findings.iter_mut().zip(&hazards) {
                    if !ratchet::is_new(hazard, &before) && finding.action == Action::Deny {
                        finding.action = Action::Warn;
                    }
                }
                verdict
            },
        )
    }

    fn scale(&self, scale: &Scale) -> Verdict {
        let Some(kind) = self.review.scaled else {
            return Verdict::default();
        };
        let metadata = &scale.metadata;
        let Lookup::Found(workload) =
            self.world
                .view
                .workload(kind, &metadata.namespace, &metadata.name)
        else {
            return Verdict::default();
        };
        // The request knows better than a cache how many replicas there are.
        let current = match self.review.old {
            Some(Object::Scale(old)) => Workload {
                replicas: old.replicas,
                ..Workload::clone(&workload)
            },
            _ => Workload::clone(&workload),
        };
        let hazards = self.scaled(&current, scale.replicas, None);
        if hazards.is_empty() {
            return Verdict::default();
        }
        self.with_policy(&workload.metadata, workload.kind.name(), |resolved| {
            self.plain(&hazards, resolved)
        })
    }

    /// What comes of `replicas` pods of `workload`.
    fn scaled(
        &self,
        workload: &Workload,
        replicas: i64,
        autoscaler: Option<&Autoscaler>,
    ) -> Vec<Hazard> {
        let scaled = Workload {
            replicas,
            ..workload.clone()
        };
        judge(&Subject::Scaled {
            situation: Situation::of(&scaled, None, self.world),
            before: workload.replicas,
            autoscaler,
        })
    }

    /// Decides about hazards of an object that no remedy is for.
    fn plain(&self, hazards: &[Hazard], resolved: &Resolved<'_>) -> Verdict {
        let findings = hazards
            .iter()
            .map(|hazard| {
                let decision = resolved.decide(hazard.rule, hazard.outcome);
                let mut finding = Finding::new(
                    hazard,
                    self.review.reference,
                    match decision.action {
                        Action::Fix => decision.without_remedy,
                        other => other,
                    },
                );
                finding.suppressed = decision.suppressed.map(reason);
                finding
            })
            .collect();
        Verdict {
            findings,
            ..Verdict::default()
        }
    }

    /// Gathers what the policy says of an object, lets `decide` use it, and adds
    /// what the policy has to tell.
    fn with_policy(
        &self,
        metadata: &Metadata,
        kind: &str,
        decide: impl FnOnce(&Resolved<'_>) -> Verdict,
    ) -> Verdict {
        let namespace = self.world.view.namespace(&metadata.namespace).found();
        let shown = metadata.shown_name();
        let scope = Scope {
            namespace: &metadata.namespace,
            namespace_labels: namespace.as_ref().map(|it| &it.metadata.labels),
            namespace_annotations: namespace.as_ref().map(|it| &it.metadata.annotations),
            kind,
            name: &shown,
            annotations: &metadata.annotations,
            controlled: metadata.controller.is_some(),
        };
        let resolved = self.policy.resolve(&scope);
        let mut verdict = decide(&resolved);
        verdict.notices.extend(
            resolved
                .notices()
                .iter()
                .map(|notice| finding::shortened(notice.to_string())),
        );
        verdict
    }
}

fn reason(suppression: Suppression<'_>) -> String {
    match suppression.by {
        SuppressedBy::Exemption { line } => {
            format!("{} (policy, line {line})", suppression.reason)
        }
        SuppressedBy::Namespace => format!("{} (namespace)", suppression.reason),
        SuppressedBy::Object => suppression.reason.to_owned(),
    }
}
