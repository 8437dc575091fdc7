//! The chart with values other than the defaults.

use std::fs;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use crate::harness::{self, Needs};
use crate::rendered::{documents, helm, objects, printed, templated};
use crate::repository;

#[test]
fn lint_has_nothing_to_say() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    printed(helm(programs).args(["lint", "--strict"]).arg(repository("manifests/chart")));
}

/// `chart.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Values {
    pub(crate) overlays: Vec<(String, Vec<String>)>,
    reaching: Vec<(String, String, String, Value)>,
    refused: Vec<(String, String)>,
}

pub(crate) fn values() -> Values {
    serde_saphyr::from_str(include_str!("chart.yaml")).unwrap()
}

#[test]
fn values_reach_the_objects() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    for (kind, value, pointer, expected) in values().reaching {
        let objects = objects(&templated(programs, &[&value]));
        let found = objects[&(kind, "multi-attach-guard".to_owned())].pointer(&pointer);
        assert_eq!(found, Some(&expected), "{value}");
    }
}

#[test]
fn a_secret_of_ones_own_needs_no_cert_manager() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    let values =
        ["certificates.source=files", "certificates.secretName=own", "certificates.caBundle=Zm9v"];
    let rendered = templated(programs, &values);
    assert!(!rendered.contains("cert-manager"), "{rendered}");
    assert!(rendered.contains("secretName: \"own\""), "{rendered}");
    // No right to write any object.
    assert!(!rendered.contains("kind: Role\n"), "{rendered}");
    assert!(!rendered.contains("multi-attach-guard-certificates"));
    let webhooks: Vec<_> = documents(&rendered)
        .into_iter()
        .filter_map(|document| document["webhooks"].as_array().cloned())
        .flatten()
        .collect();
    assert!(webhooks.len() > 1);
    for webhook in webhooks {
        assert_eq!(webhook["clientConfig"]["caBundle"], "Zm9v", "{webhook}");
    }
}

#[test]
fn values_that_contradict_each_other_are_refused() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    for (values, at) in values().refused {
        let output = helm(programs)
            .args(["template", "multi-attach-guard"])
            .arg(repository("manifests/chart"))
            .arg(format!("--set={values}"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{values} was taken");
        assert!(said.contains(&at), "{values}: {said}");
    }
}

/// Helm 4 warns about each link at every call, so `files/` has copies.
#[test]
fn the_files_of_the_chart_are_those_of_the_kustomizations() {
    let mut folders = vec![repository("manifests/base"), repository("certs")];
    let components = fs::read_dir(repository("manifests/components")).unwrap();
    folders.extend(components.map(|folder| folder.unwrap().path()));
    for entry in fs::read_dir(repository("manifests/chart/files")).unwrap() {
        let entry = entry.unwrap();
        assert!(entry.file_type().unwrap().is_file(), "{entry:?} is a link");
        let originals = folders.iter().map(|folder| folder.join(entry.file_name()));
        let [original] = &originals.filter(|file| file.exists()).collect::<Vec<_>>()[..] else {
            panic!("{entry:?} has no single original");
        };
        let same = fs::read(original).unwrap() == fs::read(entry.path()).unwrap();
        assert!(same, "{} has changed: make chart", original.display());
    }
}

#[test]
fn a_packed_chart_renders_as_its_folder_does() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    let folder = tempfile::tempdir().unwrap();
    let chart = repository("manifests/chart");
    let package =
        folder.path().join(format!("multi-attach-guard-{}.tgz", env!("CARGO_PKG_VERSION")));
    printed(helm(programs).args(["package", "--destination"]).args([folder.path(), &chart]));
    let [unpacked, packed] = [chart, package].map(|chart| {
        printed(
            helm(programs)
                .args(["template", "guard", "--set"])
                .arg("fencing.enabled=true,monitoring.enabled=true,admissionPolicies.enabled=true")
                .arg(chart),
        )
    });
    assert_eq!(unpacked, packed);
}

#[test]
fn the_readme_is_the_one_that_the_values_make() {
    let written = printed(&mut Command::new(repository("manifests/chart/readme")));
    let readme = fs::read_to_string(repository("manifests/chart/README.md")).unwrap();
    assert!(written == readme, "values.yaml or Chart.yaml has changed: make chart");
}
