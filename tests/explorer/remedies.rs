//! Applies the remedies that the engine proposes to configurations and checks their promises.

use std::collections::BTreeMap;

use engine::policy::Action;
use engine::rules::codes;
use engine::verdict::Mode;
use json_patch::Patch;

use crate::agreement::{Comparison, Said, compare, said};
use crate::configuration::Configuration;
use crate::engine::{Engine, WorkloadDocument};
use crate::explore::{Outcome, Start, change};
use crate::reading;
use crate::survey::Survey;

/// The name under which [`Trial`] counts the repair of everything at once, by the remedies that the
/// engine chooses.
pub(crate) const AUTO: &str = "auto";

/// The remedies that were tried, and the promises that were broken.
#[derive(Default)]
pub(crate) struct Trial {
    /// The number of times that each remedy was proposed and checked.
    pub(crate) tried: BTreeMap<&'static str, usize>,
    pub(crate) broken: Vec<String>,
}

/// A remedy applied to a configuration.
struct Treatment<'a> {
    name: &'static str,
    before: &'a Configuration,
    after: Configuration,
    /// The workloads; the one with the index `at` is patched.
    documents: Vec<WorkloadDocument>,
    at: usize,
    /// The findings that remain, according to the remedy.
    promised: Vec<Said>,
}

impl Trial {
    pub(crate) fn add(&mut self, other: Self) {
        for (name, count) in other.tried {
            *self.tried.entry(name).or_default() += count;
        }
        self.broken.extend(other.broken);
    }

    /// Tries every remedy that the engine proposes for the configuration, and its repair.
    ///
    /// If pods cannot be placed even without the volume, the engine promises nothing.
    pub(crate) fn of(
        &mut self,
        engine: &mut Engine,
        configuration: &Configuration,
        survey: &Survey,
    ) {
        let documents = engine.documents(configuration);
        for (at, document) in documents.iter().enumerate() {
            assert_eq!(
                reading::workload(&document.manifest, at, configuration),
                configuration.written(at),
                "what is written is read back"
            );
        }
        let proposed = engine.judge(configuration, &documents, Mode::Propose);
        let before: Vec<Said> = proposed.iter().map(said).collect();
        if before.iter().all(Vec::is_empty)
            || compare(configuration, &before, survey) == Comparison::Unplaceable
        {
            return;
        }
        let mut any = false;
        for (at, verdict) in proposed.iter().enumerate() {
            let proposals = verdict.findings.iter().flat_map(|finding| &finding.remedies);
            let patches: BTreeMap<&'static str, &Patch> =
                proposals.map(|proposal| (proposal.remedy.name, &proposal.patch)).collect();
            for (name, patch) in patches {
                any = true;
                let mut promised = before.clone();
                promised[at].retain_mut(|finding| is_left(finding, name));
                let treatment = Treatment::of(name, configuration, &documents, at, patch, promised);
                self.check(engine, &treatment, survey);
            }
        }
        // The engine chooses only from the proposed remedies.
        if !any {
            return;
        }
        let repaired = engine.judge(configuration, &documents, Mode::Repair { remedy: None });
        for (at, verdict) in repaired.iter().enumerate() {
            let Some(patch) = &verdict.patch else {
                continue;
            };
            let mut promised = before.clone();
            promised[at] = verdict
                .findings
                .iter()
                .zip(said(verdict))
                .filter(|(finding, _)| finding.action != Action::Fix)
                .map(|(_, said)| said)
                .collect();
            let treatment = Treatment::of(AUTO, configuration, &documents, at, patch, promised);
            self.check(engine, &treatment, survey);
        }
    }

    fn check(&mut self, engine: &mut Engine, treatment: &Treatment<'_>, survey: &Survey) {
        let name = treatment.name;
        *self.tried.entry(name).or_default() += 1;
        let (after, documents) = (&treatment.after, &treatment.documents);
        let found: Vec<Said> =
            engine.judge(after, documents, Mode::Judge).iter().map(said).collect();
        let comparison = compare(after, &found, survey);
        let mut is_repaired_again = || {
            let again = engine.judge(after, documents, Mode::Repair { remedy: None });
            again[treatment.at].patch.is_some()
        };
        let broken = if comparison != Comparison::Agrees {
            Some(format!("the model finds otherwise ({comparison:?})"))
        } else if !is_kept(&treatment.promised, &found) {
            Some(format!("{:?} was promised", treatment.promised))
        } else if name == AUTO && is_repaired_again() {
            Some("a second pass changes something".to_owned())
        } else {
            broken_in_passing(treatment, survey)
        };
        if let Some(broken) = broken {
            self.broken.push(format!(
                "{name}: {broken}, {found:?}, {:?}: {:?}",
                survey.worst(&treatment.after),
                treatment.before
            ));
        }
    }
}

impl<'a> Treatment<'a> {
    fn of(
        name: &'static str,
        before: &'a Configuration,
        documents: &[WorkloadDocument],
        at: usize,
        patch: &Patch,
        promised: Vec<Said>,
    ) -> Self {
        let mut documents = documents.to_vec();
        let mut manifest = documents[at].manifest.clone();
        json_patch::patch(&mut manifest, patch).unwrap();
        let mut after = before.clone();
        after.workloads[at] = reading::workload(&manifest, at, before);
        documents[at] = WorkloadDocument::of(manifest);
        Self { name, before, after, documents, at, promised }
    }
}

/// Whether the engine finds in the patched objects what was promised. A workload that shares the
/// volume with another may be better off than promised, for example because the other one follows
/// it.
fn is_kept(promised: &[Said], found: &[Said]) -> bool {
    let covers = |all: &[Said], some: &[Said]| {
        all.iter().zip(some).all(|(more, less)| less.iter().all(|finding| more.contains(finding)))
    };
    covers(promised, found) && (promised.len() > 1 || covers(found, promised))
}

/// The problem that occurs while the remedy is applied in a state in which all is well, or in a
/// rollout that hangs.
fn broken_in_passing(treatment: &Treatment<'_>, survey: &Survey) -> Option<String> {
    let (before, after) = (treatment.before, &treatment.after);
    let [promised] = &treatment.promised[..] else {
        return None;
    };
    let promised = promised.iter().map(|(_, outcome)| *outcome).max().unwrap_or(Outcome::None);
    if promised >= Outcome::Stuck || !before.workloads[0].kind.rolls_out() {
        return None;
    }
    let worst = survey.worst(before);
    if worst.first < Outcome::Stuck {
        let outcome = change(before, after, Start::Well)?;
        if outcome > promised {
            return Some(format!("put in place, it brings {outcome:?}"));
        }
    }
    let keeps_the_template = before.workloads[0].affinity == after.workloads[0].affinity;
    if keeps_the_template && worst.outcome() == Outcome::Deadlock {
        let outcome = change(before, after, Start::Trapped)?;
        if outcome > Outcome::Delay {
            return Some(format!("in a rollout that hangs, it brings {outcome:?}"));
        }
    }
    None
}

/// Whether a finding remains after the remedy, and with which outcome, according to the remedy's
/// own description.
fn is_left((rule, outcome): &mut (&'static str, Outcome), remedy: &str) -> bool {
    let is_deadlock = *outcome == Outcome::Deadlock;
    match (remedy, *rule) {
        ("zero-surge", codes::ROLLING_UPDATE_OVERLAP) => {
            *outcome = Outcome::Delay;
            true
        }
        ("recreate", codes::ROLLING_UPDATE_OVERLAP)
        | ("colocate", codes::ROLLING_UPDATE_OVERLAP | codes::REPLICAS_SHARE_VOLUME) => false,
        ("recreate" | "zero-surge", codes::SINGLE_POD_VOLUME | codes::CO_LOCATION_IMPOSSIBLE) => {
            !is_deadlock
        }
        _ => true,
    }
}
