//! Judging a workload, and repairing it.

use std::borrow::Cow;
use std::cell::{LazyCell, OnceCell};

use jiff::{SignedDuration, Timestamp};

use super::existing_violations::{is_a_step, is_new, starts_a_rollout};
use super::repair::Judged;
use super::scaling::{as_judged, is_stopped};
use super::ship_now::ShipNow;
use super::{Evaluation, Finding, Mode, Proposal, Review, Verdict, denial, operators};
use crate::analysis::Analysis;
use crate::model::metadata::Controller;
use crate::model::object::{Object, ObjectRef};
use crate::model::uid::Uid;
use crate::model::workload::{Workload, WorkloadKind};
use crate::policy::keys::{ACTION, REASON, UNTIL, WHY_NOW};
use crate::policy::{Action, Directive, RemedyChoice, Resolved, Strictness};
use crate::remedy::applied::{Applied, states_strategy};
use crate::rules::{
    Certainty, Hazard, Outcome, RECREATE_OR_ZERO_SURGE, codes, judge_workload, recreate_once,
    supposed,
};

impl Evaluation<'_> {
    pub(super) fn workload(&self, workload: &Workload) -> Option<Verdict> {
        let view = self.facts.view;
        if self.is_judged_in_owner(workload) {
            return None;
        }
        let judged = as_judged(view.with_template(workload)?, self.facts);
        let mut previous = match self.review.old {
            Some(Object::Workload(old)) => view.with_template(old),
            _ => None,
        };
        if let Some(old) = previous.as_mut().filter(|_| workload.replicas == 0) {
            // The pods that the update removes meet no new ones.
            old.to_mut().replicas = 0;
        }
        let previous = previous.as_deref();
        let analysis = Analysis::of(&judged, previous, self.facts);
        let mut hazards = judge_workload(&analysis);
        if matches!(self.review.mode, Mode::Admit | Mode::Judge) {
            // The API server reports it itself, and knows its own feature gates.
            hazards.retain(|hazard| hazard.rule != codes::UNSUPPORTED_STRATEGY);
        }
        let unseen = analysis.unseen_claims();
        if hazards.is_empty() {
            return Some(Verdict { notices: vec![unseen?], ..Verdict::default() });
        }
        let existing = previous
            .map(|old| self.existing(workload, &analysis, old, &hazards))
            .unwrap_or_default();
        let (metadata, kind) = (&workload.metadata, workload.kind.name());
        let controlled = self.owner_is_real(metadata);
        let mut verdict = self.with_policy(metadata, kind, controlled, |resolved| {
            let decisions = Decisions {
                resolved,
                existing: &existing,
                mode: self.review.mode,
                owner: metadata.controller.as_deref().filter(|_| controlled),
                keeps_unknown_owner: self.keeps_unknown_owner(metadata),
                ship_now: OnceCell::new(),
            };
            self.findings_in_mode(&judged, previous, hazards, &decisions)
        });
        if self.review.document.requester().is_some() {
            // Who follows a denial's advice is not warned at every write.
            verdict.findings.retain(|finding| finding.advised_delay(&judged).is_none());
        }
        verdict.notices.extend(unseen);
        Some(verdict)
    }

    /// The answer that the mode asks for: the findings, with remedies or with a patch.
    fn findings_in_mode(
        &self,
        workload: &Workload,
        previous: Option<&Workload>,
        hazards: Vec<Hazard>,
        decisions: &Decisions<'_>,
    ) -> Verdict {
        let mode = self.review.mode;
        let document = match mode {
            Mode::Judge => None,
            Mode::Admit
                if !hazards.iter().any(|hazard| decisions.of(hazard).action == Action::Fix) =>
            {
                None
            }
            Mode::Admit | Mode::Propose | Mode::Repair { .. } => self.review.document.object(),
        };
        let Some(document) = document else {
            return self.judged(&hazards, decisions);
        };
        let judged = Judged {
            workload: Cow::Borrowed(workload),
            document: Cow::Borrowed(document),
            hazards,
            previous,
            applied: match mode {
                // The patch replaces the whole strategy before it reaches the server.
                Mode::Admit => Applied::Unsaid,
                _ => self.applied(),
            },
            facts: self.facts,
        };
        if mode == Mode::Propose {
            self.proposed(&judged, decisions)
        } else {
            self.repaired(judged, decisions)
        }
    }

    /// The hazards that the update from `old` does not cause: they existed in full before it.
    fn existing(
        &self,
        workload: &Workload,
        analysis: &Analysis<'_>,
        old: &Workload,
        hazards: &[Hazard],
    ) -> Vec<Existing> {
        let judged = as_judged(Cow::Borrowed(old), self.facts);
        let mut before = judge_workload(&Analysis::of(&judged, None, self.facts));
        let replicas = analysis.workload.replicas;
        if replicas < old.replicas {
            // Percentages resolve differently for fewer pods; scaling down is not the cause of
            // that.
            let fewer = old.with_replicas(replicas);
            before.extend(judge_workload(&Analysis::of(&fewer, None, self.facts)));
        }
        let rolls = LazyCell::new(|| starts_a_rollout(old, workload, self.review.document));
        hazards
            .iter()
            .filter(|hazard| !is_new(hazard, &before))
            .map(|hazard| Existing {
                hazard: hazard.clone(),
                hits_this_rollout: *rolls && !is_a_step(analysis, old, hazard),
            })
            .collect()
    }

    /// The findings alone.
    fn judged(&self, hazards: &[Hazard], decisions: &Decisions<'_>) -> Verdict {
        hazards
            .iter()
            .map(|hazard| self.finding(hazard, decisions.of(hazard).without_remedy, decisions))
            .collect()
    }

    /// The findings, each with every remedy that helps.
    fn proposed(&self, judged: &Judged<'_>, decisions: &Decisions<'_>) -> Verdict {
        judged
            .hazards
            .iter()
            .map(|hazard| {
                let decision = decisions.of(hazard);
                let remedies = judged.proposals(hazard, decision.remedy);
                let action =
                    if remedies.is_empty() { decision.without_remedy } else { decision.action };
                Finding { remedies, ..self.finding(hazard, action, decisions) }
            })
            .collect()
    }

    /// The findings, and a patch for those that the policy fixes and a remedy cures. The object
    /// is judged again after each repair, which may cure several hazards at once.
    fn repaired(&self, mut judged: Judged<'_>, decisions: &Decisions<'_>) -> Verdict {
        let mut findings = Vec::new();
        while let Some((finding, result)) = judged.hazards.iter().find_map(|hazard| {
            let decision = decisions.of(hazard);
            if decision.action != Action::Fix {
                return None;
            }
            let (proposal, result) = judged.repair(hazard, decision.remedy)?;
            let is_permitted = decisions.permits(&proposal, decision.remedy);
            let object = self.review.reference;
            let finding = || Finding::repaired(hazard, object, decision, proposal);
            is_permitted.then(|| (finding(), result))
        }) {
            findings.push(finding);
            judged = result;
        }
        findings.extend(self.judged(&judged.hazards, decisions).findings);
        let verdict: Verdict = findings.into_iter().collect();
        verdict.with_patch()
    }

    fn finding(&self, hazard: &Hazard, action: Action, decisions: &Decisions<'_>) -> Finding {
        let decision = decisions.of(hazard);
        let existed = decisions.existing(hazard).is_some();
        let hazard = &*self.advised(hazard);
        let mut finding = Finding::decided(hazard, self.review.reference, action, decision);
        if let (Some(owner), Object::Workload(workload)) = (decisions.owner, self.review.object) {
            let advice = operators::advice(owner, workload.kind, &hazard.field_path);
            finding.message.push_str(&advice);
        }
        let (Action::Deny, Object::Workload(workload), Some(Object::Workload(old))) =
            (action, self.review.object, self.review.old)
        else {
            return finding;
        };
        let object = self.review.reference;
        let mut ways = Vec::new();
        if existed {
            finding.message.push_str(EXISTED);
        }
        let ship_now = || self.ship_now(workload, old, decisions);
        if let Some(change) = decisions.ship_now.get_or_init(ship_now) {
            let stated = states_strategy(self.review.document.object());
            let sentence = change.sentence(object, stated);
            finding.message.push_str(&format!(" {sentence}"));
            ways.push(sentence);
            if stated.is_none() {
                // If there is no room for the command, the shorter sentence is used.
                ways.push(change.sentence(object, Some(true)));
            }
        }
        if existed && decisions.resolved.object_may_override {
            let sentence = last_resort(object, self.review.document.moment());
            finding.message.push_str(&format!(" {sentence}"));
            ways.push(sentence);
        }
        if !ways.is_empty() {
            finding.denial = denial::text(object, hazard, &ways);
        }
        finding
    }

    /// The way in which the object is applied. An object that is being created does not exist yet.
    fn applied(&self) -> Applied {
        let Review { old, document, .. } = self.review;
        if old.is_none() && document.requester().is_some() {
            Applied::Unsaid
        } else {
            Applied::of(document.object(), old.is_some())
        }
    }

    /// The hazard with the assumption that the workload has pods, and with advice that the API
    /// server accepts. If the server may refuse Recreate on the live object, zero surge comes first,
    /// with the command that is needed once. If a file does not show how it is applied, the command
    /// is added to the advice.
    fn advised<'h>(&self, hazard: &'h Hazard) -> Cow<'h, Hazard> {
        let mut hazard = Cow::Borrowed(hazard);
        if let Object::Workload(workload) = self.review.object
            && is_stopped(workload, self.facts)
        {
            let hazard = hazard.to_mut();
            hazard.what.push_str(" It has no pods now, and is judged as with one.");
            hazard.brief = supposed(&hazard.brief, "once it has pods");
        }
        let applied = self.applied();
        // The API server gives an object its uid when it stores it.
        let is_file = applied == Applied::Unsaid
            && self.review.document.requester().is_none()
            && self.review.object.metadata().uid == Uid::default();
        if !hazard.advice.contains(RECREATE) || !(applied.may_refuse_recreate() || is_file) {
            return hazard;
        }
        let object = self.review.reference;
        let once =
            recreate_once(WorkloadKind::Deployment, object.namespace.as_deref(), &object.name);
        let advice = if hazard.advice.contains(RECREATE_OR_ZERO_SURGE) && !is_file {
            let zero_surge = format!(
                "Set spec.strategy to RollingUpdate with maxSurge 0 and maxUnavailable 1, or to Recreate (once by {once}, as server-side apply is refused over the live object)"
            );
            hazard.advice.replace(RECREATE_OR_ZERO_SURGE, &zero_surge)
        } else {
            format!(
                "{} If it is live and server-side apply refuses Recreate, run {once} once.",
                hazard.advice,
            )
        };
        Cow::Owned(Hazard { advice, ..hazard.into_owned() })
    }
}

/// The beginning of advice to use Recreate.
const RECREATE: &str = "Set spec.strategy to Recreate";

/// The reason for which an update is denied although it did not cause the hazard.
const EXISTED: &str = " The object had this fault before your change; your change starts a rollout, which would hang.";

/// The command that gets an update past an existing violation: an override that expires.
fn last_resort(object: &ObjectRef, now: Option<Timestamp>) -> String {
    let until = now
        .and_then(|now| now.checked_add(SignedDuration::from_hours(24)).ok())
        .map(|tomorrow| format!(" {UNTIL}={}", tomorrow.strftime("%F")))
        .unwrap_or_default();
    let namespace = object.namespace.as_deref().unwrap_or_default();
    let (kind, name) = (object.kind.to_lowercase(), &object.name);
    format!(
        "Last resort (the rollout may hang): `kubectl -n {namespace} annotate {kind} {name} {ACTION}=warn{until} {REASON}=\"{WHY_NOW}\"`, then repeat your change."
    )
}

/// A hazard that existed in full before the update.
struct Existing {
    hazard: Hazard,
    /// Whether it affects the rollout that the update starts.
    hits_this_rollout: bool,
}

/// The policy's decisions about the hazards of one workload.
pub(super) struct Decisions<'a> {
    resolved: &'a Resolved<'a>,
    existing: &'a [Existing],
    mode: Mode,
    /// The controller that owns the workload.
    owner: Option<&'a Controller>,
    /// Whether the owner may be one and excuses the faults that were there before.
    keeps_unknown_owner: bool,
    /// The command after which the update passes; computed on first use.
    ship_now: OnceCell<Option<&'static ShipNow>>,
}

impl Decisions<'_> {
    /// Whether a remedy that `choice` led to may be applied. Putting several pods on one node is a
    /// decision that `check --fix` does not make by itself.
    fn permits(&self, proposal: &Proposal, choice: RemedyChoice) -> bool {
        choice != RemedyChoice::Auto
            || !matches!(self.mode, Mode::Repair { .. })
            || proposal.remedy.name != RemedyChoice::Colocate.name()
    }

    /// The entry for `hazard`, if it existed before.
    fn existing(&self, hazard: &Hazard) -> Option<&Existing> {
        self.existing.iter().find(|entry| entry.hazard == *hazard)
    }

    pub(super) fn of(&self, hazard: &Hazard) -> Directive {
        let mut decision = self.resolved.decide(hazard);
        let existing = self.existing(hazard);
        let is_excused = self.keeps_unknown_owner && self.resolved.object_may_override;
        if existing.is_some_and(|existing| is_excused || !existing.hits_this_rollout) {
            decision.action = decision.action.max(Action::Warn);
            decision.without_remedy = decision.without_remedy.max(Action::Warn);
            decision.lowered = None;
            return decision;
        }
        if existing.is_some() && self.resolved.existing() == Strictness::Warn {
            for action in [&mut decision.action, &mut decision.without_remedy] {
                if *action == Action::Deny {
                    *action = Action::Warn;
                }
            }
            decision.lowered = None;
        }
        if let Mode::Repair { remedy } = self.mode {
            let repairs_guess = decision.action == Action::Warn
                && hazard.certainty == Certainty::Assumed
                && hazard.outcome != Outcome::Delay
                && decision.lowered.is_none()
                && remedy.is_some_and(RemedyChoice::suits_every_class);
            if decision.action == Action::Deny || repairs_guess {
                decision.action = Action::Fix;
            }
            decision.remedy = remedy.unwrap_or(decision.remedy);
        }
        decision
    }
}
