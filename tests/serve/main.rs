//! The real binary from outside: the behaviour of `serve` towards an API server, a kubelet and a
//! user at a terminal.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed step of a helper fails its test"
)]

mod bad_input;
mod example;
mod lifecycle;
#[path = "../harness/machine.rs"]
mod machine;
mod memory;
mod refusals;
mod rollback;
mod running;
#[path = "../harness/serving.rs"]
mod serving;
