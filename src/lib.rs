//! The command line of multi-attach-guard: commands, `check` and the formats of reports.
//!
//! It puts together the crates in `crates/`.

pub mod cli;
pub mod report;
