//! Finds pods that wait for a volume, the holders of the volume, the cause and the way out.
//!
//! ```text
//! Observed, View ─▶ waiting pods ─▶ cause, one file each ─▶ CaseEntry, with commands
//! ```
//!
//! The diagnosis rests on the state of one moment, because Events expire. It changes nothing: it
//! suggests commands for somebody to run.

pub use super::action::{Purpose, SuggestedAction};
pub use super::cause::{CAUSES, Cause};
pub use super::clock::Clock;
pub use super::command;
pub use super::explain::{Explained, Explanation, explain, explanations};
pub use super::health::{Examined, Health};
pub use super::node::{NodeEntry, node};
pub use super::remark::{Remark, remarks};
pub use super::report_case::{CaseEntry, HolderEntry, VolumeEntry, WaitingEntry, cases};
pub use super::span::span;

use jiff::Timestamp;

use engine::analysis;
use engine::model::observed::Observed;

/// The input of a diagnosis.
#[derive(Clone, Copy)]
pub struct DiagnosisInput<'a> {
    /// Claims, volumes, classes, workloads and autoscalers, and the storage catalog.
    pub objects: analysis::Facts<'a>,
    /// The observed state of one moment.
    pub observed: &'a Observed,
    /// The time of that moment, by the clock of the API server.
    pub now: Timestamp,
    /// The beginning of every command: `kubectl`, with a context if one was chosen.
    pub kubectl: &'a str,
}
