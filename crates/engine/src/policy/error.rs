//! The errors in a policy file, with their places.

use std::borrow::Cow;

use serde_saphyr::{DefaultMessageFormatter, Error as YamlError, Localizer, Location};

use crate::model::words::{OF_FEW, listed, nearest};

/// A policy file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct PolicyError {
    /// The file's name, as it was given.
    pub file: String,
    /// The line, counted from 1.
    pub line: u64,
    /// The column in characters, counted from 1.
    pub column: u64,
    /// The problem there, and its solution.
    pub problem: String,
}

impl PolicyError {
    fn new(file: &str, (line, column): (u64, u64), problem: String) -> Self {
        Self { file: file.to_owned(), line, column, problem }
    }

    pub(super) fn from_yaml(file: &str, error: &YamlError) -> Self {
        let place = error.location().map_or((1, 1), position);
        Self::new(file, place, problem(error))
    }

    /// The error in a file that is text as far as `good`.
    pub(super) fn not_text(file: &str, good: &str) -> Self {
        let last = good.rsplit('\n').next().unwrap_or_default();
        let line = good.split('\n').count() as u64;
        let column = last.chars().count() as u64 + 1;
        let problem = "this is not UTF-8 text; save the file as UTF-8".to_owned();
        Self::new(file, (line, column), problem)
    }

    /// The error in a value that has the right shape but makes no sense.
    pub(super) fn senseless(file: &str, place: Location, problem: impl Into<String>) -> Self {
        Self::new(file, position(place), problem.into())
    }
}

fn position(location: Location) -> (u64, u64) {
    (location.line().max(1), location.column().max(1))
}

fn problem(error: &YamlError) -> String {
    let shape = |expected: &str| format!("{expected} is expected here");
    match error {
        YamlError::AliasError { error, .. } | YamlError::WithSnippet { error, .. } => {
            problem(error)
        }
        YamlError::SerdeUnknownField { field, expected, .. } => {
            format!("the key {}", unknown(field, expected))
        }
        // The reader shows a missing value as "~".
        YamlError::SerdeUnknownVariant { variant, expected, .. } if variant == "~" => {
            format!("a value is missing here; write {}", listed(expected, "or"))
        }
        YamlError::SerdeUnknownVariant { variant, expected, .. } => unknown(variant, expected),
        YamlError::SerdeMissingField { field, .. } => {
            format!("the key \"{field}\" is missing from this entry; add it")
        }
        YamlError::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or_default();
            format!("the key \"{key}\" is given twice; keep one of them")
        }
        YamlError::Unexpected { expected, .. } => shape(match *expected {
            "mapping start" => "a mapping (\"key: value\")",
            "sequence start" => "a list (\"- entry\" or \"[entry]\")",
            "string scalar" => "a single text value",
            _ => "another kind of value",
        }),
        YamlError::ExternallyTaggedEnumExpectedScalarOrMapping { .. }
        | YamlError::NullIntoString { .. } => shape("a single text value"),
        YamlError::InvalidBooleanStrict { .. } | YamlError::InvalidScalar { ty: "boolean", .. } => {
            shape("true or false")
        }
        YamlError::MultipleDocuments { .. } => {
            "a policy is one YAML document; remove the \"---\" before this and all that follows it"
                .to_owned()
        }
        YamlError::Message { msg, .. } => msg.clone(),
        other => {
            let formatter = DefaultMessageFormatter.with_localizer(&Bare);
            let reason = other.render_with_formatter(&formatter);
            format!("this is not valid YAML: {reason}")
        }
    }
}

/// Leaves the place out of the YAML reader's messages, because the line begins with it.
struct Bare;

impl Localizer for Bare {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }
}

fn unknown(written: &str, known: &[&str]) -> String {
    let all = listed(known, "and");
    match nearest(written, known.iter().copied(), OF_FEW) {
        Some(near) => {
            format!("\"{written}\" is not known here; did you mean \"{near}\"? Known are {all}")
        }
        None => format!("\"{written}\" is not known here; known are {all}"),
    }
}
