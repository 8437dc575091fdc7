//! Tests of the harness itself, and of its tables of Kubernetes' feature gates and enumerations.

#![allow(clippy::unwrap_used, reason = "in a test, the panic and its message are the report")]

mod harness;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{Method, StatusCode, Uri};
use harness::kubectl::kubeconfig_of;
use harness::output::{fed, findings, has, program};
use harness::process::Program;
use harness::programs::minors;
use harness::shorthand::object;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Ctrl-C and `timeout` signal the process group of the test. The keeper, which must end the
/// programs, must not be in it.
#[test]
fn a_programs_keeper_is_not_in_the_group_of_the_test() {
    let own = std::fs::read_to_string("/proc/self/stat").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["/proc/self/stat".to_owned()];
    let files = folder.path().join("cat");
    let cat = Program::start("cat", Path::new("cat"), &arguments, &[], &files).unwrap();
    let ended = cat.wait(Duration::from_secs(60)).unwrap();
    assert!(ended.success(), "{}", cat.log_tail());
    let (its, own) = (group(&cat.log()), group(&own));
    assert!(its.is_some() && its != own, "{its:?}, {own:?}");
}

/// The process group in `/proc/PID/stat`: the third field after the bracket of the name.
fn group(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(2)?.parse().ok()
}

/// An answer of the API server; `None` closes the connection.
type Said = Option<(StatusCode, String)>;

/// Answers requests in sequence as the script says, and records them.
async fn scripted(script: Vec<Said>) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&asked);
    let answer = move |method: Method, uri: Uri| {
        let mut requests = record.lock().unwrap();
        let said = script[requests.len()].clone();
        requests.push(format!("{method} {}", uri.path()));
        // A panic closes the connection.
        async move { said.unwrap() }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
    (address, asked)
}

/// A request that a busy API server did not answer is repeated, and an earlier attempt may have
/// succeeded. A webhook's message is an answer.
#[tokio::test]
async fn the_harness_asks_again_as_clients_of_kubernetes_do() {
    let status = |code: u16, reason: &str, message: &str| {
        let body = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure",
            "code": code, "reason": reason, "message": message,
        });
        Some((StatusCode::from_u16(code).unwrap(), body.to_string()))
    };
    let there = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "one", "uid": "of-the-first-request",
    }});
    let busy = "Internal error occurred: resource quota evaluation timed out";
    let webhook = "Internal error occurred: failed calling webhook: timed out";
    let script = vec![
        // A create.
        status(429, "TooManyRequests", "later"),
        None,
        status(500, "InternalError", busy),
        status(409, "AlreadyExists", "namespaces \"one\" already exists"),
        Some((StatusCode::OK, there.to_string())),
        // A create of an object that somebody else has made.
        status(409, "AlreadyExists", "namespaces \"one\" already exists"),
        // A delete.
        status(504, "Timeout", "Timeout: request did not complete"),
        status(404, "NotFound", "namespaces \"one\" not found"),
        // A get.
        status(500, "InternalError", webhook),
    ];
    let (address, asked) = scripted(script).await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, kubeconfig_of(address)).unwrap();
    let client = harness::asking::client(&kubeconfig, None).await.unwrap();
    let namespaces = Api::<Namespace>::all(client);
    let object: Namespace = serde_json::from_value(there).unwrap();
    let create = PostParams::default();
    let made = namespaces.create(&create, &object).await.unwrap();
    assert_eq!(made.metadata.uid.as_deref(), Some("of-the-first-request"));
    let conflict = namespaces.create(&create, &object).await.unwrap_err();
    has(&conflict.to_string(), "already exists");
    namespaces.delete("one", &DeleteParams::default()).await.unwrap();
    let failure = namespaces.get("one").await.unwrap_err();
    has(&failure.to_string(), "webhook");
    let (post, one) = ("POST /api/v1/namespaces", "/api/v1/namespaces/one");
    let [get, delete] = ["GET", "DELETE"].map(|method| format!("{method} {one}"));
    assert_eq!(
        *asked.lock().unwrap(),
        [post, post, post, post, &get, post, &delete, &delete, &get]
    );
}

/// Parts of the names of the feature gates that the table must have.
const TOUCHING: &str = "\
    PVNode Volume PVC CSI SELinux NodeOutOfService Deployment StatefulSet DaemonSet \
    HPA ScaleDown Schedul PodTopology PodAffinity Toleration Taint ExtendedResource \
    ReadWriteOncePod Preemption PodReplacement JobManagedBy Workload StorageCapacity";

/// A gate that a new minor adds or enables must be examined before that minor counts as tested.
#[test]
fn the_table_of_feature_gates_is_what_each_minor_has() {
    let mut actual: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut oldest_first = minors();
    oldest_first.sort_unstable();
    for (place, minor) in oldest_first.iter().enumerate() {
        let module = harness::or_skip!(harness::require_module(minor, "k8s.io/kubernetes"));
        let file = module.join("pkg/features/kube_features.go");
        let source = std::fs::read_to_string(file).unwrap();
        for (gate, default) in gates(&source, minor) {
            if TOUCHING.split(' ').any(|part| gate.contains(part)) {
                let states = actual.entry(gate).or_insert_with(|| vec!["-"; place]);
                states.push(default);
            }
        }
        for states in actual.values_mut() {
            states.resize(place + 1, "-");
        }
    }
    let table = include_str!("control-plane/feature-gates").lines();
    let mut rows = table.filter(|line| !line.starts_with('#'));
    let heads: Vec<&str> = rows.next().unwrap().split_whitespace().collect();
    assert_eq!(heads[1..=oldest_first.len()], oldest_first[..]);
    let columns = 1 + oldest_first.len();
    let written: BTreeSet<String> = rows.map(|row| row_of(row, columns)).collect();
    let actual: BTreeSet<String> =
        actual.into_iter().map(|(gate, states)| format!("{gate} {}", states.join(" "))).collect();
    let wrong: Vec<_> = actual.symmetric_difference(&written).collect();
    assert!(
        wrong.is_empty(),
        "tests/control-plane/feature-gates is not what the minors have: {wrong:#?}"
    );
}

/// The first columns of a row, after which a meaning must follow.
fn row_of(row: &str, columns: usize) -> String {
    let words: Vec<&str> = row.split_whitespace().collect();
    assert!(words.len() > columns, "{row} says no meaning");
    words[..columns].join(" ")
}

/// The gates of `kube_features.go` with their defaults. Until 1.32 each gate has one line; since
/// then it has one for each minor that has changed it.
fn gates(source: &str, minor: &str) -> Vec<(String, &'static str)> {
    let number = |text: &str| text.trim_start_matches("1.").parse::<u32>().ok();
    let default = |line: &str| {
        if line.contains("Default: true") { "on" } else { "off" }
    };
    let name = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let mut found = Vec::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let Some((key, spec)) = line.strip_prefix('\t').and_then(|entry| entry.split_once(':'))
        else {
            continue;
        };
        if spec.trim_start().starts_with("{Default:") {
            found.push((name(key), default(spec)));
        } else if spec.trim() == "{" {
            let versions = lines.by_ref().take_while(|version| version.trim() != "},");
            let reached = versions.filter(|version| {
                let since = version.split('"').nth(1).unwrap_or("1.0");
                version.contains("MustParse") && number(since) <= number(minor)
            });
            if let Some(last) = reached.last() {
                found.push((name(key), default(last)));
            }
        }
    }
    found
}

/// The rows of `tests/control-plane/enums`: package, type and value.
fn enum_rows() -> BTreeSet<String> {
    let table = include_str!("control-plane/enums").lines();
    let rows = table.filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| row_of(row, 3)).collect()
}

/// The values of an enumeration in a file of k8s.io/api: `Name Type = "Value"`.
fn enum_values(source: &str, name: &str) -> Vec<String> {
    let lines = source.lines().map(|line| line.split_whitespace().collect());
    lines
        .filter_map(|words: Vec<&str>| match words[..] {
            [_, of, "=", value, ..] if of == name => {
                Some(value.strip_prefix('"')?.strip_suffix('"')?.to_owned())
            }
            _ => None,
        })
        .collect()
}

/// The newest release of k8s.io/api, which may be an alpha or a candidate.
fn newest_api() -> Option<PathBuf> {
    let go = |arguments: &[&str]| {
        let run = Command::new("go")
            .args(arguments)
            .current_dir(std::env::temp_dir())
            .env("GOTOOLCHAIN", "local")
            .output()
            .ok()?;
        Some(String::from_utf8_lossy(&run.stdout).into_owned())
    };
    let listed = go(&["list", "-m", "-versions", "k8s.io/api"])?;
    let version = listed.split_whitespace().next_back()?;
    // A release for a newer Go is downloaded too, although the command reports an error.
    go(&["mod", "download", &format!("k8s.io/api@{version}")])?;
    let cache = go(&["env", "GOMODCACHE"])?;
    let folder = Path::new(cache.trim()).join(format!("k8s.io/api@{version}"));
    folder.is_dir().then_some(folder)
}

/// A value that a new minor adds must be examined before that minor counts as tested.
#[test]
fn every_value_of_an_enumeration_is_one_that_a_verdict_knows() {
    let written = enum_rows();
    let rows = written.iter().map(|row| row.split(' ').collect());
    let types: BTreeSet<[&str; 2]> = rows.map(|row: Vec<&str>| [row[0], row[1]]).collect();
    let mut folders = Vec::new();
    for minor in minors() {
        let folder = harness::or_skip!(harness::require_module(minor, "k8s.io/api"));
        folders.push(folder);
    }
    let cannot = "The newest k8s.io/api cannot be had: go must be able to download it.";
    let newest = newest_api().or_else(|| harness::skip(cannot));
    let mut actual = BTreeSet::new();
    for folder in folders.into_iter().chain(newest) {
        for [package, name] in &types {
            let file = folder.join(package).join("types.go");
            let source = std::fs::read_to_string(&file).unwrap();
            for value in enum_values(&source, name) {
                actual.insert(format!("{package} {name} {value}"));
            }
        }
    }
    let wrong: Vec<_> = actual.symmetric_difference(&written).collect();
    assert!(wrong.is_empty(), "tests/control-plane/enums is not what k8s.io/api has: {wrong:#?}");
}

/// `check` accepts exactly the strategies of the table.
#[test]
fn every_strategy_of_the_table_is_one_to_check() {
    let kinds = [
        ("DeploymentStrategyType", "Deployment", "strategy"),
        ("StatefulSetUpdateStrategyType", "StatefulSet", "updateStrategy"),
        ("DaemonSetUpdateStrategyType", "DaemonSet", "updateStrategy"),
    ];
    let rows = enum_rows();
    for (name, kind, field) in kinds {
        let of_type = format!(" {name} ");
        let known = rows.iter().filter_map(|row| row.split_once(&of_type));
        let mut values: Vec<(&str, bool)> = known.map(|(_, value)| (value, true)).collect();
        assert!(values.len() > 1, "{name}");
        values.push(("Sometimes", false));
        for (value, is_known) in values {
            let strategy = json!({"spec": {field: {"type": value}}});
            let object = object(json!({"kind": kind, "namespace": "shop", "with": strategy}));
            let mut check = program(&["check", "--format", "json", "-"]);
            let findings = findings(&fed(&mut check, &object.to_string()));
            let is_refused =
                findings.iter().any(|finding| finding["rule"] == "unsupported-strategy");
            assert_eq!(!is_refused, is_known, "{kind} {value}: {findings:#?}");
        }
    }
}

/// Words change in patch releases too: a border that `--explain` states is between the two releases
/// beside it.
#[test]
fn a_stated_border_is_where_the_words_change() {
    let text = include_str!("../crates/doctor/src/messages.yaml");
    let options = serde_saphyr::options! { budget: None };
    let document: Value = serde_saphyr::from_str_with_options(text, options).unwrap();
    let entries = document["messages"].as_array().unwrap();
    let mut borders = 0;
    for entry in entries {
        let stated = entry["minors"].as_str().unwrap_or_default();
        let Some((word @ ("since" | "until"), version)) = stated.split_once(' ') else {
            continue;
        };
        let Some((minor, patch)) =
            version.rsplit_once('.').filter(|(minor, _)| minor.contains('.'))
        else {
            continue;
        };
        borders += 1;
        let patch: u32 = patch.parse().unwrap();
        let folder = entry["source"].as_str().unwrap().split(',').next().unwrap();
        let title = entry["searched"].as_str().unwrap().strip_suffix(" for volume").unwrap();
        let before = if word == "since" { patch - 1 } else { patch };
        for (number, is_there) in [(before, word == "until"), (before + 1, word == "since")] {
            let module = format!("k8s.io/kubernetes@v{minor}.{number}");
            let sources = harness::or_skip!(harness::require_module("1.37", &module));
            let file = sources.join(folder).join("reconciler.go");
            let source = std::fs::read_to_string(&file).unwrap();
            let says = source.contains(&format!("GenerateMsg(\"{title}\""));
            assert_eq!(says, is_there, "{stated}: {}", file.display());
        }
    }
    assert_eq!(borders, 2);
}

/// A feature that decides no verdict needs a case with a verdict nevertheless.
#[test]
fn gates_that_no_verdict_rests_on_have_a_case() {
    let cases = include_str!("verdicts/cases.yaml");
    let table = include_str!("control-plane/feature-gates").lines();
    let gates = table.filter(|line| line.contains("no verdict rests on"));
    let mut count = 0;
    for gate in gates.filter_map(|line| line.split_whitespace().next()) {
        let is_named = |line: &str| {
            line.strip_prefix("- name: \"gates ")
                .and_then(|name| name.split_once(": "))
                .is_some_and(|(names, _)| names.split(", ").any(|name| name == gate))
        };
        assert!(cases.lines().any(is_named), "tests/verdicts/cases.yaml has no case for {gate}");
        count += 1;
    }
    assert!(count > 0);
}
