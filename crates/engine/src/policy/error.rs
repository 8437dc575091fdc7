//! What can be wrong with a policy file, and where.

use serde_saphyr::Error as YamlError;
use serde_saphyr::{DefaultMessageFormatter, Localizer, Location};

use crate::model::words::listed;

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
    /// What is wrong there.
    pub problem: PolicyProblem,
}

/// What is wrong at one place of a policy file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyProblem {
    /// A key the policy does not know.
    #[error("the key \"{key}\" is not known here; {}", advice(.key, .known))]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The keys that may stand there.
        known: Vec<&'static str>,
    },
    /// A word outside the list of those that may stand there.
    #[error("\"{value}\" is not known here; {}", advice(.value, .known))]
    UnknownValue {
        /// The word as written.
        value: String,
        /// The words that may stand there.
        known: Vec<&'static str>,
    },
    /// A key without a value.
    #[error("a value is missing here; write {}", listed(.known, "or"))]
    NoValue {
        /// The words that may stand there.
        known: Vec<&'static str>,
    },
    /// A key that must be there is not.
    #[error("the key \"{key}\" is missing from this entry; add it")]
    MissingKey {
        /// The missing key.
        key: &'static str,
    },
    /// A key that occurs twice.
    #[error("the key \"{key}\" is given twice; keep one of them")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A value of another shape than the policy wants.
    #[error("{expected} is expected here")]
    WrongShape {
        /// The shape the policy wants.
        expected: &'static str,
    },
    /// A second YAML document.
    #[error(
        "a policy is one YAML document; remove the \"---\" before this and all that follows it"
    )]
    SecondDocument,
    /// A value that has the right shape but makes no sense.
    #[error("{0}")]
    Senseless(String),
    /// Bytes that are no text.
    #[error("this is not UTF-8 text; save the file as UTF-8")]
    NotText,
    /// Text that is not YAML.
    #[error("this is not valid YAML: {0}")]
    NotYaml(String),
}

impl PolicyError {
    fn new(file: &str, (line, column): (u64, u64), problem: PolicyProblem) -> Self {
        Self {
            file: file.to_owned(),
            line,
            column,
            problem,
        }
    }

    pub(super) fn from_yaml(file: &str, error: &YamlError) -> Self {
        let place = error.location().map_or((1, 1), position);
        Self::new(file, place, problem(error))
    }

    /// Of a file that is text as far as `good`.
    pub(super) fn not_text(file: &str, good: &str) -> Self {
        let last = good.rsplit('\n').next().unwrap_or_default();
        let line = good.split('\n').count() as u64;
        let column = last.chars().count() as u64 + 1;
        Self::new(file, (line, column), PolicyProblem::NotText)
    }

    pub(super) fn at(file: &str, location: Location, problem: PolicyProblem) -> Self {
        Self::new(file, position(location), problem)
    }
}

fn position(location: Location) -> (u64, u64) {
    (location.line().max(1), location.column().max(1))
}

fn problem(error: &YamlError) -> PolicyProblem {
    match error {
        YamlError::AliasError { error, .. } | YamlError::WithSnippet { error, .. } => {
            problem(error)
        }
        YamlError::SerdeUnknownField {
            field, expected, ..
        } => PolicyProblem::UnknownKey {
            key: field.clone(),
            known: expected.clone(),
        },
        // The reader shows a value that is not there as "~".
        YamlError::SerdeUnknownVariant {
            variant, expected, ..
        } if variant == "~" => PolicyProblem::NoValue {
            known: expected.clone(),
        },
        YamlError::SerdeUnknownVariant {
            variant, expected, ..
        } => PolicyProblem::UnknownValue {
            value: variant.clone(),
            known: expected.clone(),
        },
        YamlError::SerdeMissingField { field, .. } => PolicyProblem::MissingKey { key: field },
        YamlError::DuplicateMappingKey { key, .. } => PolicyProblem::DuplicateKey {
            key: key.clone().unwrap_or_default(),
        },
        YamlError::Unexpected { expected, .. } => PolicyProblem::WrongShape {
            expected: match *expected {
                "mapping start" => "a mapping (\"key: value\")",
                "sequence start" => "a list (\"- entry\" or \"[entry]\")",
                "string scalar" => "a single text value",
                _ => "another kind of value",
            },
        },
        YamlError::ExternallyTaggedEnumExpectedScalarOrMapping { .. }
        | YamlError::NullIntoString { .. } => PolicyProblem::WrongShape {
            expected: "a single text value",
        },
        YamlError::InvalidBooleanStrict { .. } | YamlError::InvalidScalar { ty: "boolean", .. } => {
            PolicyProblem::WrongShape {
                expected: "true or false",
            }
        }
        YamlError::MultipleDocuments { .. } => PolicyProblem::SecondDocument,
        YamlError::Message { msg, .. } => PolicyProblem::Senseless(msg.clone()),
        other => PolicyProblem::NotYaml(
            other.render_with_formatter(&DefaultMessageFormatter.with_localizer(&Bare)),
        ),
    }
}

/// Leaves the place out of the YAML reader's messages: the line begins with it.
struct Bare;

impl Localizer for Bare {
    fn attach_location<'a>(
        &self,
        base: std::borrow::Cow<'a, str>,
        _: Location,
    ) -> std::borrow::Cow<'a, str> {
        base
    }
}

fn advice(written: &str, known: &[&str]) -> String {
    match nearest(written, known) {
        Some(near) => format!(
            "did you mean \"{near}\"? Known are {}",
            listed(known, "and")
        ),
        None => format!("known are {}", listed(known, "and")),
    }
}

/// The known word that `written` was most likely meant to be. 0.7 lets a slip
/// or two through in a short word and keeps unrelated words apart.
pub(super) fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let written = written.to_lowercase();
    known
        .iter()
        .map(|word| (strsim::jaro_winkler(&written, &word.to_lowercase()), *word))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}
