//! Proposals in the comments of manifests: lines of YAML behind `#` without a blank. (Prose has the
//! blank.) A file in which a proposal is followed must be correct.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::rendered::{documents, printed, script};
use crate::repository;

fn is_proposed(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix('#');
    rest.is_some_and(|text| !text.is_empty() && !text.starts_with([' ', '!', '#']))
}

/// The text once for each proposal in it, with that proposal followed. A proposal is a run of such
/// lines, including indented lines with blanks after the `#`.
fn followed(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let goes_on = |line: &&&str| is_proposed(line) || line.trim_start().starts_with("#  ");
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(skipped) = lines[at..].iter().position(|line| is_proposed(line)) {
        let from = at + skipped;
        at = from + lines[from..].iter().take_while(goes_on).count();
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

/// The policies in a file of manifests. The program itself reads them, because it checks more than
/// YAML.
fn policies(text: &str) -> Vec<Vec<Value>> {
    let mut policies = Vec::new();
    for document in documents(text) {
        assert!(document.is_object(), "{text}");
        if let Some(policy) = document.pointer("/data/policy.yaml") {
            let policy = policy.as_str().unwrap();
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("policy.yaml");
            fs::write(&file, policy).unwrap();
            let mut check = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
            check.arg("check").arg("--config").arg(&file);
            printed(check.arg(repository("manifests/base/namespace.yaml")));
            policies.push(documents(policy));
        }
    }
    policies
}

#[test]
fn what_comments_propose_is_right() {
    let find = "find manifests certs -name '*.yaml' -not -path '*/templates/*'";
    let files = script(&repository("."), find);
    let mut count = 0;
    for file in files.lines() {
        let text = fs::read_to_string(repository(file)).unwrap();
        count += policies(&text).len();
        for alternative in followed(&text) {
            let policies = policies(&alternative);
            assert!(
                policies.iter().all(|policy| matches!(policy[..], [Value::Object(_)])),
                "{alternative}"
            );
            count += policies.len();
        }
    }
    assert!(files.lines().count() > 10, "{files}");
    // The policy of the base, its alternative, and the policy of the first week.
    assert!(count >= 3, "{count}");
}
