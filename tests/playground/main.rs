//! The page into which a manifest is pasted: the WebAssembly gives the program's answers, and a
//! browser shows them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a page that cannot be built stops the test"
)]

#[allow(dead_code, reason = "the verdicts use all of it")]
#[path = "../verdicts/cluster.rs"]
mod cluster;
#[allow(dead_code, reason = "the verdicts use all of it")]
#[path = "../harness/shorthand.rs"]
mod shorthand;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use playground::Checked;
use serde::Deserialize;
use serde_json::json;

use cluster::Snapshot;
use shorthand::Shorthand;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The time of the judgements, in milliseconds.
const NOW: f64 = 1_790_000_000_000.0;

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    cluster: Snapshot,
    judge: Shorthand,
}

/// A text to judge.
struct Question {
    name: String,
    text: String,
    facts: String,
}

/// A small cluster for each case of the verdicts.
fn cases() -> Vec<Question> {
    // Half of the file is aliases, which the default budget would treat as an attack.
    let options = serde_saphyr::options! { budget: None };
    let files = [
        include_str!("../verdicts/cases.yaml"),
        include_str!("../verdicts/custom_kinds.yaml"),
        include_str!("../verdicts/ways_out.yaml"),
    ];
    let cases = files.into_iter().flat_map(|text| -> Vec<Case> {
        serde_saphyr::from_str_with_options(text, options.clone()).unwrap()
    });
    let questions = cases.map(|case| Question {
        text: serde_norway::to_string(&cluster::manifest(&case.judge)).unwrap(),
        facts: json!({"apiVersion": "v1", "kind": "List", "items": case.cluster.objects()})
            .to_string(),
        name: case.name,
    });
    questions.collect()
}

/// The files of the corpus and the example, each with the cluster on EKS.
fn corpus() -> Vec<Question> {
    let mut files = vec![Path::new(ROOT).join("examples/web.yaml")];
    for folder in ["tests/corpus", "tests/corpus/at-fault"] {
        let entries = fs::read_dir(Path::new(ROOT).join(folder)).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    files.retain(|file| file.extension().is_some_and(|name| name == "yaml" || name == "json"));
    files.sort();
    let questions = files.iter().map(|file| Question {
        name: file.display().to_string(),
        text: fs::read_to_string(file).unwrap(),
        facts: playground::CLUSTERS[0].facts.to_owned(),
    });
    questions.collect()
}

/// The folder with the page; `None` if a tool is missing, which is a failure in a pipeline.
fn page() -> Option<&'static Path> {
    static PAGE: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let tools = ["node", "npm", "chromium"];
        for tool in tools {
            if Command::new(tool).arg("--version").output().is_err() {
                assert!(std::env::var_os("CI").is_none(), "{tool} is not installed");
                eprintln!("SKIPPED: {tool} is not installed.");
                return None;
            }
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("playground");
        fs::create_dir_all(&folder).unwrap();
        let build = Path::new(ROOT).join("docs/site/playground/build");
        done(Command::new(build).arg(&folder));
        for file in [
            "docs/site/browser.mjs",
            "docs/site/package.json",
            "docs/site/package-lock.json",
            "tests/playground/answers.mjs",
            "tests/playground/page.mjs",
        ] {
            let source = Path::new(ROOT).join(file);
            fs::copy(&source, folder.join(source.file_name().unwrap())).unwrap();
        }
        let install = ["ci", "--silent", "--no-audit", "--no-fund"];
        done(Command::new("npm").args(install).current_dir(&folder));
        Some(folder)
    });
    PAGE.as_deref()
}

fn done(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let bytes = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&bytes);
    assert!(output.status.success(), "{command:?}: {said}");
    println!("{said}");
    output
}

/// The number of answers besides the details of each finding.
const BESIDE_DETAILS: usize = 3;

/// All answers of the program about a text.
fn answer_of(question: &Question) -> Vec<String> {
    let checked = Checked::new(&question.text, &question.facts, NOW).unwrap();
    let verdict = checked.verdict();
    let count = verdict.matches("\"number\":").count();
    let details = (0..count).map(|number| checked.details(number));
    let beside = [verdict, checked.repair(), checked.report().unwrap()];
    beside.into_iter().chain(details).collect()
}

#[test]
fn the_webassembly_says_what_the_program_says() {
    let Some(page) = page() else { return };
    let mut questions = cases();
    questions.extend(corpus());
    let asked: Vec<[&str; 2]> =
        questions.iter().map(|asked| [asked.text.as_str(), asked.facts.as_str()]).collect();
    let file = page.join("questions.json");
    fs::write(&file, json!({"now": NOW, "questions": asked}).to_string()).unwrap();
    let output = Command::new("node")
        .arg(page.join("answers.mjs"))
        .args([page.join("playground-program.js"), file])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let answers: Vec<Vec<String>> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answers.len(), questions.len());
    let mut with_findings = 0;
    for (question, answer) in questions.iter().zip(&answers) {
        let expected = answer_of(question);
        assert!(*answer == expected, "{}: {answer:?}\n{expected:?}", question.name);
        with_findings += usize::from(expected.len() > BESIDE_DETAILS);
    }
    println!("{} texts, {with_findings} with findings", questions.len());
    assert!(with_findings > 300, "{with_findings}");
}

#[test]
fn the_command_line_says_the_same() {
    for question in corpus() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("manifest.yaml", &question.text), ("facts", &question.facts)] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let output = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"))
            .args(["check", "--exit-zero", "--format", "json"])
            .args(["--facts", "facts", "manifest.yaml"])
            .current_dir(&folder)
            .output()
            .unwrap();
        let checked = Checked::new(&question.text, &question.facts, NOW).unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(checked.report().unwrap(), printed, "{}", question.name);
    }
}

#[test]
fn a_browser_shows_the_page_and_sends_nothing() {
    let Some(page) = page() else { return };
    let pictures = page.join("pictures");
    fs::create_dir_all(&pictures).unwrap();
    done(Command::new("node").arg(page.join("page.mjs")).args([page, &pictures]));
}
