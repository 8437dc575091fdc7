//! Decides the action on a finding.

use std::fmt;

use jiff::Timestamp;

use super::action::{Action, Controlled, Overrides, RemedyChoice, Strictness};
use super::overrides::{Honoured, OverrideSource, PassedOver};
use super::{Policy, Section, at_most, built_in};
use crate::analysis::Certainty;
use crate::model::labels::Labels;
use crate::model::metadata::Metadata;
use crate::model::words::cut;
use crate::rules::{Hazard, Outcome};

/// The object a decision is about.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The namespace; empty for an object that has none.
    pub namespace: &'a str,
    /// The Namespace's labels and annotations; `None` if the Namespace is not known.
    pub namespace_metadata: Option<&'a Metadata>,
    /// The kind, `Deployment` for example.
    pub kind: &'a str,
    /// The name, or the `generateName` of an object that has no name yet.
    pub name: &'a str,
    /// The object's annotations.
    pub annotations: &'a Labels,
    /// Whether an owner reference of the object is its controller.
    pub controlled: bool,
    /// The time, for overrides that end; `None` if it is unknown, as for files.
    pub now: Option<Timestamp>,
}

/// The decision about one finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directive {
    /// The action.
    pub action: Action,
    /// The action if `action` is [`Action::Fix`] and no remedy helps; else the same as `action`.
    pub without_remedy: Action,
    /// The remedy to use.
    pub remedy: RemedyChoice,
    /// The suppression of this finding; `action` is then [`Action::Ignore`].
    pub suppressed: Option<Suppressed>,
    /// The annotation, label or owner that lowered `action` below the policy file.
    pub lowered: Option<Suppressed>,
}

/// The setting that silences a finding, or lowers its action below the policy file. Displayed as
/// the reason and the place of the setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppressed {
    /// The place of the setting.
    pub by: SuppressedBy,
    /// The reason as written there, cut if it is too long; empty only if a Namespace or an owner
    /// lowers the action.
    pub reason: String,
}

/// The most characters of a reason that are kept: it is shown with every finding, and logged.
const LONGEST_REASON: usize = 300;

impl Suppressed {
    pub(super) fn new(by: SuppressedBy, reason: &str) -> Self {
        let reason = cut(reason, LONGEST_REASON);
        Self { by, reason }
    }
}

impl fmt::Display for Suppressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match self.by {
            SuppressedBy::Exemption { line } => write!(f, " (policy, line {line})"),
            SuppressedBy::Namespace if self.reason.is_empty() => f.write_str("namespace"),
            SuppressedBy::Namespace => f.write_str(" (namespace)"),
            SuppressedBy::Owner => f.write_str("its owner"),
            SuppressedBy::Object => Ok(()),
        }
    }
}

/// The place of a setting that silences a finding, or lowers its action below the policy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuppressedBy {
    /// An exemption of the policy file.
    Exemption {
        /// The line where it begins, counted from 1.
        line: u64,
    },
    /// The Namespace.
    Namespace,
    /// The controller that owns the object. The reason is empty.
    Owner,
    /// The object itself.
    Object,
}

impl Policy {
    /// Gathers everything that applies to one object, to decide about its findings.
    pub fn resolve<'a>(&'a self, target: &Target<'a>) -> Resolved<'a> {
        let mut passed_over = Vec::new();
        let (entry, possible) = self.sections(target);
        if !possible.is_empty() {
            passed_over.push(PassedOver {
                source: OverrideSource::Object,
                why: format!(
                    "The labels of namespace {} are not known: where policy entries ask for labels, the strictest holds.",
                    target.namespace
                ),
                ends_override: false,
            });
        }
        let overrides = possible
            .iter()
            .copied()
            .chain([entry])
            .filter_map(|section| self.setting(section, |settings| settings.overrides))
            .max()
            .unwrap_or(Overrides::Allow);
        let object_may_override = overrides == Overrides::Allow;
        let namespace_may = overrides != Overrides::Forbid;
        let mut read =
            |source, is_allowed| Honoured::read(source, target, is_allowed, &mut passed_over);
        let object = read(OverrideSource::Object, object_may_override);
        let namespace = read(OverrideSource::Namespace(target.namespace), namespace_may);
        Resolved {
            policy: self,
            target: *target,
            entry,
            possible,
            object,
            namespace,
            object_may_override,
            passed_over,
        }
    }

    /// The value in the section, or else in the defaults.
    fn setting<T>(&self, section: &Section, get: impl Fn(&Section) -> Option<T>) -> Option<T> {
        get(section).or_else(|| get(&self.defaults))
    }

    /// The section of the first namespace entry that matches, or else the defaults, and the
    /// sections before it that may match, depending on labels that are not known.
    fn sections(&self, target: &Target<'_>) -> (&Section, Vec<&Section>) {
        let mut possible = Vec::new();
        let sure = self.namespaces.iter().find(|entry| {
            let matches = entry.namespaces.matches(target);
            if matches.is_none() {
                possible.push(&entry.section);
            }
            matches == Some(true)
        });
        let entry = sure.map_or(&self.defaults, |entry| &entry.section);
        (entry, possible)
    }
}

/// A policy, seen from one object.
#[derive(Clone, Debug)]
pub struct Resolved<'a> {
    policy: &'a Policy,
    target: Target<'a>,
    entry: &'a Section,
    /// The sections that may apply in its place: the strictest of all is used.
    possible: Vec<&'a Section>,
    object: Honoured<'a>,
    namespace: Honoured<'a>,
    /// Whether annotations of the object may override the policy.
    pub(crate) object_may_override: bool,
    passed_over: Vec<PassedOver<'a>>,
}

impl<'a> Resolved<'a> {
    /// The overrides that are not honoured. Show them with the findings.
    pub fn passed_over(&self) -> &[PassedOver<'a>] {
        &self.passed_over
    }

    /// Decides about the finding of a hazard.
    pub(crate) fn decide(&self, hazard: &Hazard) -> Directive {
        self.decide_as(hazard, |section| {
            self.policy
                .setting(section, |settings| settings.action(hazard))
                .unwrap_or(built_in(hazard.outcome))
        })
    }

    /// Decides about an object that is too complex to judge because it is larger than any real one.
    pub(crate) fn decide_oversized(&self, hazard: &Hazard) -> Directive {
        self.decide_as(hazard, |section| {
            match self.policy.setting(section, |settings| settings.too_complex) {
                Some(Strictness::Warn) => Action::Warn,
                Some(Strictness::Deny) | None => Action::Deny,
            }
        })
    }

    /// Decides about the finding of a hazard for which the policy file has the action `in_file`.
    fn decide_as(&self, hazard: &Hazard, in_file: impl Fn(&Section) -> Action) -> Directive {
        let outcome = hazard.outcome;
        let suppressed = self.suppression(hazard.rule);
        let asked = self.asked(outcome);
        let decide = |requested: Option<Action>, controlled: bool| {
            self.strictest(|section| {
                // An unknown outcome is never certain, so only the outcome limits the action.
                let at_most = match outcome {
                    Outcome::Unknown => Action::Deny,
                    _ => self.at_most(section, hazard.certainty),
                };
                let action = requested.unwrap_or_else(|| in_file(section));
                let action = if controlled { self.softened(section, action) } else { action };
                (action.max(at_most), at_most)
            })
        };
        let requested = asked.as_ref().map(|(action, _)| *action);
        let controlled = self.target.controlled;
        let (decided, at_most) = decide(requested, controlled);
        let lowered = asked
            .filter(|_| decided > decide(None, controlled).0)
            .map(|(_, by)| by)
            .or_else(|| {
                let by_owner = controlled && decided > decide(requested, false).0;
                by_owner.then(|| Suppressed::new(SuppressedBy::Owner, ""))
            })
            .filter(|_| suppressed.is_none());
        let action = suppressed.as_ref().map_or(decided, |_| Action::Ignore);
        Directive {
            action,
            without_remedy: action.without_remedy(outcome).max(at_most),
            remedy: self.remedy(),
            suppressed,
            lowered,
        }
    }

    fn suppression(&self, rule: &str) -> Option<Suppressed> {
        if let Some(exemption) =
            self.policy.exemptions.iter().find(|exemption| exemption.covers(&self.target, rule))
        {
            let line = exemption.line;
            let by = SuppressedBy::Exemption { line };
            return Some(Suppressed::new(by, &exemption.reason));
        }
        let silent = |honoured: &Honoured<'a>| {
            honoured.ignores(rule) || honoured.action == Some(Action::Ignore)
        };
        // An object that asks for anything but silence outranks its Namespace's silence.
        if silent(&self.object) {
            Some(self.object.suppression(SuppressedBy::Object))
        } else if self.namespace.ignores(rule)
            || (self.object.action.is_none() && silent(&self.namespace))
        {
            Some(self.namespace.suppression(SuppressedBy::Namespace))
        } else {
            None
        }
    }

    /// The action that the object or else its Namespace asks for, with its source.
    fn asked(&self, outcome: Outcome) -> Option<(Action, Suppressed)> {
        let of = |honoured: &Honoured<'a>, by| Some((honoured.action?, honoured.suppression(by)));
        of(&self.object, SuppressedBy::Object)
            .or_else(|| of(&self.namespace, SuppressedBy::Namespace))
            // One word for all findings is not meant to refuse an object only because a look-up
            // failed; only the file can ask for that.
            .filter(|(action, _)| outcome != Outcome::Unknown || *action == Action::Warn)
    }

    /// The strictest action that is allowed for findings of that certainty.
    fn at_most(&self, section: &Section, certainty: Certainty) -> Action {
        self.policy
            .setting(section, |settings| settings.certainty.get(&certainty).copied())
            .unwrap_or(at_most(certainty))
    }

    /// The treatment of an update that starts a rollout and did not cause the fault.
    pub fn existing(&self) -> Strictness {
        self.strictest(|section| {
            self.policy.setting(section, |settings| settings.existing).unwrap_or_default()
        })
    }

    /// The strictest, which is the least, of the values in the sections that may apply.
    fn strictest<T: Ord>(&self, said_in: impl Fn(&Section) -> T) -> T {
        self.possible.iter().map(|section| said_in(section)).fold(said_in(self.entry), Ord::min)
    }

    /// Lowers a denial or a fix to a warning for an object with a controller, which would undo a
    /// fix and retry a refused object forever.
    fn softened(&self, section: &Section, action: Action) -> Action {
        let controlled = self.policy.setting(section, |settings| settings.controlled);
        match action {
            Action::Deny | Action::Fix if controlled != Some(Controlled::Judge) => Action::Warn,
            action => action,
        }
    }

    fn remedy(&self) -> RemedyChoice {
        self.object
            .remedy
            .or(self.namespace.remedy)
            .or_else(|| self.policy.setting(self.entry, |settings| settings.remedy))
            .unwrap_or_default()
    }
}
