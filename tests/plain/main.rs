//! What needs no Kubernetes and is short: one program, as each has to link all of ours.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

mod edits;
mod fuzz;
#[cfg(unix)]
mod hostile_text;
#[path = "../harness/output.rs"]
#[allow(dead_code, reason = "what is needed here is a part of it")]
mod output;
mod promises;
mod readme;
#[cfg(unix)]
mod terminal;
#[path = "../written/mod.rs"]
mod written;
