//! What objects and Namespaces say for themselves.

use std::fmt;

use super::action::{Action, RemedyChoice};
use super::error::list;
use super::{Scope, keys};
use crate::rules::codes;

/// Where an override stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<'a> {
    /// An annotation of the object itself.
    Object,
    /// A label or annotation of this Namespace.
    Namespace(&'a str),
}

/// An override that is not honoured, and why: a sentence to warn with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// The policy file does not allow overrides from there.
    Forbidden {
        /// Where the override stands.
        origin: Origin<'a>,
    },
    /// Nothing says why the override is there.
    ReasonMissing {
        /// Where the override stands.
        origin: Origin<'a>,
        /// Its key.
        key: &'static str,
    },
    /// The value is none of the words known for the key.
    UnknownValue {
        /// Where the override stands.
        origin: Origin<'a>,
        /// Its key.
        key: &'static str,
        /// Its value, as written.
        value: &'a str,
    },
    /// An entry of the `ignore` list is not a rule.
    UnknownRule {
        /// Where the override stands.
        origin: Origin<'a>,
        /// The entry, as written.
        rule: &'a str,
    },
    /// The policy chooses namespaces by label, and this one's labels are not known.
    LabelsUnknown {
        /// The namespace.
        namespace: &'a str,
    },
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object => Ok(()),
            Self::Namespace(name) => write!(f, "Namespace {name}: "),
        }
    }
}

impl fmt::Display for Notice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden { origin } => write!(
                f,
                "{origin}multi-attach-guard.dev keys are passed over: the policy forbids overrides here."
            ),
            Self::ReasonMissing { origin, key } => {
                write!(
                    f,
                    "{origin}{key} is passed over: add {} to say why.",
                    keys::REASON
                )
            }
            Self::UnknownValue { origin, key, value } => {
                let known = if *key == keys::ACTION {
                    list(&Action::ALL.map(Action::name), "or")
                } else {
                    list(&RemedyChoice::ALL.map(RemedyChoice::name), "or")
                };
                write!(f, "{origin}{key}: \"{}\" is not {known}.", short(value))
            }
            Self::UnknownRule { origin, rule } => {
                write!(
                    f,
                    "{origin}{}: there is no rule \"{}\".",
                    keys::IGNORE,
                    short(rule)
                )
            }
            Self::LabelsUnknown { namespace } => write!(
                f,
                "The labels of namespace {namespace} are not known: policy entries that ask for labels are passed over."
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

/// The overrides of one origin that count.
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
        scope: &Scope<'a>,
        allowed: bool,
        notices: &mut Vec<Notice<'a>>,
    ) -> Self {
        Self::read(
            Origin::Object,
            |key| scope.annotations.get(key),
            allowed,
            notices,
        )
    }

    /// Reads the annotations of the Namespace and, where there is none of a
    /// key, its labels.
    pub(super) fn of_namespace(
        scope: &Scope<'a>,
        allowed: bool,
        notices: &mut Vec<Notice<'a>>,
    ) -> Self {
        let get = |key: &str| {
            let annotation = scope.namespace_annotations.and_then(|all| all.get(key));
            annotation.or_else(|| scope.namespace_labels.and_then(|all| all.get(key)))
        };
        Self::read(Origin::Namespace(scope.namespace), get, allowed, notices)
    }

    /// Whether the `ignore` list names the rule.
    pub(super) fn ignores(&self, rule: &str) -> bool {
        entries(self.ignore).any(|entry| entry == rule)
    }

    fn read(
        origin: Origin<'a>,
        get: impl Fn(&str) -> Option<&'a str>,
        allowed: bool,
        notices: &mut Vec<Notice<'a>>,
    ) -> Self {
        let (action, remedy, ignore) = (get(keys::ACTION), get(keys::REMEDY), get(keys::IGNORE));
        if action.is_none() && remedy.is_none() && ignore.is_none() {
            return Self::default();
        }
        if !allowed {
            notices.push(Notice::Forbidden { origin });
            return Self::default();
        }

        let reason = get(keys::REASON).map_or("", str::trim);
        let on_object = origin == Origin::Object;
        let mut with_reason = |needed: bool, key| {
            let honoured = !needed || !reason.is_empty();
            if !honoured {
                notices.push(Notice::ReasonMissing { origin, key });
            }
            honoured
        };
        let mut unknown = Vec::new();
        let mut known = |key, value| unknown.push(Notice::UnknownValue { origin, key, value });

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
        notices.append(&mut unknown);
        notices.extend(
            entries(ignore)
                .filter(|rule| codes::find(rule).is_none())
                .map(|rule| Notice::UnknownRule { origin, rule }),
        );
        Self {
            action,
            remedy,
            ignore,
            reason,
        }
    }
}

fn entries(ignore: &str) -> impl Iterator<Item = &str> {
    ignore
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}
