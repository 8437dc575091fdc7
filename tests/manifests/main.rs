//! What `manifests/` and `certs/` hold: that it renders, that kustomize and Helm render
//! the same, that a real API server takes it, and that it does there what it says; and
//! what a release is made of.

#![allow(
    clippy::unwrap_used,
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

use std::path::{Path, PathBuf};

/// A file or folder of the repository.
fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}
