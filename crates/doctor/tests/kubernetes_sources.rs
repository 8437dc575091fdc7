//! Every line about volumes that Kubernetes' own sources write is explained: those of the scheduler, the
//! attach-detach controller, the kubelet and the binder.
//!
//! The sources are those that `tests/control-plane/build` has fetched, of each minor that it has built.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "the panic and its message are the report, and sources are files"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use doctor::diagnosis::{explain, explanations};

/// A file of Kubernetes, and the words after which a text for people follows.
const PLACES: [(&str, &[&str]); 11] = [
    (
        "pkg/scheduler/framework/plugins/volumebinding/binder.go",
        &[
            "ErrReason",
            "Errorf(\"provisioning failed",
            "Errorf(\"failed to find storage class",
            "Errorf(\"no class for claim",
        ],
    ),
    (
        "pkg/scheduler/framework/plugins/volumebinding/volume_binding.go",
        &["Errorf(\"persistentvolumeclaim", "Errorf(\"waiting for ephemeral"],
    ),
    ("pkg/scheduler/framework/plugins/volumezone/volume_zone.go", &["ErrReason"]),
    ("pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go", &["ErrReason"]),
    (
        "pkg/scheduler/framework/plugins/nodevolumelimits/csi.go",
        &["ErrReason", "driverNotInstalledMsg := fmt.Sprintf("],
    ),
    ("pkg/scheduler/framework/plugins/interpodaffinity/filtering.go", &["ErrReason"]),
    ("pkg/controller/volume/attachdetach/reconciler/reconciler.go", &["GenerateMsg("]),
    (
        "pkg/controller/volume/persistentvolume/pv_controller.go",
        &[
            "events.FailedBinding, ",
            "\"ClaimLost\", ",
            "\"ClaimMisbound\", ",
            "claimMsg := fmt.Sprintf(",
            "msg := fmt.Sprintf(\"Cannot bind",
            "msg := fmt.Sprintf(\"Waiting",
            "message := \"waiting",
            "message = fmt.Sprintf(\"waiting",
            "strerr := fmt.Sprintf(\"Failed to provision",
        ],
    ),
    (
        "pkg/volume/util/operationexecutor/operation_generator.go",
        &[
            "GenerateError(\"AttachVolume.Attach ",
            "GenerateError(\"DetachVolume.Detach ",
            "GenerateError(\"MountVolume.",
            "GenerateError(\"UnmountVolume.TearDown",
            "GenerateError(\"MapVolume.SetUpDevice",
            "New(\"volume uses the ReadWriteOncePod",
        ],
    ),
    (
        "pkg/volume/csi/csi_attacher.go",
        &["New(\"volume attachment ", "Errorf(\"timed out waiting for external-attacher"],
    ),
    ("pkg/kubelet/volumemanager/populator/desired_state_of_world_populator.go", &["New(\"PVC "]),
];

/// Texts that say nothing of why a pod waits for a volume.
const OTHERS: [&str; 5] = [
    "MountVolume.MarkDeviceAsMounted failed",
    "MountVolume.MarkVolumeAsMounted failed",
    "MountVolume.FindPluginBySpec failed",
    "MountVolume.MountOptionSupport check failed",
    // The watch of the API server has ended, and the controller asks again.
    "volume attachment watch channel had been closed",
];

/// The texts in the line that follow one of the words, as an Event has them: with something in each
/// place to be filled, and the volume.
fn texts<'l>(line: &'l str, words: &'l [&str]) -> impl Iterator<Item = String> + 'l {
    let is_comment = line.trim_start().starts_with("//");
    words.iter().filter(move |_| !is_comment).filter_map(|words| {
        let start = words.find('"').unwrap_or(words.len());
        let at = line.find(words)? + start;
        let text = line[at..].split_once('"')?.1.split_once('"')?.0;
        let filled = ["%v", "%s", "%d", "%w"]
            .iter()
            .fold(text.replace("%q", "\"x\""), |text, verb| text.replace(verb, "x"));
        filled.contains(' ').then(|| format!("{filled} for volume \"x\""))
    })
}

/// Where the sources of a release are, if they were fetched.
fn sources(release: &str) -> Option<PathBuf> {
    let output = Command::new("go").args(["env", "GOMODCACHE"]).output().ok()?;
    let cache = String::from_utf8(output.stdout).ok()?;
    let folder = Path::new(cache.trim()).join(format!("k8s.io/kubernetes@{release}"));
    folder.is_dir().then_some(folder)
}

/// A release in which the words of an entry begin or end.
struct Border {
    /// The entry's own statement.
    stated: &'static str,
    file: &'static str,
    words: &'static str,
    /// The release next to the border that has the words.
    has: &'static str,
    /// The release on the other side.
    lacks: &'static str,
}

const RECONCILER: &str = "pkg/controller/volume/attachdetach/reconciler/reconciler.go";

const BORDERS: [Border; 2] = [
    Border {
        stated: ", since 1.36.4",
        file: RECONCILER,
        words: "GenerateMsg(\"Waiting for detach\", msg)",
        has: "v1.36.4",
        lacks: "v1.36.3",
    },
    Border {
        stated: ", until 1.36.3",
        file: RECONCILER,
        words: "GenerateMsg(\"Multi-Attach error\", msg)",
        has: "v1.36.3",
        lacks: "v1.36.4",
    },
];

/// Whether the explanation states a release with its patch.
fn states_a_patch(says: &str) -> bool {
    says.rsplit(' ').next().is_some_and(|word| word.matches('.').count() == 2)
}

#[test]
fn words_begin_and_end_in_the_releases_that_entries_state() {
    let mut with_patches =
        explanations().map(|entry| entry.says).filter(|says| states_a_patch(says));
    assert!(with_patches.all(|says| BORDERS.iter().any(|border| says.ends_with(border.stated))));
    for Border { stated, file, words, has, lacks } in BORDERS {
        assert!(explanations().any(|entry| entry.says.ends_with(stated)), "{stated}");
        for (release, expected) in [(has, true), (lacks, false)] {
            let module = format!("k8s.io/kubernetes@{release}");
            let fetched = Command::new("go")
                .args(["mod", "download", &module])
                .current_dir(std::env::temp_dir())
                .status();
            let Some(folder) = fetched.ok().and_then(|_| sources(release)) else {
                assert!(std::env::var_os("CI").is_none(), "go cannot fetch {module}");
                eprintln!("SKIPPED: go cannot fetch {module}.");
                return;
            };
            let source = fs::read_to_string(folder.join(file)).unwrap();
            assert_eq!(source.contains(words), expected, "{words} in {release}");
        }
    }
}

#[test]
fn every_line_about_volumes_is_explained() {
    let minors = include_str!("../../../tests/control-plane/minors");
    let mut read = 0;
    let mut unknown = BTreeSet::new();
    for release in minors.lines() {
        let Some(folder) = sources(release) else {
            continue;
        };
        for (file, words) in PLACES {
            let source = fs::read_to_string(folder.join(file))
                .unwrap_or_else(|error| panic!("{release} {file}: {error}"));
            let found: Vec<String> = source.lines().flat_map(|line| texts(line, words)).collect();
            // The newest has a text in each place; an older one may have it in another file.
            let is_newest = Some(release) == minors.lines().next();
            assert!(!is_newest || !found.is_empty(), "{release} {file} has none of {words:?}");
            read += found.len();
            for text in found {
                if explain(&text).known.is_empty()
                    && !OTHERS.iter().any(|other| text.starts_with(other))
                {
                    unknown.insert(format!("{release} {file}: {text}"));
                }
            }
        }
    }
    if read == 0 {
        assert!(
            std::env::var_os("CI").is_none(),
            "There are no sources of Kubernetes, and with CI set nothing is skipped. Fetch them: tests/control-plane/build"
        );
        eprintln!(
            "SKIPPED: there are no sources of Kubernetes. Fetch them: tests/control-plane/build"
        );
        return;
    }
    assert!(
        unknown.is_empty(),
        "crates/doctor/src/messages.yaml lacks:\n{}",
        Vec::from_iter(unknown).join("\n")
    );
}
