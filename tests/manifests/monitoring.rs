//! The queries of the overlay `monitoring` for Prometheus and Grafana.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::output::has;
use crate::harness::{self, ControlPlane, Needs};
use crate::installed::{account, grant, options};
use crate::rendered::{documents, printed};
use crate::repository;

const FOLDER: &str = "manifests/components/monitoring";

/// The groups of all rule files.
fn groups() -> Vec<Value> {
    ["prometheus-rule.yaml", "volume-alerts.yaml"]
        .map(|file| fs::read_to_string(repository(FOLDER).join(file)).unwrap())
        .map(|text| documents(&text)[0]["spec"]["groups"][0].clone())
        .to_vec()
}

fn rules() -> Vec<Value> {
    let rules = |group: Value| group["rules"].as_array().unwrap().clone();
    groups().into_iter().flat_map(rules).collect()
}

/// Every expression of the rules and the dashboard.
fn expressions() -> Vec<String> {
    let text = fs::read_to_string(repository(FOLDER).join("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let rules = rules();
    targets.chain(&rules).map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn promtool_takes_the_rules_and_they_fire_when_they_should() {
    let promtool = harness::or_skip!(harness::require_tool("promtool"));
    let folder = tempfile::tempdir().unwrap();
    let alerts = folder.path().join("rules.yaml");
    fs::write(&alerts, json!({"groups": groups()}).to_string()).unwrap();
    printed(Command::new(&promtool).args(["check", "rules", "--lint-fatal"]).arg(&alerts));
    let mut cases: Value = serde_saphyr::from_str(include_str!("alerts.yaml")).unwrap();
    cases["rule_files"] = json!(["rules.yaml"]);
    let tests = folder.path().join("tests.yaml");
    fs::write(&tests, cases.to_string()).unwrap();
    printed(Command::new(&promtool).args(["test", "rules"]).arg(&tests));
    let fired: BTreeSet<&str> = cases["tests"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|case| case["alert_rule_test"].as_array().unwrap())
        .filter(|test| !test["exp_alerts"].as_array().unwrap().is_empty())
        .map(|test| test["alertname"].as_str().unwrap())
        .collect();
    for rule in rules() {
        let name = rule["alert"].as_str().unwrap();
        assert!(fired.contains(name), "no case makes {name} fire");
    }
}

/// The metric names of a server that watches a cluster.
fn exposed(plane: &ControlPlane) -> BTreeSet<String> {
    account(plane);
    grant(plane, "bare-pods");
    let guard = plane.guard("exposing", &options(plane, &[]));
    // Findings have no series before the first finding.
    let review =
        serde_json::from_slice(&fs::read(repository("examples/review.json")).unwrap()).unwrap();
    guard.validate(plane, &review).unwrap();
    let text = guard.metrics(plane);
    let described = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    described
        .flat_map(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            match kind {
                "counter" => vec![format!("{name}_total")],
                "info" => vec![format!("{name}_info")],
                "histogram" => {
                    ["bucket", "count", "sum"].map(|part| format!("{name}_{part}")).to_vec()
                }
                _ => vec![name.to_owned()],
            }
        })
        .collect()
}

/// The metrics of the guard and of the API server that an expression names.
fn named(expression: &str) -> impl Iterator<Item = &str> {
    expression
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("multi_attach_guard_") || word.starts_with("apiserver_"))
}

/// Metrics of the API server; the test of counted requests finds them there. With `failurePolicy:
/// Ignore` the first one counts, with `Fail` the second.
pub(crate) const OF_THE_API_SERVER: [&str; 2] =
    ["apiserver_admission_webhook_fail_open_count", "apiserver_admission_webhook_rejection_count"];

#[test]
fn every_metric_that_is_asked_for_exists() {
    let plane = harness::or_skip!(harness::require_control_plane(Needs::ApiServer));
    let exposed = exposed(plane);
    let expressions = expressions();
    let named: BTreeSet<&str> =
        expressions.iter().flat_map(|expression| named(expression)).collect();
    assert!(named.len() > 10, "{named:?}");
    for name in named {
        assert!(
            exposed.contains(name) || OF_THE_API_SERVER.contains(&name),
            "{name} is not among {exposed:#?}"
        );
    }
}

#[test]
fn every_alert_is_explained() {
    let text = fs::read_to_string(repository("docs/operations.md")).unwrap();
    for rule in rules() {
        has(&text, &format!("### {}\n", rule["alert"].as_str().unwrap()));
    }
}
