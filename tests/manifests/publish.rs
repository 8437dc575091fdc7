//! The parts that a release publishes, on a registry of this machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::output::{code, err, has};
use crate::harness::{self, Needs};
use crate::rendered::printed;
use crate::repository;

/// A copy of the repository with uncommitted changes, because the dry run writes into it.
fn copy(folder: &Path) {
    let copy = r#"git clone --quiet --shared . "$COPY"
        git ls-files -z --cached --others --exclude-standard | while IFS= read -rd '' file; do
            [[ ! -e $file ]] || cp -P --parents "$file" "$COPY"
        done"#;
    let mut bash = Command::new("bash");
    bash.args(["-euc", copy]).env("COPY", folder);
    printed(bash.current_dir(repository(".")));
}

#[test]
fn the_chart_installs_the_image_that_was_pushed() {
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    for program in ["buildah", "docker-registry"] {
        harness::or_skip!(harness::require_tool(program));
    }
    let folder = tempfile::tempdir().unwrap();
    copy(folder.path());
    for (architecture, machine) in [("amd64", 0x3e), ("arm64", 0xb7)] {
        let at = folder.path().join("target/programs/linux").join(architecture);
        fs::create_dir_all(&at).unwrap();
        let mut program = fs::read(env!("CARGO_BIN_EXE_multi-attach-guard")).unwrap();
        program[18] = machine;
        let file = at.join("multi-attach-guard");
        fs::write(&file, program).unwrap();
        printed(Command::new("chmod").arg("755").arg(file));
        let renderers = folder.path().join("target/renderers/linux").join(architecture);
        fs::create_dir_all(&renderers).unwrap();
        fs::write(renderers.join("helm"), architecture).unwrap();
    }
    let helm = plane.program("helm");
    let inherited = std::env::var("PATH").unwrap();
    let path = format!("{}:{inherited}", helm.parent().unwrap().display());
    let mut dry_run = Command::new(folder.path().join(".ci/release-dry-run"));
    dry_run.arg("target/dry-run").arg(plane.kubeconfig());
    printed(dry_run.current_dir(&folder).env("PATH", path));
    let read =
        |name: &str| fs::read_to_string(folder.path().join("target/dry-run").join(name)).unwrap();
    let pushed = read("pushed");
    let (image, digest) = pushed.lines().next().unwrap().split_once('@').unwrap();
    let deployments = plane.get(&["deployments", "--namespace=multi-attach-guard"]);
    let container = &deployments["items"][0]["spec"]["template"]["spec"]["containers"][0];
    let name = image.rsplit_once(':').unwrap().0;
    assert_eq!(container["image"], format!("{name}@{digest}"));
    let confined = &container["securityContext"];
    assert_eq!(confined["readOnlyRootFilesystem"], true);
    let chart = pushed.lines().nth(1).unwrap();
    assert!(chart.contains("/charts/multi-attach-guard:"), "{chart}");
    let check = pushed.lines().nth(2).unwrap();
    assert!(check.starts_with(&format!("{image}-check@sha256:")), "{check}");
    for architecture in ["amd64", "arm64"] {
        assert!(read("SHA256SUMS").contains(&format!("-linux-{architecture}.tar.gz\n")));
    }
}

#[test]
fn a_tag_that_is_not_the_version_publishes_nothing() {
    let notes = Command::new(repository(".ci/release-notes")).arg("v99.0.0").output().unwrap();
    assert_eq!(code(&notes), 1);
    has(err(&notes), "tag v");
}

/// The words that follow each of `marks` in a text, up to the next slash, space or end of line.
fn after<'t>(text: &'t str, marks: &[&'t str]) -> Vec<&'t str> {
    let rests = marks.iter().flat_map(|mark| text.split(*mark).skip(1));
    let words = rests.map(|rest| rest.split(['/', ' ', '\n']).next());
    words.map(Option::unwrap_or_default).collect()
}

/// Pages name the release, because `main` can change under users who copy a line.
#[test]
fn lines_to_copy_name_this_release() {
    let marks = [
        "uses: multi-attach-guard/multi-attach-guard@",
        "raw.githubusercontent.com/multi-attach-guard/multi-attach-guard/",
        "github.com/multi-attach-guard/multi-attach-guard --tag ",
        "    rev: ",
    ];
    let release = concat!("v", env!("CARGO_PKG_VERSION"));
    for (page, lines) in [("docs/gitops.md", 6), ("docs/policy.md", 1), ("examples/policy.yaml", 1)]
    {
        let text = fs::read_to_string(repository(page)).unwrap();
        assert_eq!(after(&text, &marks), vec![release; lines], "{page}");
    }
}

/// A tag can be moved; a digest cannot.
#[test]
fn actions_are_pinned_by_digest() {
    let workflows =
        fs::read_dir(repository(".github/workflows")).unwrap().map(|entry| entry.unwrap().path());
    for file in workflows.chain([repository("action.yml")]) {
        let text = fs::read_to_string(&file).unwrap();
        let actions: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_once("uses: "))
            .map(|(_, action)| action)
            .collect();
        assert!(!actions.is_empty(), "{}", file.display());
        for action in actions {
            let pin = action.split_once('@').map(|(_, rest)| rest);
            let digest = pin.and_then(|pinned| pinned.split(' ').next()).unwrap_or_default();
            let is_digest = digest.len() == 40 && digest.bytes().all(|c| c.is_ascii_hexdigit());
            assert!(is_digest, "{}: {action}", file.display());
        }
    }
}
