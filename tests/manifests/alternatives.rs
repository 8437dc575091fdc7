//! What comments in manifests propose: lines of YAML behind `#` without a blank. (Prose
//! has the blank.) Following the proposal must give a file that is right.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::rendered::{documents, printed};
use crate::repository;

fn yaml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|it| it == "yaml")
            && !path.iter().any(|part| part == "templates")
        {
            found.push(path);
        }
    }
}

/// A line with its `#` taken away, if it is a proposal.
fn proposed(line: &str) -> Option<String> {
    let text = line.trim_start();
    let rest = text.strip_prefix('#')?;
    if rest.is_empty() || rest.starts_with([' ', '!', '#']) {
        return None;
    }
    let indent = &line[..line.len() - text.len()];
    Some(format!("{indent}{rest}"))
}

/// The text once for each proposal in it, with that one followed. A proposal is a run
/// of such lines; those that go on with blanks after the `#` are indented.
fn followed(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let from = at;
        while at < lines.len()
            && (proposed(lines[at]).is_some()
                || at > from && lines[at].trim_start().starts_with("#  "))
        {
            at += 1;
        }
        if at == from {
            at += 1;
            continue;
        }
        let own = lines.iter().enumerate().map(|(number, line)| {
            if (from..at).contains(&number) {
                line.replacen('#', "", 1)
            } else {
                (*line).to_owned()
            }
        });
        all.push(own.collect::<Vec<_>>().join("\n"));
    }
    all
}

/// Policies are read by the program itself, which knows more than YAML.
fn policy_is_read(policy: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.yaml");
    fs::write(&file, policy).unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
    check.arg("check").arg("--config").arg(&file);
    printed(check.arg(repository("manifests/base/namespace.yaml")));
}

fn is_right(path: &Path, text: &str) -> usize {
    let mut policies = 0;
    for document in documents(text) {
        assert!(document.is_object(), "{}: {document}", path.display());
        if let Some(policy) = document.pointer("/data/policy.yaml") {
            let policy = policy.as_str().unwrap();
            policy_is_read(policy);
            policies += 1;
            for alternative in followed(policy) {
                let read: Value = serde_saphyr::from_str(&alternative).unwrap();
                assert!(read.is_object(), "{}: {alternative}", path.display());
                policy_is_read(&alternative);
                policies += 1;
            }
        }
    }
    policies
}

#[test]
fn what_comments_propose_is_right() {
    let mut files = Vec::new();
    for folder in ["manifests", "certs"] {
        yaml_files(&repository(folder), &mut files);
    }
    let mut policies = 0;
    for path in &files {
        let text = fs::read_to_string(path).unwrap();
        policies += is_right(path, &text);
        for alternative in followed(&text) {
            policies += is_right(path, &alternative);
        }
    }
    assert!(files.len() > 10, "{files:?}");
    // That of the base and its alternative, and the one of the first week.
    assert!(policies >= 3, "{policies}");
}
