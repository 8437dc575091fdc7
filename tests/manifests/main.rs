//! The contents of `manifests/` and `certs/`: they render, kustomize and Helm render the same
//! objects, a real API server accepts them, and they work there as documented. The contents of a
//! release are tested here too.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed step of a helper fails its test"
)]

mod alternatives;
mod artifact_hub;
mod chart;
mod client_certificates;
mod development_certificates;
mod events;
mod fencing;
mod gitops;
#[path = "../harness/mod.rs"]
mod harness;
mod hostile_values;
mod image;
mod installed;
mod managed_certificates;
mod monitoring;
mod padding;
mod pages;
mod publish;
mod release;
mod removed;
mod rendered;
mod requests;
mod wrong_clocks;

use std::path::{Path, PathBuf};

/// A file or folder of the repository.
fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}
