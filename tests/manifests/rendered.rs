//! Manifests as kustomize and Helm render them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::chart;
use crate::harness::programs::Programs;
use crate::harness::{self, Needs};
use crate::repository;

/// Objects by kind and name.
pub(crate) type Objects = BTreeMap<(String, String), Value>;

/// The base, which can be installed alone, as a path from the folder of overlays.
pub(crate) const BASE: &str = "../base";

/// The output of a command.
///
/// # Panics
///
/// If it ends with a code other than 0, with its output.
pub(crate) fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:#?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The output of a script that runs in this folder.
pub(crate) fn script(folder: &Path, text: &str) -> String {
    let mut bash = Command::new("bash");
    printed(bash.args(["-euc", text]).current_dir(folder))
}

pub(crate) fn helm(programs: &Programs) -> Command {
    helm_called("helm", programs)
}

/// The same for `helm3`.
pub(crate) fn helm_called(name: &str, programs: &Programs) -> Command {
    let mut command = Command::new(programs.path(name));
    // Without the plugins and repositories of the user who runs the tests.
    let nowhere = concat!(env!("CARGO_TARGET_TMPDIR"), "/helm");
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(variable, nowhere);
    }
    command
}

/// The chart, rendered with these values.
pub(crate) fn templated(programs: &Programs, values: &[impl Display]) -> String {
    let mut command = helm(programs);
    command
        .args(["template", "multi-attach-guard"])
        .arg(repository("manifests/chart"))
        .arg("--namespace=multi-attach-guard");
    command.args(values.iter().map(|value| format!("--set={value}")));
    printed(&mut command)
}

pub(crate) fn built(programs: &Programs, overlay: &str) -> String {
    let mut command = Command::new(programs.path("kustomize"));
    let folder = repository("manifests/overlays").join(overlay);
    printed(command.arg("build").arg(folder))
}

pub(crate) fn documents(yaml: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

pub(crate) fn objects(yaml: &str) -> Objects {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    documents(yaml)
        .into_iter()
        .map(|object| ((text(&object["kind"]), text(&object["metadata"]["name"])), object))
        .collect()
}

/// Parses the policy; a file with only comments, or an empty one, means `{}`.
fn read_policy(objects: &mut Objects) {
    let key = ("ConfigMap".to_owned(), "multi-attach-guard".to_owned());
    let policy = &mut objects.get_mut(&key).unwrap()["data"]["policy.yaml"];
    let read: Option<BTreeMap<String, Value>> =
        serde_saphyr::from_str(policy.as_str().unwrap()).unwrap();
    *policy = serde_json::to_value(read.unwrap_or_default()).unwrap();
}

#[test]
fn kustomize_and_helm_render_the_same_objects() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    for (overlay, values) in chart::values().overlays {
        let mut kustomized = objects(&built(programs, &overlay));
        let mut templated = objects(&templated(programs, &values));
        // Helm makes the namespace itself, with --create-namespace.
        let namespace = ("Namespace".to_owned(), "multi-attach-guard".to_owned());
        assert!(kustomized.remove(&namespace).is_some());
        read_policy(&mut kustomized);
        read_policy(&mut templated);
        let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&kustomized), names(&templated), "{overlay}");
        for (name, object) in kustomized {
            assert_eq!(object, templated[&name], "{overlay}: {name:?}");
        }
    }
}

#[test]
fn strict_fails_in_every_entry() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    let objects = objects(&built(programs, "strict"));
    let entries = objects.values().filter_map(|object| object["webhooks"].as_array());
    let policies: Vec<&Value> =
        entries.flatten().map(|webhook| &webhook["failurePolicy"]).collect();
    assert!(policies.len() > 1);
    assert!(policies.iter().all(|policy| **policy == "Fail"), "{policies:?}");
}
