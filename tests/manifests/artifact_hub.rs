//! The chart's metadata for Artifact Hub.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::rendered::{documents, printed};
use crate::repository;

/// <https://artifacthub.io/docs/topics/annotations/helm/>
const CATEGORIES: &str = "ai-machine-learning database integration-delivery monitoring-logging \
    networking security storage streaming-messaging";
const KINDS: &str = "added changed deprecated removed fixed security";

fn annotation(chart: &Value, name: &str) -> Value {
    let text = chart["annotations"][format!("artifacthub.io/{name}")].as_str().unwrap();
    serde_saphyr::from_str(text).unwrap()
}

/// Artifact Hub silently ignores an annotation that it cannot read.
#[test]
fn artifact_hub_can_read_the_metadata() {
    let text = fs::read_to_string(repository("manifests/chart/Chart.yaml")).unwrap();
    let chart = documents(&text).remove(0);
    let is_url = |value: &Value| value.as_str().unwrap().starts_with("https://");
    assert!(is_url(&chart["home"]) && is_url(&chart["icon"]), "{chart}");
    assert!(!chart["sources"].as_array().unwrap().is_empty());
    assert!(!chart["maintainers"][0]["name"].as_str().unwrap().is_empty());
    let category = chart["annotations"]["artifacthub.io/category"].as_str().unwrap();
    assert!(CATEGORIES.split(' ').any(|known| known == category), "{category}");
    for link in annotation(&chart, "links").as_array().unwrap() {
        assert!(is_url(&link["url"]) && link["name"].is_string(), "{link}");
    }
    let listed = annotation(&chart, "changes");
    let changes = listed.as_array().unwrap();
    assert!(!changes.is_empty());
    for change in changes {
        let mut kinds = KINDS.split(' ');
        assert!(kinds.any(|kind| change["kind"] == kind), "{change}");
        assert!(!change["description"].as_str().unwrap().is_empty());
    }
}

#[test]
fn changes_are_those_of_the_changelog() {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("manifests/chart");
    fs::create_dir_all(&chart).unwrap();
    for file in ["CHANGELOG.md", "manifests/chart/Chart.yaml", "manifests/chart/changes"] {
        fs::copy(repository(file), folder.path().join(file)).unwrap();
    }
    printed(&mut Command::new(chart.join("changes")));
    let [was, is] = [repository("manifests/chart"), chart]
        .map(|place| fs::read_to_string(place.join("Chart.yaml")).unwrap());
    assert!(was == is, "CHANGELOG.md has changed: make chart");
}
