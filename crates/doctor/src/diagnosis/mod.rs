//! Pods that wait for a volume: who holds it, why, and the way out.
//!
//! ```text
//! Observed, View ─▶ waiting pods ─▶ cause, one file each ─▶ CaseEntry, with commands
//! ```
//!
//! The diagnosis rests on the state of one moment, as Events expire. Nothing is changed:
//! what helps is a command for somebody to run.

mod action;
pub mod cause;
mod clock;
pub mod command;
mod delivery;
mod explain;
mod health;
mod index;
mod messages;
mod report_case;
mod scaled_object;
mod span;
mod waiting_pod;

pub use action::{Purpose, SuggestedAction};
pub use cause::{CAUSES, Cause};
pub use clock::Clock;
use delivery::Delivery;
pub use explain::{Explanation, explain, explanations};
pub use health::{Examined, Health};
pub use report_case::{CaseEntry, HolderEntry, VolumeEntry, WaitingEntry, cases};
pub use span::span;

use jiff::Timestamp;

use engine::analysis;
use engine::model::observed::Observed;

/// What a diagnosis rests on.
#[derive(Clone, Copy)]
pub struct DiagnosisInput<'a> {
    /// Claims, volumes, classes, workloads and autoscalers, and what storage can do.
    pub objects: analysis::Facts<'a>,
    /// The state of the moment.
    pub observed: &'a Observed,
    /// When that moment was, by the clock of the API server.
    pub now: Timestamp,
    /// What commands begin with: `kubectl`, with a context where one was chosen.
    pub kubectl: &'a str,
}
