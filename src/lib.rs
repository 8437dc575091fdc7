//! The command line of multi-attach-guard.
//!
//! It combines the crates in `crates/`.

pub mod cli;
