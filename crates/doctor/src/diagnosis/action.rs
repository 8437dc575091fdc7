//! Something to do, or to know.

use serde::Serialize;

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To be looked at before anything is changed.
    Check,
    /// To be done before any of the ways out.
    Before,
    /// Ends the wait. Of several, one is enough.
    WayOut,
    /// To be done when it is over.
    Afterwards,
    /// To be known.
    Note,
}

/// Something to do or to know.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuggestedAction {
    /// What it is for.
    pub purpose: Purpose,
    /// The command, to be copied into a shell as it is; `None` where there is none.
    pub command: Option<String>,
    /// What it costs, or what there is to know: sentences.
    pub text: String,
}

impl SuggestedAction {
    pub(super) fn new(purpose: Purpose, command: String, cost: &str) -> Self {
        Self {
            purpose,
            command: Some(command),
            text: cost.to_owned(),
        }
    }

    pub(super) fn check(command: String, cost: &str) -> Self {
        Self::new(Purpose::Check, command, cost)
    }

    pub(super) fn note(text: &str) -> Self {
        Self {
            purpose: Purpose::Note,
            command: None,
            text: text.to_owned(),
        }
    }
}
