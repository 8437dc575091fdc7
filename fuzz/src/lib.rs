//! The code that the fuzzer's binaries share.

pub mod mutate;
#[path = "../targets/mod.rs"]
pub mod targets;
