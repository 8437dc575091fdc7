//! The files that `.ci/package` makes from programs: `make dist` gives it the release's programs,
//! one for each architecture.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::output::{err, has};
use crate::harness::{self, Needs};
use crate::pages::{blocks, section};
use crate::rendered::{documents, printed, script};
use crate::repository;

const BINARY: &str = env!("CARGO_BIN_EXE_multi-attach-guard");
const VERSION: &str = env!("CARGO_PKG_VERSION");

const DOWNLOADS: &str = "https://downloads.example.com/v1";

/// This machine's architecture and the other one, as releases name them.
const ARCHITECTURES: [&str; 2] =
    if cfg!(target_arch = "aarch64") { ["arm64", "amd64"] } else { ["amd64", "arm64"] };

#[test]
fn archives_hold_what_their_papers_say() {
    let folder = tempfile::tempdir().unwrap();
    let at = &folder.path().join("dist");
    let [here, there] = ARCHITECTURES;
    let programs = programs(folder.path());
    printed(
        Command::new(repository(".ci/package"))
            .arg(at)
            .args(&programs)
            .env("DOWNLOADS", format!("{DOWNLOADS}/")),
    );
    script(at, "sha256sum --check --strict SHA256SUMS");
    let read = |name: &str| fs::read_to_string(at.join(name)).unwrap();
    let release = format!("multi-attach-guard-{VERSION}");
    let archives = [
        ("linux", here, format!("{release}-linux-{here}.tar.gz")),
        ("linux", there, format!("{release}-linux-{there}.tar.gz")),
        ("darwin", "arm64", format!("{release}-darwin-arm64.tar.gz")),
        ("windows", "amd64", format!("{release}-windows-amd64.zip")),
    ];

    let read_json = |name: &str| -> Value { serde_json::from_str(&read(name)).unwrap() };
    let provenance = read_json(&format!("{release}.provenance.json"));
    let krew = documents(&read("multi-attach.yaml")).remove(0);
    let sums = read("SHA256SUMS");
    let scoop = &read_json("multi-attach-guard.json")["architecture"]["64bit"];
    let formula = read("multi-attach-guard.rb");
    let subjects = provenance["subject"].as_array().unwrap();
    let digest_of = |name: &str| {
        let subject = subjects.iter().find(|subject| subject["name"] == name).unwrap();
        let digest = &subject["digest"]["sha256"];
        has(&sums, &format!("{}  {name}\n", digest.as_str().unwrap()));
        digest
    };
    for (number, (system, architecture, archive)) in archives.iter().enumerate() {
        digest_of(&wheel(system, architecture));
        let digest = digest_of(archive);
        let uri = format!("{DOWNLOADS}/{archive}");
        let platform = &krew["spec"]["platforms"][number];
        let labels = json!({"os": system, "arch": architecture});
        assert_eq!(platform["selector"]["matchLabels"], labels);
        assert_eq!(platform["uri"], uri);
        assert_eq!(platform["sha256"], *digest);
        if *system == "windows" {
            assert_eq!(scoop["url"], uri);
            assert_eq!(scoop["hash"], *digest);
        } else {
            has(&formula, &format!("url \"{uri}\""));
        }
    }
    script(at, "ruby -W -c multi-attach-guard.rb");

    for (system, architecture, archive) in archives {
        let unpacked = at.join(system).join(architecture);
        fs::create_dir_all(&unpacked).unwrap();
        unpack(&at.join(archive), &unpacked);
        let text = |name: &str| fs::read_to_string(unpacked.join(name)).unwrap();
        let bill: Value = serde_json::from_str(&text(&format!("{release}.spdx.json"))).unwrap();
        let beside = read_json(&format!("{release}-{system}-{architecture}.spdx.json"));
        assert_eq!(bill, beside);
        let packages = bill["packages"].as_array().unwrap();
        let is_listed = |name: &str| packages.iter().any(|package| package["name"] == name);
        for name in ["multi-attach-guard", "rustls", "tokio"] {
            assert!(is_listed(name), "{name}");
        }
        assert!(!is_listed("insta"), "what only tests use is in no program");
        assert!(!is_listed("clap_derive"), "what only compiles others neither");
        assert_eq!(is_listed("windows-sys"), system == "windows");

        let licences = text("THIRD-PARTY-LICENSES");
        for package in packages.iter().filter(|package| package["name"] == "rustls") {
            let version = package["versionInfo"].as_str().unwrap();
            let head = format!("==== rustls {version} (");
            let (_, licence) = licences.split_once(&head).unwrap();
            has(licence, "Permission is hereby granted");
        }
        for file in
            ["LICENSE", "man/multi-attach-guard-check.1", "completions/multi-attach-guard.bash"]
        {
            assert!(unpacked.join(file).exists(), "{file} is missing");
        }

        unpack(&at.join(wheel(system, architecture)), &unpacked);
        let program =
            if system == "windows" { "multi-attach-guard.exe" } else { "multi-attach-guard" };
        let installed = format!("multi_attach_guard-{VERSION}.data/scripts/{program}");
        script(&unpacked, &format!("cmp {program} {installed}"));
        let digest =
            format!("openssl dgst -sha256 -binary {program} | base64 | tr +/ -_ | tr -d =");
        let recorded = format!("{installed},sha256={},", script(&unpacked, &digest).trim());
        let info = format!("multi_attach_guard-{VERSION}.dist-info");
        has(&text(&format!("{info}/RECORD")), &recorded);
        assert_eq!(text(&format!("{info}/licenses/THIRD-PARTY-LICENSES")), licences);
    }
    let program = at.join("linux").join(here).join("multi-attach-guard");
    let version = printed(Command::new(program).arg("--version"));
    assert_eq!(version, format!("multi-attach-guard {VERSION}\n"));
    assert!(at.join("windows/amd64/multi-attach-guard.exe").exists());
}

/// The name of a wheel, by which pip finds the one for its machine.
fn wheel(system: &str, architecture: &str) -> String {
    let tags = match (system, architecture) {
        ("linux", "amd64") => "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
        ("linux", _) => "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        ("darwin", _) => "macosx_11_0_arm64",
        _ => "win_amd64",
    };
    format!("multi_attach_guard-{VERSION}-py3-none-{tags}.whl")
}

fn unpack(archive: &Path, folder: &Path) {
    let is_zip = archive.extension().is_some_and(|extension| extension != "gz");
    let unpack = if is_zip { "unzip -q" } else { "tar -xf" };
    script(folder, &format!("{unpack} '{}'", archive.display()));
}

/// This machine's program, and files that have only the headers of other programs.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let mut other = fs::read(BINARY).unwrap();
    other[18] = match ARCHITECTURES[1] {
        "amd64" => 0x3e,
        _ => 0xb7,
    };
    let darwin = [0xcf, 0xfa, 0xed, 0xfe, 0x0c, 0, 0, 1].repeat(4);
    // The DOS header, which gives the position of the Windows header.
    let mut windows = vec![0; 64];
    windows[..2].copy_from_slice(b"MZ");
    windows[60] = 64;
    windows.extend(b"PE\0\0\x64\x86");
    let others =
        [("linux", other), ("darwin", darwin), ("windows", windows)].map(|(name, bytes)| {
            let file = folder.join(name);
            fs::write(&file, bytes).unwrap();
            file
        });
    [PathBuf::from(BINARY)].into_iter().chain(others).collect()
}

/// A release as it would be published: an archive with a program and its checksum, and a wheel.
pub(crate) fn release(folder: &Path, program: &str) -> String {
    let scratch = folder.join("scratch");
    fs::create_dir_all(&scratch).unwrap();
    let file = scratch.join("multi-attach-guard");
    fs::write(&file, program).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let [architecture, _] = ARCHITECTURES;
    let archive = format!("multi-attach-guard-{VERSION}-linux-{architecture}.tar.gz");
    let pack = format!("tar -czf {archive} -C scratch . && sha256sum {archive} > SHA256SUMS");
    script(folder, &pack);
    let mut wheel = Command::new(repository(".ci/wheels.py"));
    printed(wheel.arg(folder).arg(scratch).arg(format!("linux-{architecture}")));
    archive
}

#[test]
fn a_released_program_runs_once_its_checksum_is_right() {
    let [downloads, folder] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let refused = |command: &mut Command, reason: &str| {
        let output = command.output().unwrap();
        assert!(!output.status.success());
        has(err(&output), reason);
        // No part of the download is left.
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    };
    let fetch = || {
        let mut command = Command::new(repository(".ci/fetch"));
        let address = format!("file://{}", downloads.path().display());
        command.arg(folder.path()).env("DOWNLOADS", address);
        command.env_remove("VERSION").env_remove("SHA256");
        command
    };
    refused(&mut fetch(), "could not be downloaded. Set DOWNLOADS");

    let archive =
        downloads.path().join(release(downloads.path(), "#!/bin/sh\nprintf '%s,' \"$@\"\n"));
    let zeros = "0".repeat(64);
    refused(fetch().env("SHA256", zeros), "and should be 00000000");
    let genuine = fs::read(&archive).unwrap();
    fs::write(&archive, b"something else").unwrap();
    refused(&mut fetch(), "so it is not used");

    fs::write(&archive, genuine).unwrap();
    printed(&mut fetch());
    let mut program = Command::new(folder.path().join("multi-attach-guard"));
    assert_eq!(printed(program.args(["check", "a b"])), "check,a b,");
}

#[test]
fn a_signature_is_verified_as_it_is_documented() {
    harness::or_skip!(harness::require_tool("cosign"));
    let folder = tempfile::tempdir().unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("COSIGN_KEY", folder.path().join("cosign.key"))
            .env("COSIGN_PASSWORD", "throw-away");
        command.output().unwrap()
    };
    let sums = folder.path().join("SHA256SUMS");
    fs::write(folder.path().join("archive"), "archive").unwrap();
    let sum = run("sha256sum", &["archive"]).stdout;
    fs::write(&sums, &sum).unwrap();
    let made = run("cosign", &["generate-key-pair"]);
    assert!(made.status.success(), "{made:?}");
    let signed = run(repository(".ci/sign").to_str().unwrap(), &["."]);
    assert!(signed.status.success(), "{signed:?}");
    let section = section("install.md", "Verify a release");
    let commands = blocks(&section);
    assert_eq!(commands.len(), 2, "{commands:?}");
    for (_, command) in commands {
        let verify = || run("bash", &["-e", "-o", "pipefail", "-c", command]);
        let genuine = verify();
        assert!(genuine.status.success(), "{command}: {genuine:?}");
        fs::write(&sums, [sum.as_slice(), b"\n"].concat()).unwrap();
        let changed = verify();
        assert!(!changed.status.success(), "{command}: {changed:?}");
        fs::write(&sums, &sum).unwrap();
    }
    release(folder.path(), "#!/bin/sh\n");
    assert!(run(repository(".ci/sign").to_str().unwrap(), &["."]).status.success());
    let fetch = format!(
        "SHA256= VERSION= PUBLIC_KEY=cosign.pub DOWNLOADS=file://$PWD {} fetched",
        repository(".ci/fetch").display()
    );
    let genuine = run("bash", &["-c", &fetch]);
    assert!(genuine.status.success(), "{genuine:?}");
    fs::write(&sums, [fs::read(&sums).unwrap(), b"\n".to_vec()].concat()).unwrap();
    let changed = run("bash", &["-c", &fetch]);
    assert!(!changed.status.success());
    has(err(&changed), "SHA256SUMS is not signed by cosign.pub");
}

#[test]
fn only_programs_are_packed() {
    let folder = tempfile::tempdir().unwrap();
    let script = repository(".ci/package");
    let mut package = Command::new(&script);
    let output = package.arg(folder.path()).arg(&script).output().unwrap();
    assert!(!output.status.success());
    has(err(&output), "is no program for Linux, macOS or Windows");
}

/// krew links the program under this name, by which kubectl finds it.
#[test]
fn kubectl_finds_it_as_a_plugin() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    let folder = tempfile::tempdir().unwrap();
    symlink(BINARY, folder.path().join("kubectl-multi_attach")).unwrap();
    let mut kubectl = Command::new(programs.path("kubectl"));
    kubectl
        .args(["multi-attach", "rules", "rolling-update-overlap"])
        .env("PATH", folder.path())
        .env("HOME", folder.path());
    assert!(printed(&mut kubectl).contains("rolling-update-overlap"));
}
