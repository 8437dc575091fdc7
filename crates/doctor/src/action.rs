//! The steps that a diagnosis suggests.

use serde::{Deserialize, Serialize};

/// The purpose of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A check to make before anything is changed.
    Check,
    /// A step to take, or a condition to meet, before any of the ways out.
    Before,
    /// A step that ends the wait. One of several is enough.
    WayOut,
    /// A step to take once the wait is over.
    Afterwards,
    /// A piece of information.
    Note,
}

/// A step that a diagnosis suggests, or a note.
#[derive(Clone, Debug, Serialize)]
pub struct SuggestedAction {
    /// The purpose of the step.
    pub purpose: Purpose,
    /// The command, ready to be copied into a shell; `None` if there is none.
    pub command: Option<String>,
    /// The cost of the command, or the note, in sentences.
    pub text: String,
}
