//! Cases as data: the files of a repository, a command to run there, and its expected output.
//!
//! ```yaml
//! - name: a claim beside, and another in a folder inside
//!   files:                          # later entries of the list replace earlier ones
//!   - in/web.yaml: {kind: Deployment, uses: [data]}     # in shorthand
//!     in/all.yaml: [*class, *claim]                     # several documents
//!     in/nfs.yaml: {like: *claim, with: {spec: {}}}     # another document with a merge patch
//!     in/kustomization.yaml: {resources: [web.yaml]}    # everything else is used unchanged
//!     in/more.yaml: "a: 1\n"
//!     in/less.yaml: {text: *more, with: [a, b]}         # a text with a replacement
//!     in/last.yaml: {link: less.yaml}                   # a file without text: see `Special`
//!   run: in --facts facts.yaml      # after `check --format json`; `.` if left out
//!   finds: [deny rolling-update-overlap -/web in/web.yaml]
//!   then: [{run: in, finds: []}]    # afterwards, in the same folder
//! ```
//!
//! The words of `finds` are a subset of the finding's words, in this order: its action, certainty
//! and rule, the kind and `namespace/name` of its object, its file and line, and the file that
//! renders it.
//!
//! OUTSIDE is a folder outside of all repositories, into which nothing is ever written, and HOST a
//! server (see [`super::server`]). No output of any case contains [`SECRET`] or names a folder for
//! temporary files.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

pub(super) use super::case_files::put;
use super::case_files::{replaced, special, text};
use super::releases::gitops;
use super::server::{Answer, Commit, Server};
use super::*;

/// The secret in the environment, and in files that must not be shown.
pub(super) const SECRET: &str = "hunter2";

/// The start of the name of the folder for temporary files.
const SCRATCH: &str = "scratch-of-check-";

/// The folder for temporary files.
static SCRATCH_FOLDER: LazyLock<TempDir> =
    LazyLock::new(|| tempfile::Builder::new().prefix(SCRATCH).tempdir().unwrap());

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    /// The values with anchors.
    #[serde(rename = "shared")]
    _shared: Value,
    /// The files outside of the repositories.
    #[serde(default)]
    outside: BTreeMap<String, Value>,
    cases: Vec<Case>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Case {
    name: String,
    files: Vec<BTreeMap<String, Value>>,
    /// Commits to the server's repositories before the run.
    git: Vec<Commit>,
    /// The server's answers from now on, by path.
    served: BTreeMap<String, Answer>,
    /// The programs on the PATH, if they differ from those for the whole file.
    tools: Option<Vec<String>>,
    /// The folder in which `check` runs; the root by default.
    from: String,
    run: String,
    /// The standard input.
    stdin: Value,
    /// Whether the memory is limited to less than one of the files would need.
    limited: bool,
    /// All findings.
    finds: Vec<String>,
    /// Everything that was not rendered: its kind, path and reason.
    unopened: Vec<String>,
    /// The beginnings of all notices, if they matter.
    notices: Option<Vec<String>>,
    /// Parts of the messages of findings and notices.
    says: Vec<String>,
    /// Some of the counts in the summary.
    summary: BTreeMap<String, Value>,
    /// The exit code. By default, 1 if there is an error, else 0.
    code: Option<i32>,
    /// Parts of the text output.
    text: Vec<String>,
    /// The number of occurrences of some parts in it.
    times: BTreeMap<String, usize>,
    /// Texts that it does not contain.
    hides: Vec<String>,
    /// The number of occurrences of some parts in other formats.
    formats: BTreeMap<String, BTreeMap<String, usize>>,
    /// The number of requests to the server.
    asked: Option<usize>,
    /// The number of files in the folder `cache` after the run.
    kept: Option<usize>,
    /// The replacement that the run makes in each file. Everything else stays as it was written.
    edits: Option<BTreeMap<String, [String; 2]>>,
    then: Vec<Self>,
}

/// The files of a folder, by name.
type Files<'a> = BTreeMap<&'a String, &'a Value>;

/// The words of a finding.
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

/// Whether the words of `expected` occur in `words`, in this order.
fn is_said(expected: &str, words: &str) -> bool {
    let mut words = words.split(' ');
    expected.split(' ').all(|expected| words.any(|word| word == expected))
}

fn list(report: &Value, key: &str) -> Vec<Value> {
    report[key].as_array().cloned().unwrap_or_default()
}

/// These fields of the entries under `key` in the report, as `kind path: reason`.
pub(super) fn texts(report: &Value, key: &str, fields: &[&str]) -> Vec<String> {
    let text = |entry: &Value| {
        let parts: Vec<&str> = fields.iter().filter_map(|field| entry[field].as_str()).collect();
        match &parts[..] {
            [kind, path, reason] => format!("{kind} {path}: {reason}"),
            parts => parts.concat(),
        }
    };
    list(report, key).iter().map(text).collect()
}

/// Whether each text is as expected; `…` stands for any text.
fn all_like(expected: &[String], texts: &[String]) -> bool {
    let like = |(pattern, text): (&String, &String)| {
        let mut rest = text.as_str();
        let found = pattern.split('…').enumerate().all(|(number, part)| match rest.find(part) {
            Some(at) if number > 0 || at == 0 => {
                rest = &rest[at + part.len()..];
                true
            }
            _ => false,
        });
        found && (rest.is_empty() || pattern.ends_with('…'))
    };
    expected.len() == texts.len() && expected.iter().zip(texts).all(like)
}

/// The programs and the server that cases use.
struct Setup<'a> {
    /// The programs that render.
    path: &'a Path,
    server: Option<&'a Server>,
}

impl Case {
    /// Runs `check` with these additional arguments.
    fn run(&self, folder: &Path, path: &Path, more: &[&str]) -> Output {
        let all = if self.run.is_empty() { "." } else { &self.run };
        let arguments: Vec<&str> =
            std::iter::once("check").chain(all.split(' ')).chain(more.iter().copied()).collect();
        let input = if self.stdin.is_null() { String::new() } else { text(&self.stdin) };
        let mut command = program(&arguments);
        if self.limited {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "ulimit -v 3000000; exec \"$0\" \"$@\""]);
            shell.arg(command.get_program()).args(&arguments);
            command = shell;
        }
        let command = on_path(&mut command, &folder.join(&self.from), path);
        fed(command.env("TOKEN", SECRET).env("TMPDIR", SCRATCH_FOLDER.path()), &input)
    }

    /// Runs the case and returns all deviations from it.
    fn play<'a>(&'a self, folder: &Path, setup: &Setup<'_>, mut files: Files<'a>) -> Vec<String> {
        put(folder, self.files.iter().flatten());
        files.extend(self.files.iter().flatten().filter(|(_, file)| !file.is_null()));
        let tools = self.tools.as_ref().and_then(|names| {
            rendering::tools(&names.iter().map(String::as_str).collect::<Vec<_>>())
        });
        let path = tools.as_ref().map_or(setup.path, TempDir::path);
        if let Some(server) = setup.server {
            self.git.iter().for_each(|commit| server.commit(commit));
            server.answers(&self.served);
            server.asked();
        }
        let output = self.run(folder, path, &["--format", "json"]);
        let mut wrong = Vec::new();
        let mut must = |is_so: bool, what: &str, found: &dyn std::fmt::Debug| {
            if !is_so {
                wrong.push(format!("{} {}: {what}: {found:#?}", self.name, self.run));
            }
        };
        if let (Some(wanted), Some(server)) = (self.asked, setup.server) {
            let asked = server.asked();
            must(asked == wanted, "asked so often", &asked);
        }
        if let Some(wanted) = self.kept {
            let kept = fs::read_dir(folder.join("cache")).map_or(0, Iterator::count);
            must(kept == wanted, "kept so many files", &kept);
        }
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let findings = list(&report, "findings");
        let found: Vec<String> = findings.iter().map(words).collect();
        let as_expected = found.len() == self.finds.len()
            && self.finds.iter().zip(&found).all(|(expected, found)| is_said(expected, found));
        must(as_expected, "not these findings", &found);
        let unopened = texts(&report, "unopened", &["kind", "path", "reason"]);
        must(all_like(&self.unopened, &unopened), "not this is unopened", &unopened);
        let noticed = texts(&report, "notices", &["message"]);
        if let Some(notices) = &self.notices {
            must(all_like(notices, &noticed), "not these notices", &noticed);
        }
        let mut messages = [noticed, texts(&report, "findings", &["message"])].concat();
        messages.push(err(&output).to_owned());
        for part in &self.says {
            must(messages.iter().any(|text| text.contains(part)), part, &messages);
        }
        for (key, count) in &self.summary {
            must(report["summary"][key] == *count, key, &report["summary"]);
        }
        let usual = i32::from(findings.iter().any(|finding| finding["action"] == "deny"));
        must(code(&output) == self.code.unwrap_or(usual), "not this exit code", &output);
        let mut all_said = both_streams(&output);
        if !(self.text.is_empty() && self.times.is_empty() && self.hides.is_empty()) {
            let text = both_streams(&self.run(folder, path, &[]));
            for part in &self.text {
                must(text.contains(part), part, &text);
            }
            for (part, times) in &self.times {
                must(text.matches(part).count() == *times, part, &text);
            }
            for part in &self.hides {
                must(!text.contains(part), part, &text);
            }
            all_said += &text;
        }
        for (format, parts) in &self.formats {
            let formatted = both_streams(&self.run(folder, path, &["--format", format]));
            for (part, times) in parts {
                must(formatted.matches(part).count() == *times, part, &formatted);
            }
            all_said += &formatted;
        }
        must(!all_said.contains(SECRET), "a secret is shown", &all_said);
        must(!all_said.contains(SCRATCH), "a temporary file is named", &all_said);
        let written = files.iter().filter(|(_, file)| special(file).is_none());
        for (name, file) in written.filter(|_| self.edits.is_some()) {
            let edit = self.edits.as_ref().and_then(|edits| edits.get(*name));
            let expected = replaced(text(file), edit);
            let after = fs::read_to_string(folder.join(name)).unwrap();
            must(after == expected, name, &after);
        }
        must(!folder.join("ran").exists(), "a program was run", &output);
        for next in &self.then {
            wrong.extend(next.play(folder, setup, files.clone()));
        }
        wrong
    }
}

/// Runs the cases of a file, each in a new repository.
fn play(name: &str, repository: impl Fn() -> TempDir, setup: &Setup<'_>) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/check/cases");
    let outside = tempfile::tempdir().unwrap();
    let mut yaml = fs::read_to_string(format!("{folder}/{name}.yaml"))
        .unwrap()
        .replace("OUTSIDE", outside.path().to_str().unwrap());
    if let Some(server) = setup.server {
        yaml = server.fill(&yaml);
    }
    // Half of the file is aliases, which the default budget treats as an attack.
    let options = serde_saphyr::options! { budget: None };
    let parsed: Value = serde_saphyr::from_str_with_options(&yaml, options)
        .unwrap_or_else(|error| panic!("{name}.yaml: {error}"));
    let cases: Cases =
        serde_json::from_value(parsed).unwrap_or_else(|error| panic!("{name}.yaml: {error}"));
    put(outside.path(), &cases.outside);
    let all = cases.cases.iter();
    let mut wrong: Vec<String> =
        all.flat_map(|case| case.play(repository().path(), setup, Files::new())).collect();
    for entry in fs::read_dir(outside.path()).unwrap() {
        let made = entry.unwrap().file_name().into_string().unwrap();
        if !cases.outside.contains_key(&made) {
            wrong.push(format!("{made} was made outside of the repositories"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs the cases without any program, as in [`run`].
fn play_alone(name: &str) {
    let (path, server) = (Path::new(""), None);
    play(name, || repository(&[]), &Setup { path, server });
}

/// Runs the cases with helm and kustomize.
fn play_with_tools(name: &str, repository: impl Fn() -> TempDir) {
    if let Some(tools) = rendering::tools(&["helm", "kustomize"]) {
        let path = tools.path();
        play(name, repository, &Setup { path, server: None });
    }
}

/// Objects that are facts for others: folders, facts, namespaces, patches and hooks.
#[test]
fn scopes() {
    play_alone("scopes");
}

/// Objects of kinds that are not Kubernetes' own.
#[test]
fn custom_kinds() {
    play_alone("custom_kinds");
}

/// Releases of GitOps controllers.
#[test]
fn releases() {
    play_with_tools("releases", || gitops(&[]));
}

/// The results of Flux and Argo CD for plain folders, kustomizations and charts.
#[test]
fn deliveries() {
    play_with_tools("deliveries", || gitops(&[]));
}

/// The findings, their places and their reports.
#[test]
fn findings_and_exit_codes() {
    play_alone("findings");
}

/// Charts and kustomizations.
#[test]
fn rendered() {
    play_with_tools("rendered", || repository(&[]));
}

/// Charts and Git repositories that `--fetch` downloads.
#[test]
fn fetched() {
    let tools = or_skip!(rendering::tools(&["helm", "kustomize", "git"]));
    let server = Server::start(tools.path());
    let (path, server) = (tools.path(), Some(&server));
    play("fetched", || gitops(&[]), &Setup { path, server });
}

/// Attacks by a stranger's pull request: reading files that the pipeline may read, using the
/// network, writing elsewhere. With and without the program that creates namespaces.
#[test]
fn attacks_on_what_renders() {
    for tools in attacks::both(&["helm", "kustomize", "git"]) {
        let server = Server::start(tools.path());
        let (path, server) = (tools.path(), Some(&server));
        play("attacks", || repository(&[]), &Setup { path, server });
    }
}
