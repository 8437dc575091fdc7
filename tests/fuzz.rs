//! What the fuzzer found worth keeping is read again, by the same functions.

// Helpers of tests stand outside the functions clippy knows as tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

#[path = "../fuzz/targets/mod.rs"]
#[allow(
    unreachable_pub,
    reason = "the fuzzer's binaries see these functions from outside"
)]
mod targets;

/// Runs every file of that target's corpus. One that is at fault is named.
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 10, "{}: {}", folder.display(), files.len());
    let mut at_fault = Vec::new();
    for file in &files {
        let bytes = fs::read(file).unwrap();
        if std::panic::catch_unwind(|| run(&bytes)).is_err() {
            at_fault.push(file);
        }
    }
    assert!(at_fault.is_empty(), "{at_fault:#?}");
}

#[test]
fn reviews() {
    replay("review", targets::review::run);
}

#[test]
fn reviews_only_read() {
    replay("review_reader", targets::review_reader::run);
}

#[test]
fn manifests() {
    replay("manifest", targets::manifest::run);
}

#[test]
fn policies() {
    replay("policy", targets::policy::run);
}

#[test]
fn catalog_overrides() {
    replay("catalog_override", targets::catalog_override::run);
}

#[test]
fn pem() {
    replay("pem", targets::pem::run);
}

#[test]
fn kubeconfigs() {
    replay("kubeconfig", targets::kubeconfig::run);
}
