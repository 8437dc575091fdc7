//! The targets for hostile bytes, one file for each reader. Each accepts any bytes. It panics if
//! the reader panics or if the result is wrong.
//!
//! The fuzzer's binaries (`fuzz/fuzz_targets`) and the replay of the corpus on stable
//! (`tests/plain/fuzz.rs`) run the same functions.

pub mod catalog_override;
pub mod differential;
pub mod kubeconfig;
pub mod manifest;
pub mod mutated_review;
pub mod pem;
pub mod policy;
pub mod review;
pub mod review_reader;
