//! What objects and Namespaces say for themselves.

use std::borrow::Cow;
use std::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::action::{Action, RemedyChoice};
use super::error::nearest;
use super::{Target, keys};
use crate::model::labels::Labels;
use crate::model::words::listed;
use crate::rules::codes;

/// At most so many names in an `ignore` list that are no rules are reported.
const MOST_UNKNOWN: usize = 16;

/// Characters of a value that are shown.
const MOST_SHOWN: usize = 24;

/// Characters of a date.
const DATE: usize = "2026-12-31".len();

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
pub struct PassedOver<'a> {
    /// Where the override stands.
    pub source: OverrideSource<'a>,
    /// Why it is not honoured.
    pub(super) why: Why<'a>,
}

impl PassedOver<'_> {
    /// Whether nothing is left of the overrides of its source.
    pub fn ends_override(&self) -> bool {
        matches!(
            self.why,
            Why::Forbidden
                | Why::ReasonMissing { .. }
                | Why::PlaceholderReason { .. }
                | Why::Expired { .. }
                | Why::UnreadableEnd { .. }
        )
    }
}

/// Why an override is not honoured. Keys, values and ends are as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why<'a> {
    /// The policy file does not allow overrides from there.
    Forbidden,
    /// Nothing says why the override is there.
    ReasonMissing { key: &'static str },
    /// The reason is that of the command that was printed, which says none.
    PlaceholderReason { key: &'static str },
    /// The override has ended.
    Expired { until: &'a str },
    /// Nobody can tell when the override ends.
    UnreadableEnd { until: &'a str },
    /// The value is none of the words known for the key.
    UnknownValue { key: &'static str, value: &'a str },
    /// An entry of the `ignore` list is not a rule.
    UnknownRule { rule: &'a str },
    /// The policy chooses namespaces by label, and this one's labels are not known.
    LabelsUnknown { namespace: &'a str },
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
        self.source.fmt(f)?;
        match &self.why {
            Why::Forbidden => f.write_str(
                "multi-attach-guard.dev keys are ignored: the policy forbids overrides here.",
            ),
            Why::ReasonMissing { key } => {
                write!(f, "{key} is ignored: add {} to say why.", keys::REASON)
            }
            Why::PlaceholderReason { key } => write!(
                f,
                "{key} is ignored: {} is still the example.",
                keys::REASON
            ),
            Why::Expired { until } => write!(
                f,
                "multi-attach-guard.dev keys are ignored: {} was {}.",
                keys::UNTIL,
                short(until)
            ),
            Why::UnreadableEnd { until } => write!(
                f,
                "{}: \"{}\" is neither a date nor an RFC 3339 time, so the keys are ignored.",
                keys::UNTIL,
                short(until)
            ),
            Why::UnknownValue { key, value } => {
                let known: &[&str] = match *key {
                    keys::ACTION => &Action::ALL.map(Action::name),
                    _ => &RemedyChoice::ALL.map(RemedyChoice::name),
                };
                write!(f, "{key}: \"{}\" is not ", short(value))?;
                match nearest(value.trim(), known) {
                    Some(meant) => write!(f, "known; did you mean \"{meant}\"?"),
                    None => write!(f, "{}.", listed(known, "or")),
                }
            }
            Why::UnknownRule { rule } => {
                let shown = short(rule);
                write!(f, "{}: there is no rule \"{shown}\"", keys::IGNORE)?;
                match nearest(rule, &codes::ALL) {
                    Some(meant) => write!(f, "; did you mean \"{meant}\"?"),
                    None => f.write_str("."),
                }
            }
            Why::LabelsUnknown { namespace } => write!(
                f,
                "The labels of namespace {namespace} are not known: where policy entries ask for labels, the strictest holds."
            ),
        }
    }
}

/// A value that may be of any length, or its beginning and a sign that there is more.
fn short(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(MOST_SHOWN) {
        Some((at, _)) => format!("{}…", &value[..at]).into(),
        None => value.into(),
    }
}

/// Why an override that holds until then does not count at `now`; `None` where it does.
fn ended(until: &str, now: Option<Timestamp>) -> Option<Why<'_>> {
    match end(until) {
        None => Some(Why::UnreadableEnd { until }),
        Some(end) => now
            .filter(|now| *now >= end)
            .map(|_| Why::Expired { until }),
    }
}

/// When an override ends: at a time, or with a day, in UTC.
fn end(until: &str) -> Option<Timestamp> {
    if let Ok(time) = until.parse() {
        return Some(time);
    }
    // A date and a time of no zone would be read as a date.
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
    /// Empty where none is given and none is needed.
    pub(super) reason: &'a str,
}

impl<'a> Honoured<'a> {
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
        let (annotations, labels) = match source {
            OverrideSource::Object => (Some(target.annotations), None),
            OverrideSource::Namespace(_) => (target.namespace_annotations, target.namespace_labels),
        };
        let get = |key| {
            let places = [annotations, labels].into_iter().flatten();
            places.filter_map(|place| place.get(key)).next()
        };
        let values = [keys::ACTION, keys::REMEDY, keys::IGNORE].map(get);
        if values == [None; 3] {
            return Self::default();
        }
        let until = get(keys::UNTIL).map(str::trim);
        let why = if is_allowed {
            until.and_then(|until| ended(until, target.now))
        } else {
            Some(Why::Forbidden)
        };
        if let Some(why) = why {
            passed_over.push(PassedOver { source, why });
            return Self::default();
        }
        let reason = get(keys::REASON).map(str::trim);
        let reason = reason.filter(|it| is_said(it)).unwrap_or_default();
        Self::explained(source, values, reason, passed_over)
    }

    /// The values that are known and, where they need one, have a reason.
    fn explained(
        source: OverrideSource<'a>,
        [action, remedy, ignore]: [Option<&'a str>; 3],
        reason: &'a str,
        passed_over: &mut Vec<PassedOver<'a>>,
    ) -> Self {
        let on_object = source == OverrideSource::Object;
        let mut whys = Vec::new();
        let mut with_reason = |needed: bool, key| {
            let lacks = match reason {
                "" => Why::ReasonMissing { key },
                reason if keys::PLACEHOLDERS.contains(&reason) => Why::PlaceholderReason { key },
                _ => return true,
            };
            if needed {
                whys.push(lacks);
            }
            !needed
        };
        let mut unknown = Vec::new();
        let mut known = |key, value| unknown.push(Why::UnknownValue { key, value });

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
        whys.append(&mut unknown);
        let rules = entries(ignore).filter(|rule| codes::find(rule).is_none());
        whys.extend(
            rules
                .map(|rule| Why::UnknownRule { rule })
                .take(MOST_UNKNOWN),
        );
        passed_over.extend(whys.into_iter().map(|why| PassedOver { source, why }));
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

/// Whether there is anything to read in `reason`: a letter or digit that can be seen.
fn is_said(reason: &str) -> bool {
    // Unicode counts the fillers of Hangul among the letters.
    let is_filler = |c| matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}');
    reason.chars().any(|c| c.is_alphanumeric() && !is_filler(c))
}

fn entries(ignore: &str) -> impl Iterator<Item = &str> {
    ignore
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}
