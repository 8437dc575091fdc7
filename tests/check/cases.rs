//! Cases as data: what is in a repository, what is run there, and what is said of it.
//!
//! ```yaml
//! - name: a claim beside, and another in a folder inside
//!   files:                          # several lists of files are put over each other
//!   - in/web.yaml: {kind: Deployment, uses: [data]}     # in shorthand
//!     in/all.yaml: [*class, *claim]                     # several documents
//!     in/nfs.yaml: {like: *claim, with: {spec: {}}}     # another one, and what is merged in
//!     in/kustomization.yaml: {resources: [web.yaml]}    # everything else as it stands
//!     in/more.yaml: "a: 1\n"
//!     in/less.yaml: {text: *more, with: [a, b]}         # a text with a replacement
//!   run: in --facts facts.yaml      # after `check --format json`; `.` if left out
//!   finds: [deny rolling-update-overlap -/web in/web.yaml]
//!   then: [{run: in, finds: []}]    # afterwards, in the same folder
//! ```
//!
//! The words of `finds` are among these of a finding, in this order: its action, certainty and
//! rule, the kind and `namespace/name` of its object, its file and line, and what renders it.

use std::collections::BTreeMap;

use serde::Deserialize;

#[cfg(unix)]
use super::releases::gitops;
use super::shorthand::Shorthand;
use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    /// What has anchors.
    #[serde(rename = "shared")]
    _shared: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Case {
    name: String,
    files: Vec<BTreeMap<String, Value>>,
    run: String,
    /// All findings.
    finds: Vec<String>,
    /// All that is not rendered: its kind, path and reason.
    unopened: Vec<String>,
    /// How all notices begin, where that matters.
    notices: Option<Vec<String>>,
    /// Parts of the messages of findings and notices.
    says: Vec<String>,
    /// Some of the counts.
    summary: BTreeMap<String, Value>,
    /// The exit code, where it is not 1 with an error and else 0.
    code: Option<i32>,
    /// What the text for people contains.
    text: Vec<String>,
    /// How often it contains some parts.
    times: BTreeMap<String, usize>,
    /// And what it does not.
    hides: Vec<String>,
    /// What the run replaces in a file, and by what; everything else stays as it was written.
    edits: Option<BTreeMap<String, [String; 2]>>,
    then: Vec<Self>,
}

/// What is in the folder, by name.
type Files<'a> = BTreeMap<&'a String, &'a Value>;

/// The text with the first replaced by the second, which must be there.
fn replaced(text: String, edit: Option<&[String; 2]>) -> String {
    let Some([from, to]) = edit else { return text };
    assert!(text.contains(from), "{from:?} is not in {text}");
    text.replace(from, to)
}

/// The text of a file.
fn text(file: &Value) -> String {
    match file {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.contains_key("text") => {
            let edit: [String; 2] = serde_json::from_value(fields["with"].clone()).unwrap();
            replaced(text(&fields["text"]), Some(&edit))
        }
        Value::Array(documents) => {
            let texts: Vec<String> = documents.iter().map(text).collect();
            texts.join("---\n")
        }
        file => serde_norway::to_string(&document(file)).unwrap(),
    }
}

fn document(value: &Value) -> Value {
    if let Some(like) = value.get("like") {
        let mut document = document(like);
        json_patch::merge(&mut document, &value["with"]);
        return document;
    }
    if value.get("kind").is_none() || value.get("apiVersion").is_some() {
        return value.clone();
    }
    let shorthand: Shorthand = serde_json::from_value(value.clone()).unwrap();
    shorthand.manifest()
}

/// A finding in words.
fn words(finding: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &finding["object"];
    let namespace = object["namespace"].as_str().unwrap_or("-");
    let words = [
        word(&finding["action"]),
        word(&finding["certainty"]),
        word(&finding["rule"]),
        word(&object["kind"]),
        format!("{namespace}/{}", word(&object["name"])),
        word(&finding["file"]),
        finding["line"].to_string(),
        word(&finding["template"]),
    ];
    words.join(" ")
}

/// Whether the words of `expected` are among these, in this order.
fn is_said(expected: &str, words: &str) -> bool {
    let mut words = words.split(' ');
    expected
        .split(' ')
        .all(|expected| words.any(|it| it == expected))
}

fn list(report: &Value, key: &str) -> Vec<Value> {
    report[key].as_array().cloned().unwrap_or_default()
}

/// These fields of what the report lists there, as `kind path: reason`.
pub(super) fn texts(report: &Value, key: &str, fields: &[&str]) -> Vec<String> {
    let text = |it: &Value| {
        let texts: Vec<&str> = fields
            .iter()
            .filter_map(|field| it[field].as_str())
            .collect();
        match &texts[..] {
            [kind, path, reason] => format!("{kind} {path}: {reason}"),
            texts => texts.concat(),
        }
    };
    list(report, key).iter().map(text).collect()
}

/// Whether each text is as expected, where `…` stands for anything.
fn all_like(expected: &[String], texts: &[String]) -> bool {
    let like = |(expected, text): (&String, &String)| {
        let mut rest = text.as_str();
        let found = expected
            .split('…')
            .enumerate()
            .all(|(number, part)| match rest.find(part) {
                Some(at) if number > 0 || at == 0 => {
                    rest = &rest[at + part.len()..];
                    true
                }
                _ => false,
            });
        found && (rest.is_empty() || expected.ends_with('…'))
    };
    expected.len() == texts.len() && expected.iter().zip(texts).all(like)
}

impl Case {
    /// What goes another way than the case says.
    fn play<'a>(&'a self, folder: &TempDir, path: &Path, mut files: Files<'a>) -> Vec<String> {
        for (name, file) in self.files.iter().flatten() {
            let place = folder.path().join(name);
            if file.is_null() {
                fs::remove_file(place).unwrap();
                continue;
            }
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text(file)).unwrap();
            files.insert(name, file);
        }
        let all = if self.run.is_empty() { "." } else { &self.run };
        let all: Vec<&str> = std::iter::once("check").chain(all.split(' ')).collect();
        let output = run_on(
            path,
            folder.path(),
            &[&all[..], &["--format", "json"]].concat(),
            "",
        );
        let mut wrong = Vec::new();
        let mut must = |is_so: bool, what: &str, found: &dyn std::fmt::Debug| {
            if !is_so {
                wrong.push(format!("{} {}: {what}: {found:#?}", self.name, self.run));
            }
        };
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let findings = list(&report, "findings");
        let found: Vec<String> = findings.iter().map(words).collect();
        let as_expected = found.len() == self.finds.len()
            && self
                .finds
                .iter()
                .zip(&found)
                .all(|(it, found)| is_said(it, found));
        must(as_expected, "not these findings", &found);
        let unopened = texts(&report, "unopened", &["kind", "path", "reason"]);
        must(
            all_like(&self.unopened, &unopened),
            "not this is unopened",
            &unopened,
        );
        let noticed = texts(&report, "notices", &["message"]);
        if let Some(notices) = &self.notices {
            must(all_like(notices, &noticed), "not these notices", &noticed);
        }
        let said = [noticed, texts(&report, "findings", &["message"])].concat();
        for part in &self.says {
            must(said.iter().any(|it| it.contains(part)), part, &said);
        }
        for (key, count) in &self.summary {
            must(report["summary"][key] == *count, key, &report["summary"]);
        }
        let usual = i32::from(findings.iter().any(|it| it["action"] == "deny"));
        must(
            code(&output) == self.code.unwrap_or(usual),
            "not this exit code",
            &output,
        );
        if !(self.text.is_empty() && self.times.is_empty() && self.hides.is_empty()) {
            let output = run_on(path, folder.path(), &all, "");
            let said = format!("{}{}", out(&output), err(&output));
            for part in &self.text {
                must(said.contains(part), part, &said);
            }
            for (part, times) in &self.times {
                must(said.matches(part).count() == *times, part, &said);
            }
            for part in &self.hides {
                must(!said.contains(part), part, &said);
            }
        }
        for (name, file) in self.edits.iter().flat_map(|_| &files) {
            let edit = self.edits.as_ref().and_then(|edits| edits.get(*name));
            let expected = replaced(text(file), edit);
            let after = fs::read_to_string(folder.path().join(name)).unwrap();
            must(after == expected, name, &after);
        }
        must(
            !folder.path().join("ran").exists(),
            "a program was run",
            &output,
        );
        for next in &self.then {
            wrong.extend(next.play(folder, path, files.clone()));
        }
        wrong
    }
}

/// Plays the cases of a file, each in such a repository, with these programs.
fn play(name: &str, repository: impl Fn() -> TempDir, path: &Path) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/check/cases");
    let yaml = fs::read_to_string(format!("{folder}/{name}.yaml")).unwrap();
    // Half of the file is aliases, which the default budget takes for an attack.
    let options = serde_saphyr::options! { budget: None };
    let cases: Cases = serde_saphyr::from_str_with_options(&yaml, options)
        .unwrap_or_else(|error| panic!("{name}.yaml: {error}"));
    let all = cases.cases.iter();
    let wrong: Vec<String> = all
        .flat_map(|case| case.play(&repository(), path, Files::new()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same with helm and kustomize.
#[cfg(unix)]
fn play_with_tools(name: &str, repository: impl Fn() -> TempDir) {
    if let Some(tools) = rendering::tools(&["helm", "kustomize"]) {
        play(name, repository, tools.path());
    }
}

/// Which objects speak for which: folders, facts, namespaces, patches and hooks.
#[test]
fn scopes() {
    play("scopes", || repository(&[]), Path::new(""));
}

/// Objects of kinds that are not Kubernetes' own.
#[test]
fn custom_kinds() {
    play("custom_kinds", || repository(&[]), Path::new(""));
}

/// Releases of GitOps controllers.
#[cfg(unix)]
#[test]
fn releases() {
    play_with_tools("releases", || gitops(&[]));
}

/// What Flux and Argo CD deliver of plain folders, kustomizations and charts.
#[cfg(unix)]
#[test]
fn deliveries() {
    play_with_tools("deliveries", || gitops(&[]));
}

/// What is found, where, and how it is reported.
#[test]
fn findings_and_exit_codes() {
    play("findings", || repository(&[]), Path::new(""));
}

/// Charts and kustomizations.
#[cfg(unix)]
#[test]
fn rendered() {
    play_with_tools("rendered", || repository(&[]));
}
