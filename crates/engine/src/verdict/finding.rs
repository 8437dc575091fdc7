//! A finding: the part of a verdict that is about one hazard.

use json_patch::Patch;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::denial;
use crate::model::Text;
use crate::model::object::ObjectRef;
use crate::model::words::cut;
use crate::model::workload::Workload;
use crate::policy::{Action, Directive, Suppressed};
use crate::remedy::Remedy;
use crate::rules::{Certainty, Hazard, Outcome, codes, supposed};

/// Warnings are cut to this many characters, as the Kubernetes documentation on admission webhooks
/// recommends.
pub const WARNING_LENGTH: usize = 120;

/// The change that keeps two workloads together, in a few words.
const BOTH: &str = "keep both on one node";

/// A hazard with its action, its message and its remedies.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule's public name.
    pub rule: &'static str,
    /// The outcome if nobody intervenes.
    pub outcome: Outcome,
    /// The certainty of the finding.
    pub certainty: Certainty,
    /// The action that is taken.
    pub action: Action,
    /// The object at fault.
    pub object: ObjectRef,
    /// The field at fault, `spec.strategy` for example.
    pub field_path: String,
    /// The claims and volumes concerned, by name.
    pub volumes: Vec<Text>,
    /// The object, the fact seen, the consequence and what to do: full sentences.
    pub message: String,
    /// The message in a few words.
    pub brief: String,
    /// The first step of the advice, as a sentence.
    pub step: String,
    /// The text of a denial: the cause, one thing to do, and where to read more. Empty if the
    /// action is not to deny.
    pub denial: String,
    /// The remedies that help, the one that the policy chooses first. Filled only in
    /// [`Mode::Propose`](super::Mode::Propose) and for findings that were fixed.
    pub remedies: Vec<Proposal>,
    /// The annotation or exemption because of which it is ignored, if there is one.
    pub suppressed: Option<Suppressed>,
    /// The annotation that lowers the policy's action to a warning, if there is one.
    pub lowered: Option<Suppressed>,
}

/// A remedy that was tried on the object and helps.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The remedy.
    pub remedy: &'static Remedy,
    /// The patch on the object as it was received.
    pub patch: Patch,
}

impl Proposal {
    /// The document with the patch; `None` if the patch does not fit it.
    pub fn applied_to(&self, document: &Value) -> Option<Value> {
        let mut patched = document.clone();
        json_patch::patch(&mut patched, &self.patch).ok()?;
        Some(patched)
    }
}

impl Serialize for Proposal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Proposal", 3)?;
        fields.serialize_field("name", self.remedy.name)?;
        fields.serialize_field("cost", self.remedy.cost)?;
        fields.serialize_field("patch", &self.patch)?;
        fields.end()
    }
}

impl Finding {
    /// The finding for `hazard` on `object`, with the annotation or exemption that lowers the
    /// policy's action.
    pub(super) fn decided(
        hazard: &Hazard,
        object: &ObjectRef,
        action: Action,
        decision: Directive,
    ) -> Self {
        let step = denial::first_step(&hazard.advice);
        Self {
            rule: hazard.rule,
            outcome: hazard.outcome,
            certainty: hazard.certainty,
            action,
            object: object.clone(),
            field_path: hazard.field_path.clone(),
            volumes: hazard.volumes.clone(),
            message: [&object.to_string(), ": ", &hazard.what, " ", &hazard.advice].concat(),
            brief: hazard.brief.clone(),
            denial: match action {
                Action::Deny => denial::text(object, hazard, std::slice::from_ref(&step)),
                _ => String::new(),
            },
            step,
            remedies: Vec::new(),
            suppressed: decision.suppressed,
            lowered: decision.lowered.filter(|_| action == Action::Warn),
        }
    }

    /// The finding for `hazard` on `object`, which `proposal` fixes.
    pub(super) fn repaired(
        hazard: &Hazard,
        object: &ObjectRef,
        decision: Directive,
        proposal: Proposal,
    ) -> Self {
        let remedy = proposal.remedy;
        Self {
            message: format!(
                "{object}: {} To keep that from happening, {}. {}",
                hazard.what, remedy.effect, remedy.cost
            ),
            brief: format!("fixed with {}: {}", remedy.name, remedy.effect),
            remedies: vec![proposal],
            ..Self::decided(hazard, object, Action::Fix, decision)
        }
    }

    /// Makes the finding an assumption: a warning at most, whose first words say what it depends
    /// on.
    pub fn assume(&mut self, condition: &str) {
        self.certainty = Certainty::Assumed;
        self.brief = supposed(&self.brief, condition);
        self.action = self.action.max(Action::Warn);
    }

    /// Warns at most, whatever annotations say.
    pub(super) fn only_warn(&mut self) {
        self.action = self.action.max(Action::Warn);
        self.lowered = None;
    }

    /// The notice that takes its place if `workload` waits at every rollout because it follows our
    /// advice: a rolling update without surge.
    pub fn advised_delay(&self, workload: &Workload) -> Option<String> {
        let is_advised = self.rule == codes::ROLLING_UPDATE_OVERLAP
            && self.outcome == Outcome::Delay
            && self.action == Action::Warn
            && workload.rolls_without_surge();
        is_advised.then(|| format!("With maxSurge: 0, as chosen here: {}", self.statement()))
    }

    /// Its message without the object, which a notice names already.
    pub fn statement(&self) -> &str {
        self.message.strip_prefix(&format!("{}: ", self.object)).unwrap_or(&self.message)
    }

    /// Whether its remedies change the pod template.
    pub fn patches_template(&self) -> bool {
        self.remedies
            .iter()
            .flat_map(|proposal| proposal.patch.iter())
            .any(|operation| operation.path().as_str().starts_with("/spec/template"))
    }

    /// The rule, the object, the cause and the one change, on one line of at most
    /// [`WARNING_LENGTH`] characters. If there is no room for all, the cause is left out, because
    /// the rule names it too; its condition stays, so that a guess is marked as one.
    pub fn warning(&self) -> String {
        let ObjectRef { kind, name, .. } = &self.object;
        let object = format!("{kind} {name}");
        let (cause, rest) = self.brief.split_once("; ").unwrap_or((&self.brief, ""));
        let line = |text: String| {
            if text.to_lowercase().contains(&object.to_lowercase()) {
                format!("{}: {text}", self.rule)
            } else {
                format!("{}: {object}: {text}", self.rule)
            }
        };
        let condition = match cause.find(" (").filter(|_| cause.ends_with(')')) {
            Some(at) if self.certainty != Certainty::Verified => &cause[at..],
            _ => "",
        };
        let changes = match self.action {
            // The change has been made already.
            Action::Fix => Vec::new(),
            _ => self.changes(rest),
        };
        let whole = changes.iter().map(|change| format!("{cause}; {change}"));
        let alone = changes
            .iter()
            .map(|change| format!("{change}{condition}"))
            // If the outcome is unknown, the rule does not name the cause; "both" would be nobody.
            .filter(|change| self.outcome != Outcome::Unknown && !change.starts_with(BOTH));
        let fitting = whole
            .chain(alone)
            .chain(std::iter::once_with(|| self.brief.clone()))
            .map(line)
            .find(|text| text.chars().count() <= WARNING_LENGTH);
        shortened(&fitting.unwrap_or_else(|| line(cause.to_owned())))
    }

    /// The first step of the advice as a part of a sentence.
    pub fn change(&self) -> String {
        let step = self.step.trim_end_matches('.');
        let mut letters = step.chars();
        let first = letters.next().into_iter().flat_map(char::to_lowercase);
        first.chain(letters).collect()
    }

    /// The change in several wordings, each a part of a sentence: `brief`, if it is an instruction,
    /// and the first step of the advice in full, without its details, and in a few words.
    fn changes(&self, brief: &str) -> Vec<String> {
        const IMPERATIVE: &[&str] =
            &["use ", "set ", "change ", "back up", "keep ", "check ", "describe "];
        let is_change = IMPERATIVE.iter().any(|verb| brief.starts_with(verb));
        let step = self.change();
        let end = step.find(", so that").unwrap_or(step.len());
        let plain = denial::without_asides(&step[..end]).replace(" on kubernetes.io/hostname", "");
        let short = [
            ("pod affinity", "podAffinity"),
            ("podAffinity", "podAffinity"),
            ("give both one nodeSelector", "nodeSelector"),
        ]
        .into_iter()
        .find_map(|(words, field)| step.contains(words).then(|| format!("{BOTH} ({field})")));
        let steps = [step, plain].into_iter().filter(|wording| !wording.is_empty());
        is_change.then(|| brief.to_owned()).into_iter().chain(steps).chain(short).collect()
    }
}

/// The text on one line and no longer than [`WARNING_LENGTH`] characters.
pub fn shortened(text: &str) -> String {
    cut(&text.replace(char::is_control, " "), WARNING_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_one_short_line() {
        assert_eq!(shortened("fine"), "fine");
        assert_eq!(shortened("two\nlines"), "two lines");
        let long = shortened(&"ü".repeat(500));
        assert_eq!(long.chars().count(), WARNING_LENGTH);
        assert!(long.ends_with('…'));
    }
}
