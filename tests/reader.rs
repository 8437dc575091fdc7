//! Compares our YAML reader with the one of Kubernetes: we read every file that kubectl reads, with
//! the same meaning.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests are outside of the functions that clippy recognizes as tests"
)]

#[path = "written/corpus.rs"]
#[allow(dead_code, reason = "kubectl is the other reader here")]
mod corpus;
mod harness;
mod written;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use manifest::tree::Tree;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value};

/// The number of generated documents per run.
const GENERATED: usize = 600;

/// A ConfigMap with this name and with `text`, indented, as its field `spec`, which kubectl does
/// not know.
fn wrapped(name: &str, text: &str) -> String {
    let inner: String = text
        .lines()
        .filter(|line| !["---", "...", "%"].iter().any(|start| line.starts_with(start)))
        .map(|line| format!("  {line}\n"))
        .collect();
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\nspec:\n{inner}")
}

/// kubectl's values of the texts that it accepts, by name.
fn of_kubectl(texts: &BTreeMap<String, String>) -> Option<BTreeMap<String, Value>> {
    let programs = harness::require_programs(harness::Needs::ApiServer)?;
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in texts {
        fs::write(folder.path().join(format!("{name}.yaml")), text).unwrap();
    }
    // With --local, it uses no server, and reports each file that it cannot read.
    let output = Command::new(programs.path("kubectl"))
        .args("patch --local --type=merge --patch={} --output=json".split(' '))
        .arg("--filename")
        .arg(folder.path())
        .output()
        .unwrap();
    let objects = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let by_name = objects.map(|object| {
        let object = object.unwrap();
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        (name, plain(&object["spec"]))
    });
    Some(by_name.collect())
}

/// Our value of the text; `None` if we do not accept it.
fn ours(text: &str) -> Option<Value> {
    let tree = Tree::parse(text).ok()??;
    Some(plain(&tree.value(tree.root())["spec"]))
}

/// The value with its keys in order. Numbers that are not 64-bit integers are compared as
/// floating-point numbers, as Go keeps them.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) if !number.is_i64() => number.as_f64().into(),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(entries) => {
            let mut keys: Vec<&String> = entries.keys().collect();
            keys.sort();
            let entries = keys.into_iter().map(|key| (key.clone(), plain(&entries[key])));
            Value::Object(entries.collect::<Map<String, Value>>())
        }
        other => other.clone(),
    }
}

/// Compares all texts, and returns the number of texts that kubectl accepts.
fn compare(texts: &BTreeMap<String, String>) -> Option<usize> {
    let theirs = of_kubectl(texts)?;
    let mut wrong = Vec::new();
    for (name, expected) in &theirs {
        let text = &texts[name];
        let found = ours(text);
        if found.as_ref() != Some(expected) {
            wrong.push(format!("{text}\nkubectl: {expected}\nours: {found:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    Some(theirs.len())
}

#[test]
fn the_corpus_means_what_kubectl_reads() {
    let mut texts = BTreeMap::new();
    for (_, text) in corpus::files() {
        for part in manifest::split::parts(&text) {
            let name = format!("corpus-{}", texts.len());
            texts.insert(name.clone(), wrapped(&name, part.text));
        }
    }
    if let Some(taken) = compare(&texts) {
        assert_eq!(taken, texts.len(), "kubectl takes every document");
    }
}

/// The style in which charts write JSON into a variable: lines that start further left than their
/// key.
#[test]
fn long_quoted_text_means_what_kubectl_reads() {
    let lines = |line: &str| format!("{line}\n").repeat(1_000);
    let single = format!("a:\n    b: '{{\n{}}}'\n", lines(" \"it''s\": 1,"));
    let double = format!("a:\n    b: \"{{\n{}}}\"\n", lines("\\\"it's\\\": 1,"));
    let texts = [("single", single), ("double", double)]
        .map(|(name, text)| (name.to_owned(), wrapped(name, &text)))
        .into();
    if let Some(taken) = compare(&texts) {
        assert_eq!(taken, texts.len(), "kubectl takes both");
    }
}

/// A value in one of YAML's styles, most of them valid. It follows a key that is indented by two.
fn value() -> impl Strategy<Value = String> {
    let plain = || "[a-zA-Z0-9_.+~:/=-]{1,9}";
    let word = || "[a-z0-9.]{1,6}";
    let blank =
        || prop::sample::select(vec!["\n", "\n ", "\n  ", "\n    ", "\n\n  ", " \n\n\n   "]);
    // Text that may come before a quoted scalar. Quotation marks in a comment start no scalar.
    let before =
        || prop::sample::select(vec!["", "", "!!str ", "&q ", "# it's\n   ", "!!str &q # \"\n   "]);
    prop_oneof![
        4 => plain(),
        1 => prop::sample::select(vec![
            "1.0", "0755", "0o17", "1e3", "-0.0", "1_000", "yes", "NO", "~", "2024-01-01", "0x1F",
            ".5", "+12", "12:30:45", "1e400", "0.1e-7", "123456789012345678901", "\"\"", "''",
        ]).prop_map(str::to_owned),
        2 => (before(), word(), blank(), word(), blank(), word())
            .prop_map(|(p, a, x, b, y, c)| format!("{p}\"{a}{x}'{b}\\t\\\"{y}{c}\\{x}\"")),
        2 => (before(), word(), blank(), word(), blank(), word())
            .prop_map(|(p, a, x, b, y, c)| format!("{p}'{a}{x}it''s \"{b}{y}{c}'")),
        1 => (word(), word(), prop::sample::select(vec!["|", ">", "|-", ">+", "|2"]))
            .prop_map(|(a, b, style)| format!("{style}\n    {a}\n\n     {b}\n    {a}")),
        1 => (word(), word()).prop_map(|(a, b)| format!("{a}\n    {b}")),
        1 => (plain(), word()).prop_map(|(a, b)| format!("[{a}, \"{b}\", {{{b}: {a}}}]")),
        1 => (plain(), word()).prop_map(|(a, b)| format!("{{{b}: {a}, {b}: 2, x: [1.0]}}")),
        1 => (prop::sample::select(vec!["!!str", "!!int", "!!float", "!!bool", "!!binary", "!x"]), plain())
            .prop_map(|(tag, a)| format!("{tag} {a}")),
        1 => word().prop_map(|a| format!("&a{a} {{{a}: 1}}\n  m{a}:\n    <<: *a{a}\n    y: 2")),
    ]
}

#[test]
fn whatever_kubectl_reads_is_read_and_means_the_same() {
    let mut runner = TestRunner::deterministic();
    let documents = prop::collection::vec(("[abc]|on|1", value()), 1..5);
    let mut texts = BTreeMap::new();
    for number in 0..GENERATED {
        let document = documents.new_tree(&mut runner).unwrap().current();
        let name = format!("made-{number}");
        let lines: String =
            document.iter().map(|(key, value)| format!("  {key}: {value}\n")).collect();
        let text =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\nspec:\n{lines}");
        texts.insert(name, text);
    }
    for number in 0..GENERATED / 10 {
        let written = written::written().new_tree(&mut runner).unwrap().current();
        let name = format!("written-{number}");
        texts.insert(name.clone(), wrapped(&name, &written.text()));
    }
    if let Some(taken) = compare(&texts) {
        assert!(taken > GENERATED / 10, "kubectl takes only {taken}");
    }
}
