//! A step of a plan.

use serde_json::Value;

/// What the words of a step begin with that the application does not outlast.
pub(super) const STANDS_STILL: &str = "The application stands still";

/// What the words of a step are that the application does not notice.
pub(super) const RUNS: &str = "Blocks nothing.";

/// A step.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is done.
    pub title: String,
    /// For how long the application is blocked: a sentence.
    pub blocks: String,
    /// What there is to know before: sentences.
    pub text: String,
    /// What is run.
    pub actions: Vec<Action>,
    /// What to look for then: sentences; may be empty.
    pub then: String,
}

/// Something to run.
#[derive(Clone, Debug)]
pub enum Action {
    /// A command, to be copied into a shell as it is.
    Run(String),
    /// An object to be applied.
    Apply(Manifest),
}

/// An object, and the file it is written to.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The name of the file, `10-claim.yaml` for example: in the order of the steps.
    pub file: String,
    /// The object.
    pub object: Value,
}

impl Step {
    /// Whether the application stands still meanwhile.
    pub(super) fn is_standstill(&self) -> bool {
        self.blocks.starts_with(STANDS_STILL)
    }
}
