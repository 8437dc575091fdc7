//! The overrides that objects and Namespaces carry.

use std::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use json_patch::Patch;
use serde_json::Value;

use super::action::{Action, RemedyChoice};
use super::{Suppressed, SuppressedBy, Target, keys};
use crate::model::labels::Labels;
use crate::model::words::{OF_FEW, cut, listed, nearest};
use crate::remedy::edit;
use crate::rules::codes;

/// The most unknown rules of an `ignore` list that are reported.
const MOST_UNKNOWN: usize = 16;

/// The most characters of a value that are shown.
const MOST_SHOWN: usize = 25;

/// The number of characters in a date.
const DATE: usize = "2026-12-31".len();

/// The place of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverrideSource<'a> {
    /// An annotation of the object itself.
    Object,
    /// A label or annotation of this Namespace.
    Namespace(&'a str),
}

/// An override that is not honoured, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver<'a> {
    /// The place of the override.
    pub source: OverrideSource<'a>,
    /// The reason for which it is not honoured: a sentence.
    pub(super) why: String,
    /// Whether none of the source's keys counts.
    pub ends_override: bool,
}

impl fmt::Display for PassedOver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let OverrideSource::Namespace(name) = self.source {
            write!(f, "Namespace {name}: ")?;
        }
        f.write_str(&self.why)
    }
}

/// The word that `value` is; if it is none of `words`, `unknown` gets a message.
fn known_word<T: Copy + AsRef<str>, const N: usize>(
    key: &str,
    value: Option<&str>,
    words: [T; N],
    unknown: &mut Vec<String>,
) -> Option<T> {
    let value = value?;
    let known = words.iter().find(|word| word.as_ref() == value.trim());
    if known.is_none() {
        let words = words.each_ref().map(T::as_ref);
        let what = match nearest(value.trim(), words, OF_FEW) {
            Some(meant) => format!("known; did you mean \"{meant}\"?"),
            None => format!("{}.", listed(&words, "or")),
        };
        unknown.push(format!("{key}: \"{}\" is not {what}", cut(value, MOST_SHOWN)));
    }
    known.copied()
}

/// The message about an entry of the `ignore` list that is no rule.
fn unknown_rule(rule: &str) -> String {
    let end = match nearest(rule, codes::ALL, OF_FEW) {
        Some(meant) => format!("; did you mean \"{meant}\"?"),
        None => ".".to_owned(),
    };
    let (key, rule) = (keys::IGNORE, cut(rule, MOST_SHOWN));
    format!("{key}: there is no rule \"{rule}\"{end}")
}

/// The reason for which an override until then does not count at `now`; `None` if it counts.
fn ended(until: &str, now: Option<Timestamp>) -> Option<String> {
    let (key, written) = (keys::UNTIL, cut(until, MOST_SHOWN));
    let Some(end) = end(until) else {
        return Some(format!(
            "{key}: \"{written}\" is neither a date nor an RFC 3339 time, so the keys are ignored."
        ));
    };
    let is_over = now.is_some_and(|now| now >= end);
    is_over.then(|| format!("multi-attach-guard.dev keys are ignored: {key} was {written}."))
}

/// The end of an override: a time, or the end of a day in UTC.
fn end(until: &str) -> Option<Timestamp> {
    if let Ok(time) = until.parse() {
        return Some(time);
    }
    // A time without a zone would be read as a date.
    let date: Date = until.parse().ok().filter(|_| until.len() == DATE)?;
    let next = date.checked_add(1.day()).ok()?;
    let midnight = next.to_zoned(TimeZone::UTC).ok()?;
    Some(midnight.timestamp())
}

/// The overrides of one source that count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Honoured<'a> {
    pub(super) action: Option<Action>,
    pub(super) remedy: Option<RemedyChoice>,
    /// The `ignore` list as written.
    ignore: &'a str,
    /// The reason; empty if none is given and none is needed.
    reason: &'a str,
}

impl<'a> Honoured<'a> {
    /// The setting that silences or lowers a finding, with the reason given here.
    pub(super) fn suppression(&self, by: SuppressedBy) -> Suppressed {
        Suppressed::new(by, self.reason)
    }

    /// Whether the `ignore` list names the rule.
    pub(super) fn ignores(&self, rule: &str) -> bool {
        entries(self.ignore).any(|entry| entry == rule)
    }

    /// Reads the annotations of `source` and, if a Namespace has none of a key, its labels.
    pub(super) fn read(
        source: OverrideSource<'a>,
        target: &Target<'a>,
        is_allowed: bool,
        passed_over: &mut Vec<PassedOver<'a>>,
    ) -> Self {
        let get = |key| match source {
            OverrideSource::Object => target.annotations.get(key),
            OverrideSource::Namespace(_) => {
                let metadata = target.namespace_metadata?;
                let on_label = || metadata.labels.get(key);
                metadata.annotations.get(key).or_else(on_label)
            }
        };
        let values = [keys::ACTION, keys::REMEDY, keys::IGNORE].map(get);
        if values == [None; 3] {
            return Self::default();
        }
        let until = get(keys::UNTIL).map(str::trim);
        let why = if is_allowed {
            until.and_then(|until| ended(until, target.now))
        } else {
            Some(
                "multi-attach-guard.dev keys are ignored: the policy forbids overrides here."
                    .to_owned(),
            )
        };
        if let Some(why) = why {
            passed_over.push(PassedOver { source, why, ends_override: true });
            return Self::default();
        }
        let reason =
            get(keys::REASON).map(str::trim).filter(|reason| is_said(reason)).unwrap_or_default();
        Self::explained(source, values, reason, passed_over)
    }

    /// The values that are known and have a reason if they need one.
    fn explained(
        source: OverrideSource<'a>,
        [action, remedy, ignore]: [Option<&'a str>; 3],
        reason: &'a str,
        passed_over: &mut Vec<PassedOver<'a>>,
    ) -> Self {
        let on_object = source == OverrideSource::Object;
        let problem = match reason {
            "" => Some(format!("add {} to say why.", keys::REASON)),
            reason if keys::PLACEHOLDERS.contains(&reason) => {
                Some(format!("{} is still the example.", keys::REASON))
            }
            _ => None,
        };
        let mut lacking = Vec::new();
        let mut with_reason = |needed: bool, key| match &problem {
            Some(problem) if needed => {
                lacking.push(format!("{key} is ignored: {problem}"));
                false
            }
            _ => true,
        };
        let mut unknown = Vec::new();

        // The administrators of the cluster set up a Namespace, often with labels, which cannot
        // contain a sentence: there, only silence needs a reason.
        let action = known_word(keys::ACTION, action, Action::ALL, &mut unknown)
            .filter(|action| with_reason(on_object || *action == Action::Ignore, keys::ACTION));
        let remedy = known_word(keys::REMEDY, remedy, RemedyChoice::ALL, &mut unknown)
            .filter(|_| with_reason(on_object, keys::REMEDY));
        let ignore = ignore.filter(|_| with_reason(true, keys::IGNORE)).unwrap_or_default();
        let rules = entries(ignore).filter(|rule| codes::find(rule).is_none());
        unknown.extend(rules.map(unknown_rule).take(MOST_UNKNOWN));
        let ends_override = action.is_none() && remedy.is_none() && ignore.is_empty();
        passed_over.extend(lacking.into_iter().chain(unknown).map(|why| PassedOver {
            source,
            why,
            ends_override,
        }));
        Self { action, remedy, ignore, reason }
    }
}

/// The rules that an object's own annotations ask to be silent about, as written there.
pub fn ignored_rules(annotations: &Labels) -> impl Iterator<Item = &str> {
    entries(annotations.get(keys::IGNORE).unwrap_or_default())
}

/// The patch that adds the rule to those that the object's own annotations ask to be silent about.
/// A reason that is missing becomes a placeholder, which the user must replace.
pub fn ignoring(document: &Value, rule: &str) -> Patch {
    let known = document.pointer("/metadata/annotations").and_then(Value::as_object);
    let mut annotations = known.cloned().unwrap_or_default();
    let others = annotations.get(keys::IGNORE).and_then(Value::as_str).unwrap_or_default();
    let rules: Vec<&str> = entries(others).chain([rule]).collect();
    annotations.insert(keys::IGNORE.to_owned(), rules.join(", ").into());
    annotations.entry(keys::REASON).or_insert_with(|| keys::WHY_SAFE.into());
    edit::set(document, &["metadata", "annotations"], annotations.into())
}

/// Whether `reason` has anything to read: a visible letter or digit.
fn is_said(reason: &str) -> bool {
    // Unicode counts the fillers of Hangul among the letters.
    let is_filler = |c| matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}');
    reason.chars().any(|c| c.is_alphanumeric() && !is_filler(c))
}

fn entries(ignore: &str) -> impl Iterator<Item = &str> {
    ignore.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}
