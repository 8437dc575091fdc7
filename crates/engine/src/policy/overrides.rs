//! What objects and Namespaces say for themselves.

use std::fmt;

use super::action::{Action, RemedyChoice};
use super::error::list;
use super::{Target, keys};
use crate::model::labels::Labels;
use crate::rules::codes;

/// Characters of a reason that are kept.
const LONGEST_REASON: usize = 300;

/// Names in an `ignore` list that are no rules, and told.
const MOST_UNKNOWN: usize = 16;

/// Where an override stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverrideSource<'a> {
    /// An annotation of the object itself.
    Object,
    /// A label or annotation of this Namespace.
    Namespace(&'a str),
}

/// An override that is not honoured, and why: a sentence to warn with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PassedOver<'a> {
    /// The policy file does not allow overrides from there.
    Forbidden {
        /// Where the override stands.
        source: OverrideSource<'a>,
    },
    /// Nothing says why the override is there.
    ReasonMissing {
        /// Where the override stands.
        source: OverrideSource<'a>,
        /// Its key.
        key: &'static str,
    },
    /// The value is none of the words known for the key.
    UnknownValue {
        /// Where the override stands.
        source: OverrideSource<'a>,
        /// Its key.
        key: &'static str,
        /// Its value, as written.
        value: &'a str,
    },
    /// An entry of the `ignore` list is not a rule.
    UnknownRule {
        /// Where the override stands.
        source: OverrideSource<'a>,
        /// The entry, as written.
        rule: &'a str,
    },
    /// The policy chooses namespaces by label, and this one's labels are not known.
    LabelsUnknown {
        /// The namespace.
        namespace: &'a str,
    },
}

impl fmt::Display for OverrideSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object => Ok(()),
            Self::Namespace(name) => write!(f, "Namespace {name}: "),
        }
    }
}

impl fmt::Display for PassedOver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden { source } => write!(
                f,
                "{source}multi-attach-guard.dev keys are ignored: the policy forbids overrides here."
            ),
            Self::ReasonMissing { source, key } => {
                write!(
                    f,
                    "{source}{key} is ignored: add {} to say why.",
                    keys::REASON
                )
            }
            Self::UnknownValue { source, key, value } => {
                let known = if *key == keys::ACTION {
                    list(&Action::ALL.map(Action::name), "or")
                } else {
                    list(&RemedyChoice::ALL.map(RemedyChoice::name), "or")
                };
                write!(f, "{source}{key}: \"{}\" is not {known}.", short(value))
            }
            Self::UnknownRule { source, rule } => {
                write!(
                    f,
                    "{source}{}: there is no rule \"{}\".",
                    keys::IGNORE,
                    short(rule)
                )
            }
            Self::LabelsUnknown { namespace } => write!(
                f,
                "The labels of namespace {namespace} are not known: where policy entries ask for labels, the strictest holds."
            ),
        }
    }
}

/// The beginning of a value that may be of any length.
fn short(value: &str) -> &str {
    match value.char_indices().nth(20) {
        Some((at, _)) => value.get(..at).unwrap_or_default(),
        None => value,
    }
}

/// The overrides of one source that count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Honoured<'a> {
    pub(super) action: Option<Action>,
    pub(super) remedy: Option<RemedyChoice>,
    /// The `ignore` list as written.
    ignore: &'a str,
    /// Empty where none is given and none is needed.
    pub(super) reason: &'a str,
}

impl<'a> Honoured<'a> {
    /// Reads the annotations of the object.
    pub(super) fn of_object(
        target: &Target<'a>,
        allowed: bool,
        passed_over: &mut Vec<PassedOver<'a>>,
    ) -> Self {
        Self::read(
            OverrideSource::Object,
            |key| target.annotations.get(key),
            allowed,
            passed_over,
        )
    }

    /// Reads the annotations of the Namespace and, where there is none of a
    /// key, its labels.
    pub(super) fn of_namespace(
        target: &Target<'a>,
        allowed: bool,
        passed_over: &mut Vec<PassedOver<'a>>,
    ) -> Self {
        let get = |key: &str| {
            let annotation = target.namespace_annotations.and_then(|all| all.get(key));
            annotation.or_else(|| target.namespace_labels.and_then(|all| all.get(key)))
        };
        Self::read(
            OverrideSource::Namespace(target.namespace),
            get,
            allowed,
            passed_over,
        )
    }

    /// Whether the `ignore` list names the rule.
    pub(super) fn ignores(&self, rule: &str) -> bool {
        entries(self.ignore).any(|entry| entry == rule)
    }

    fn read(
        source: OverrideSource<'a>,
        get: impl Fn(&str) -> Option<&'a str>,
        allowed: bool,
        passed_over: &mut Vec<PassedOver<'a>>,
    ) -> Self {
        let (action, remedy, ignore) = (get(keys::ACTION), get(keys::REMEDY), get(keys::IGNORE));
        if action.is_none() && remedy.is_none() && ignore.is_none() {
            return Self::default();
        }
        if !allowed {
            passed_over.push(PassedOver::Forbidden { source });
            return Self::default();
        }

        let reason = get(keys::REASON).map_or("", |reason| first(reason.trim()));
        let on_object = source == OverrideSource::Object;
        let mut with_reason = |needed: bool, key| {
            let honoured = !needed || !reason.is_empty();
            if !honoured {
                passed_over.push(PassedOver::ReasonMissing { source, key });
            }
            honoured
        };
        let mut unknown = Vec::new();
        let mut known = |key, value| unknown.push(PassedOver::UnknownValue { source, key, value });

        // A Namespace is set up by whoever runs the cluster, often with labels,
        // which cannot hold a sentence: there only silence has to be explained.
        let action = action.and_then(|value| {
            let action = Action::from_name(value.trim());
            if action.is_none() {
                known(keys::ACTION, value);
            }
            action
                .filter(|action| with_reason(on_object || *action == Action::Ignore, keys::ACTION))
        });
        let remedy = remedy.and_then(|value| {
            let remedy = RemedyChoice::from_name(value.trim());
            if remedy.is_none() {
                known(keys::REMEDY, value);
            }
            remedy.filter(|_| with_reason(on_object, keys::REMEDY))
        });
        let ignore = ignore
            .filter(|_| with_reason(true, keys::IGNORE))
            .unwrap_or_default();
        passed_over.append(&mut unknown);
        passed_over.extend(
            entries(ignore)
                .filter(|rule| codes::find(rule).is_none())
                .map(|rule| PassedOver::UnknownRule { source, rule })
                .take(MOST_UNKNOWN),
        );
        Self {
            action,
            remedy,
            ignore,
            reason,
        }
    }
}

/// The rules that an object's own annotations ask to be silent about, as written there.
pub fn ignored_rules(annotations: &Labels) -> impl Iterator<Item = &str> {
    entries(annotations.get(keys::IGNORE).unwrap_or_default())
}

/// As much of a reason as is kept: it is told with every finding, and logged.
fn first(reason: &str) -> &str {
    let end = reason.char_indices().nth(LONGEST_REASON);
    end.map_or(reason, |(end, _)| &reason[..end])
}

fn entries(ignore: &str) -> impl Iterator<Item = &str> {
    ignore
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}
