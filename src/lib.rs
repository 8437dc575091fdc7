//! The command line of multi-attach-guard: commands, `check` and the formats of reports.
//!
//! What it puts together stands in the crates of `crates/`.

pub mod cli;
pub mod report;
