//! What `.ci/package` makes of a program: `make dist` gives it the release's,
//! for each architecture one.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{self, Needs};
use crate::rendered::{documents, printed};
use crate::repository;

const BINARY: &str = env!("CARGO_BIN_EXE_multi-attach-guard");
const VERSION: &str = env!("CARGO_PKG_VERSION");

const DOWNLOADS: &str = "https://downloads.example.com/v1";

#[test]
fn archives_hold_what_their_papers_say() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = if cfg!(target_arch = "aarch64") {
        ("arm64", "amd64")
    } else {
        ("amd64", "arm64")
    };
    let at = &folder.path().join("dist");
    printed(
        Command::new(repository(".ci/package"))
            .arg(at)
            .args([Path::new(BINARY), &for_other_machines(folder.path())])
            .env("DOWNLOADS", format!("{DOWNLOADS}/")),
    );
    printed(
        Command::new("sha256sum")
            .args(["--check", "--strict", "SHA256SUMS"])
            .current_dir(at),
    );
    let read = |name: &str| fs::read_to_string(at.join(name)).unwrap();
    let release = format!("multi-attach-guard-{VERSION}");
    let archives = [here, there].map(|it| (it, format!("{release}-linux-{it}.tar.gz")));

    let provenance: Value =
        serde_json::from_str(&read(&format!("{release}.provenance.json"))).unwrap();
    let krew = documents(&read("multi-attach.yaml")).remove(0);
    let sums = read("SHA256SUMS");
    for (number, (architecture, archive)) in archives.iter().enumerate() {
        let subject = &provenance["subject"][number];
        assert_eq!(subject["name"], *archive);
        let platform = &krew["spec"]["platforms"][number];
        assert_eq!(platform["selector"]["matchLabels"]["arch"], *architecture);
        assert_eq!(platform["uri"], format!("{DOWNLOADS}/{archive}"));
        assert_eq!(platform["sha256"], subject["digest"]["sha256"]);
        let digest = platform["sha256"].as_str().unwrap();
        assert!(sums.contains(&format!("{digest}  {archive}\n")), "{sums}");
    }

    let materials: Value = serde_json::from_str(&read(&format!("{release}.spdx.json"))).unwrap();
    let packages = materials["packages"].as_array().unwrap();
    let has = |name: &str| packages.iter().any(|it| it["name"] == name);
    assert!(has("multi-attach-guard") && has("rustls") && has("tokio"));
    assert!(!has("insta"), "what only tests use is in no program");
    assert!(!has("clap_derive"), "what only compiles others neither");

    for (architecture, archive) in archives {
        let unpacked = at.join(architecture);
        fs::create_dir(&unpacked).unwrap();
        printed(
            Command::new("tar")
                .args(["--extract", "--file"])
                .arg(at.join(archive))
                .current_dir(&unpacked),
        );
        let licences = fs::read_to_string(unpacked.join("THIRD-PARTY-LICENSES")).unwrap();
        for package in packages.iter().filter(|it| it["name"] == "rustls") {
            let version = package["versionInfo"].as_str().unwrap();
            let (_, text) = licences
                .split_once(&format!("==== rustls {version} ("))
                .unwrap();
            assert!(
                text.contains("Permission is hereby granted"),
                "no text for rustls"
            );
        }
        for file in [
            "LICENSE",
            &format!("{release}.spdx.json"),
            "man/multi-attach-guard-check.1",
            "completions/multi-attach-guard.bash",
        ] {
            assert!(unpacked.join(file).exists(), "{file} is missing");
        }
    }
    let program = at.join(here).join("multi-attach-guard");
    let version = printed(Command::new(program).arg("--version"));
    assert_eq!(version, format!("multi-attach-guard {VERSION}\n"));
}

/// The same program, except that its header names the other architecture.
fn for_other_machines(folder: &Path) -> PathBuf {
    let file = folder.join("program");
    // With the right to execute it.
    fs::copy(BINARY, &file).unwrap();
    let mut bytes = fs::read(BINARY).unwrap();
    bytes[18] = if cfg!(target_arch = "aarch64") {
        0x3e
    } else {
        0xb7
    };
    fs::write(&file, bytes).unwrap();
    file
}

/// A release as it would be published: an archive with a program, and its checksum.
fn release(folder: &Path, program: &str) -> String {
    let scratch = folder.join("scratch");
    fs::create_dir_all(&scratch).unwrap();
    let file = scratch.join("multi-attach-guard");
    fs::write(&file, program).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let architecture = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    };
    let archive = format!("multi-attach-guard-{VERSION}-linux-{architecture}.tar.gz");
    printed(
        Command::new("tar")
            .args(["--create", "--gzip", "--file"])
            .arg(folder.join(&archive))
            .arg("--directory")
            .arg(scratch)
            .arg("."),
    );
    let sum = printed(Command::new("sha256sum").arg(&archive).current_dir(folder));
    fs::write(folder.join("SHA256SUMS"), &sum).unwrap();
    archive
}

fn fetch(downloads: &Path, home: &Path) -> Command {
    let mut command = Command::new(repository(".ci/hook"));
    command
        .args(["check", "a b"])
        .env("XDG_CACHE_HOME", home)
        .env("DOWNLOADS", format!("file://{}", downloads.display()))
        // What pipelines set for themselves.
        .env("VERSION", "9.9.9")
        .env_remove("SHA256");
    command
}

#[test]
fn a_released_program_runs_once_its_checksum_is_right() {
    let [downloads, home] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let folder = home.path().join("multi-attach-guard").join(VERSION);
    let refused = |command: &mut Command, reason: &str| {
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(said.contains(reason), "{said}");
        // Nothing of it is left.
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    };
    let hook = || fetch(downloads.path(), home.path());
    refused(&mut hook(), "could not be downloaded. Set DOWNLOADS");

    let archive = release(downloads.path(), "#!/bin/sh\nprintf '%s,' \"$@\"\n");
    refused(
        hook().env("SHA256", "0".repeat(64)),
        "and should be 00000000",
    );
    let genuine = fs::read(downloads.path().join(&archive)).unwrap();
    fs::write(downloads.path().join(&archive), b"something else").unwrap();
    refused(&mut hook(), "so it is not used");

    fs::write(downloads.path().join(&archive), genuine).unwrap();
    assert_eq!(printed(&mut hook()), "check,a b,");
    fs::remove_file(downloads.path().join(&archive)).unwrap();
    assert_eq!(printed(&mut hook()), "check,a b,", "it is kept");
}

#[test]
fn only_programs_for_linux_are_packed() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(repository(".ci/package"))
        .arg(folder.path())
        .arg(repository(".ci/package"))
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("is no program for Linux"), "{said}");
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
