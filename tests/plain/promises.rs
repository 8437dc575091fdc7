//! The interfaces that others rely on: flags, keys of JSON and of the policy, annotations, metrics.
//!
//! `tests/data/promises.txt` lists those of the last release. A removed entry is a breaking change,
//! and CHANGELOG.md must name it in backticks under Unreleased. After a release, `PROMISES=write
//! cargo test --workspace --test plain promises` writes the new list.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use multi_attach_guard::cli::Cli;
use serde_json::{Value, json};
use source::policy_file;

use crate::output::{program, report};
use crate::running;

type Promises = BTreeSet<String>;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Flags, for example `flag check --format=json`.
fn flags() -> Promises {
    let program = Cli::command();
    let mut flags = Promises::new();
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        for argument in command.get_arguments() {
            let Some(long) = argument.get_long() else {
                continue;
            };
            let flag = format!("flag {} --{long}", command.get_name());
            for value in argument.get_possible_values() {
                flags.insert(format!("{flag}={}", value.get_name()));
            }
            flags.insert(flag);
        }
    }
    flags
}

/// The paths of all fields of a JSON value, with `[]` for the entries of a list. Names below
/// `patch`, and the kinds in counts, are not ours and are left out.
fn paths(at: &str, value: &Value, found: &mut Promises) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = format!("{at}.{name}");
                let is_counted = matches!(&**name, "skipped" | "unopened") && field.is_object();
                if *name != "patch" && !is_counted {
                    paths(&path, field, found);
                }
                found.insert(path);
            }
        }
        Value::Array(entries) => {
            for entry in entries {
                paths(&format!("{at}[]"), entry, found);
            }
        }
        _ => {}
    }
}

const CLAIM: &str = "\
# Source: web/templates/web.yaml
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {accessModes: [ReadWriteOnce], storageClassName: standard}
---
";

/// A Deployment with a fault and this annotation.
fn deployment(ignored: &str) -> String {
    format!(
        "# Source: web/templates/web.yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations: {{multi-attach-guard.dev/ignore: {ignored}, multi-attach-guard.dev/reason: x}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      volumes: [{{name: v, persistentVolumeClaim: {{claimName: data}}}}]
      containers: [{{name: c, volumeMounts: [{{name: v, mountPath: /v}}]}}]
"
    )
}

fn json(arguments: &[&str], folder: &Path) -> Value {
    // There is no helm on this PATH, so charts are not rendered.
    report(&program(arguments).current_dir(folder).env("PATH", folder).output().unwrap())
}

/// JSON keys, for example `json check .findings[].rule`, of a report that has every part.
fn json_keys() -> Promises {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (name, ignored) in [("loud", "no-such-rule"), ("quiet", "rolling-update-overlap")] {
        let manifests = format!("{CLAIM}{}", deployment(ignored));
        write(&format!("{name}/manifests.yaml"), &manifests);
    }
    write("broken.yaml", "apiVersion: v1\nkind: Pod\nspec: *nowhere\n");
    write("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n");
    write("chart/templates/a.yaml", "kind: {{ .Values.kind }}\n");
    let examples = file("examples/facts");
    let facts = examples.to_str().unwrap();
    let mut found = Promises::new();
    let check = ["check", "--format=json", "--facts", facts, "."];
    paths("json check ", &json(&check, folder.path()), &mut found);
    let capabilities = ["capabilities", "--format=json", "--facts", facts];
    paths("json capabilities ", &json(&capabilities, folder.path()), &mut found);
    found
}

/// Policy keys, for example `policy defaults.outcomes`, from the error about an unknown key.
fn policy_keys() -> Promises {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    let mut keys = Promises::new();
    for at in [
        "",
        "defaults.",
        "namespaces[].",
        "namespaces[].match.",
        "namespaces[].match.selector.",
        "namespaces[].match.selector.matchExpressions[].",
        "exemptions[].",
        "provisioners[].",
        "fencing.",
    ] {
        let keys_around = at.split_terminator('.').rev();
        let policy = keys_around.fold(json!({"x": 1}), |inner, key| match key.strip_suffix("[]") {
            Some(list) => json!({list: [inner]}),
            None => json!({key: inner}),
        });
        fs::write(&path, policy.to_string()).unwrap();
        let Err(refusal) = policy_file::effective(Some(&path)) else {
            panic!("{policy} is understood");
        };
        let error = refusal.to_string();
        let (_, known) = error.split_once("nown are ").unwrap_or_else(|| panic!("{error}"));
        keys.extend(
            known
                .replace(" and ", ", ")
                .split(", ")
                .map(|key| format!("policy {at}{}", key.trim())),
        );
    }
    keys
}

/// Metrics, for example `metric multi_attach_guard_reviews{decision}`, of a guard that has denied a
/// request. Metrics of a live cluster's view are not included.
async fn metrics() -> Promises {
    let server = running::serve(&[]).await;
    for path in ["/mutate", "/validate"] {
        server.review(path, &running::example()).await;
    }
    let (_, text) = server.admin("/metrics").await;
    let mut found = Promises::new();
    for line in text.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            found.insert(format!("metric {declared}"));
        } else if let Some((name, rest)) = line.split_once('{').filter(|_| !line.starts_with('#')) {
            let labels = rest.split_once('}').unwrap().0;
            for label in labels.split("\",").filter_map(|label| label.split_once('=')) {
                found.insert(format!("metric {name}{{{}}}", label.0.trim_start_matches(',')));
            }
        }
    }
    found
}

fn annotations() -> Promises {
    use engine::policy::keys;
    [keys::ACTION, keys::REMEDY, keys::REASON, keys::IGNORE]
        .map(|key| format!("annotation {key}"))
        .into()
}

/// The names in CHANGELOG.md between the first heading of a version and the next.
fn named_in_changelog() -> Promises {
    let changelog = fs::read_to_string(file("CHANGELOG.md")).unwrap();
    let unreleased = changelog.split("\n## ").nth(1).unwrap_or_default();
    unreleased.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[tokio::test]
async fn what_is_promised_is_kept_or_its_end_is_announced() {
    let now: Promises = [flags(), json_keys(), policy_keys(), annotations(), metrics().await]
        .into_iter()
        .flatten()
        .collect();
    for family in ["flag", "json check", "json capabilities", "policy", "annotation", "metric"] {
        assert!(now.iter().any(|promise| promise.starts_with(family)), "no {family} was found");
    }
    let path = file("tests/data/promises.txt");
    if std::env::var_os("PROMISES").is_some_and(|value| value == "write") {
        let lines: String = now.iter().map(|promise| format!("{promise}\n")).collect();
        fs::write(&path, lines).unwrap();
        return;
    }
    let promised = fs::read_to_string(path).unwrap();
    let named = named_in_changelog();
    let broken: Vec<&str> =
        promised.lines().filter(|line| !now.contains(*line) && !named.contains(*line)).collect();
    assert!(
        broken.is_empty(),
        "These were promised and are gone. Keep them, or name each as it stands here, in \
         backticks, in CHANGELOG.md under Unreleased:\n{}",
        broken.join("\n")
    );
}
