//! Why something is not rendered.

use super::render::command_line::RefusedWord;
use report::Missing;

/// Why something is not rendered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reason {
    /// The end of a sentence.
    pub(super) text: String,
    /// What is missing that is elsewhere.
    pub(super) missing: Option<Missing>,
}

impl Reason {
    /// Charts are missing, which `--fetch` gets.
    pub(super) fn elsewhere(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            missing: Some(Missing::Charts),
        }
    }

    /// Something is missing that only a network has.
    pub(super) fn network(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            missing: Some(Missing::Files),
        }
    }

    /// Another tool renders it, by the command in the text.
    pub(super) fn of_tool(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            missing: Some(Missing::Tool),
        }
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self {
            text,
            missing: None,
        }
    }
}

impl From<RefusedWord> for Reason {
    fn from(refused: RefusedWord) -> Self {
        refused.to_string().into()
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
