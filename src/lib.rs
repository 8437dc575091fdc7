//! The command line of multi-attach-guard: commands and `check`.
//!
//! It puts together the crates in `crates/`.

pub mod cli;
