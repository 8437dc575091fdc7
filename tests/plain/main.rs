//! Short tests without Kubernetes. They are one program, because each program must link all of our
//! code.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

#[path = "../written/corpus.rs"]
mod corpus;
mod edits;
mod fuzz;
#[cfg(unix)]
mod hostile_text;
#[path = "../harness/machine.rs"]
mod machine;
#[path = "../harness/output.rs"]
#[allow(dead_code, reason = "what is needed here is a part of it")]
mod output;
mod pasted;
#[cfg(unix)]
#[path = "../harness/picture.rs"]
mod picture;
mod promises;
mod readme;
mod right_manifests;
#[path = "../serve/running.rs"]
#[allow(dead_code, reason = "what is needed here is a part of it")]
mod running;
#[path = "../harness/serving.rs"]
mod serving;
mod skills;
#[cfg(unix)]
mod terminal;
#[path = "../written/mod.rs"]
mod written;
