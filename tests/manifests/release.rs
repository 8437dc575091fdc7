//! What `.ci/package` makes of a program: `make dist` gives it the release's.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use crate::harness::{self, Needs};
use crate::rendered::{documents, printed};
use crate::repository;

const BINARY: &str = env!("CARGO_BIN_EXE_multi-attach-guard");
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn an_archive_holds_what_its_papers_say() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut package = Command::new(repository(".ci/package"));
    package.arg(BINARY).arg(at);
    printed(package.env("DOWNLOADS", "https://downloads.example.com/v1/"));
    printed(
        Command::new("sha256sum")
            .args(["--check", "--strict", "SHA256SUMS"])
            .current_dir(at),
    );
    let read = |name: &str| fs::read_to_string(at.join(name)).unwrap();

    let krew = documents(&read("multi-attach.yaml")).remove(0);
    let platform = &krew["spec"]["platforms"][0];
    let uri = platform["uri"].as_str().unwrap();
    let archive = uri
        .strip_prefix("https://downloads.example.com/v1/")
        .unwrap();
    let digest = platform["sha256"].as_str().unwrap();
    assert!(read("SHA256SUMS").contains(&format!("{digest}  {archive}\n")));
    let provenance: Value =
        serde_json::from_str(&read(&archive.replace(".tar.gz", ".provenance.json"))).unwrap();
    assert_eq!(provenance["subject"][0]["digest"]["sha256"], digest);

    let materials: Value =
        serde_json::from_str(&read(&format!("multi-attach-guard-{VERSION}.spdx.json"))).unwrap();
    let packages = materials["packages"].as_array().unwrap();
    let has = |name: &str| packages.iter().any(|it| it["name"] == name);
    assert!(has("multi-attach-guard") && has("rustls") && has("tokio"));
    assert!(!has("insta"), "what only tests use is in no program");

    let unpacked = at.join("unpacked");
    fs::create_dir(&unpacked).unwrap();
    printed(
        Command::new("tar")
            .args(["--extract", "--file"])
            .arg(at.join(archive))
            .current_dir(&unpacked),
    );
    for file in [
        "LICENSE",
        "man/multi-attach-guard-check.1",
        "completions/multi-attach-guard.bash",
    ] {
        assert!(unpacked.join(file).exists(), "{file} is missing");
    }
    let version = printed(Command::new(unpacked.join("multi-attach-guard")).arg("--version"));
    assert_eq!(version, format!("multi-attach-guard {VERSION}\n"));
}

/// krew links the program under this name, and kubectl finds it by that.
#[test]
fn kubectl_finds_it_as_a_plugin() {
    let Some(programs) = harness::require_programs(Needs::ApiServer) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    symlink(BINARY, folder.path().join("kubectl-multi_attach")).unwrap();
    let mut kubectl = Command::new(programs.path("kubectl"));
    kubectl
        .args(["multi-attach", "rules", "rolling-update-overlap"])
        .env("PATH", folder.path())
        .env("HOME", folder.path());
    assert!(printed(&mut kubectl).contains("rolling-update-overlap"));
}
