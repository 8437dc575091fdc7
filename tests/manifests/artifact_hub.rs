//! The chart as others find and fetch it: its metadata for Artifact Hub, and from a registry.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::harness::process::Program;
use crate::harness::{self, Needs, until};
use crate::rendered::{documents, helm, printed};
use crate::repository;

/// <https://artifacthub.io/docs/topics/annotations/helm/>
const CATEGORIES: &str = "ai-machine-learning database integration-delivery monitoring-logging \
    networking security storage streaming-messaging";
const KINDS: &str = "added changed deprecated removed fixed security";

fn annotation(chart: &Value, name: &str) -> Value {
    let text = chart["annotations"][format!("artifacthub.io/{name}")]
        .as_str()
        .unwrap();
    serde_saphyr::from_str(text).unwrap()
}

/// Artifact Hub ignores an annotation that it cannot read, and says so to nobody.
#[test]
fn artifact_hub_can_read_the_metadata() {
    let text = fs::read_to_string(repository("manifests/chart/Chart.yaml")).unwrap();
    let chart = documents(&text).remove(0);
    for field in ["home", "icon"] {
        let url = chart[field].as_str().unwrap();
        assert!(url.starts_with("https://"), "{field}: {url}");
    }
    assert!(!chart["sources"].as_array().unwrap().is_empty());
    assert!(!chart["maintainers"][0]["name"].as_str().unwrap().is_empty());
    let category = chart["annotations"]["artifacthub.io/category"]
        .as_str()
        .unwrap();
    assert!(CATEGORIES.split(' ').any(|it| it == category), "{category}");
    for link in annotation(&chart, "links").as_array().unwrap() {
        assert!(
            link["url"].as_str().unwrap().starts_with("https://"),
            "{link}"
        );
        assert!(link["name"].is_string(), "{link}");
    }
    let changes = annotation(&chart, "changes");
    let changes = changes.as_array().unwrap();
    assert!(!changes.is_empty());
    for change in changes {
        let mut kinds = KINDS.split(' ');
        assert!(kinds.any(|it| change["kind"] == it), "{change}");
        assert!(!change["description"].as_str().unwrap().is_empty());
    }
}

#[test]
fn changes_are_those_of_the_changelog() {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("manifests/chart");
    fs::create_dir_all(&chart).unwrap();
    for file in [
        "CHANGELOG.md",
        "manifests/chart/Chart.yaml",
        "manifests/chart/changes",
    ] {
        fs::copy(repository(file), folder.path().join(file)).unwrap();
    }
    printed(&mut Command::new(chart.join("changes")));
    let [was, is] = [repository("manifests/chart"), chart]
        .map(|folder| fs::read_to_string(folder.join("Chart.yaml")).unwrap());
    assert!(was == is, "CHANGELOG.md has changed: make chart");
}

#[test]
fn a_registry_keeps_the_chart_as_it_is() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    let registry = harness::or_skip!(harness::require_tool("docker-registry"));
    let folder = tempfile::tempdir().unwrap();
    let configuration = folder.path().join("registry.yaml");
    let stored = folder.path().join("stored");
    let settings = format!(
        "version: 0.1\nlog: {{level: info}}\nhttp: {{addr: '127.0.0.1:0'}}\nstorage: {{filesystem: {{rootdirectory: '{}'}}}}\n",
        stored.display()
    );
    fs::write(&configuration, settings).unwrap();
    let arguments = ["serve".to_owned(), configuration.display().to_string()];
    let registry = Program::start(
        "registry",
        &registry,
        &arguments,
        &[],
        &folder.path().join("run"),
        None,
    )
    .unwrap();
    let address = until("the registry's address", Duration::from_secs(60), || {
        let log = registry.log();
        let (_, address) = log.split_once("listening on ").ok_or(log.clone())?;
        let end = address.find(|it: char| !it.is_ascii_digit() && it != '.' && it != ':');
        Ok(address[..end.ok_or(log.clone())?].to_owned())
    });

    let version = env!("CARGO_PKG_VERSION");
    let package = folder
        .path()
        .join(format!("multi-attach-guard-{version}.tgz"));
    printed(
        helm(programs)
            .args(["package", "--destination"])
            .arg(folder.path())
            .arg(repository("manifests/chart")),
    );
    let charts = format!("oci://{address}/charts");
    printed(
        helm(programs)
            .arg("push")
            .arg(&package)
            .args([&charts, "--plain-http"]),
    );
    let chart = format!("{charts}/multi-attach-guard");
    let version = format!("--version={version}");
    let pulled = folder.path().join("pulled");
    fs::create_dir(&pulled).unwrap();
    printed(
        helm(programs)
            .args(["pull", &chart, &version, "--plain-http", "--destination"])
            .arg(&pulled),
    );
    let [sent, received] = [folder.path(), &pulled]
        .map(|folder| fs::read(folder.join(package.file_name().unwrap())).unwrap());
    assert!(sent == received);
    let rendered = |chart: &std::ffi::OsStr| {
        let mut command = helm(programs);
        command
            .args(["template", "guard", "--plain-http", &version])
            .arg(chart);
        printed(&mut command)
    };
    assert_eq!(
        rendered(chart.as_ref()),
        rendered(repository("manifests/chart").as_os_str())
    );
}
