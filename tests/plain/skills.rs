//! The skills, which agents load: what they say is what the program says.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use doctor::diagnosis::CAUSES;
use multi_attach_guard::cli::Cli;
use serde_json::Value;

use crate::output::{code, out, program};

const PROGRAM: &str = "multi-attach-guard";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder and the text of each skill.
fn skills() -> Vec<(PathBuf, String)> {
    let folders = fs::read_dir(root().join("skills")).unwrap();
    folders
        .map(|entry| entry.unwrap().path())
        .map(|folder| (folder.clone(), fs::read_to_string(folder.join("SKILL.md")).unwrap()))
        .collect()
}

/// The rows of the table with this head, as the texts between backticks in each cell.
fn table<'t>(skill: &'t str, head: &str) -> Vec<[Vec<&'t str>; 2]> {
    let (_, rows) = skill.split_once(&format!("{head}\n|---|---|\n")).unwrap();
    let rows = rows.lines().take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let (first, second) = row.trim_matches(['|', ' ']).split_once(" | ").unwrap();
        [first, second].map(|cell| cell.split('`').skip(1).step_by(2).collect())
    })
    .collect()
}

#[test]
fn a_skill_is_found_by_its_name() {
    let skills = skills();
    assert!(skills.len() > 1);
    for (folder, text) in &skills {
        let front = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
        let front: Value = serde_saphyr::from_str(front.unwrap().0).unwrap();
        assert_eq!(front["name"], folder.file_name().unwrap().to_str().unwrap());
        let description = front["description"].as_str().unwrap();
        assert!((1..=1024).contains(&description.len()), "{description}");
    }
    // The place of the only skill before.
    let linked = fs::read_to_string(root().join("SKILL.md")).unwrap();
    assert!(skills.iter().any(|(_, text)| *text == linked));
}

#[test]
fn every_command_of_a_skill_is_understood() {
    for (folder, text) in skills() {
        let blocks = text.split("\n```").skip(1).step_by(2).flat_map(str::lines);
        let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        let mut understood = 0;
        for command in blocks.chain(spans).flat_map(|line| line.split(" | ")) {
            let command = command.split(" #").next().unwrap_or_default().trim();
            if command.split(' ').next() != Some(PROGRAM) {
                continue;
            }
            if let Err(error) = Cli::try_parse_from(command.split(' ')) {
                panic!("{}: {command}: {error}", folder.display());
            }
            understood += 1;
        }
        assert!(understood > 4, "{}", folder.display());
    }
}

#[test]
fn a_skill_has_the_causes_of_each_line_and_what_helps() {
    let skill = root().join("skills/kubernetes-pod-waits-for-its-volume/SKILL.md");
    let skill = fs::read_to_string(skill).unwrap();
    let lines = table(&skill, "| line | causes |");
    assert!(lines.len() > 9, "{lines:?}");
    for [line, causes] in lines {
        let [line] = line[..] else { panic!("{line:?}") };
        let explain = ["diagnose", "--format", "json", "--explain", line];
        let explained = program(&explain).output().unwrap();
        assert_eq!(code(&explained), 0, "{line}");
        let explained: Value = serde_json::from_str(out(&explained)).unwrap();
        assert_eq!(explained["known"][0]["causes"], Value::from(causes), "{line}");
    }
    let mut named: Vec<&str> = table(&skill, "| cause | what helps first |")
        .into_iter()
        .flat_map(|[codes, _]| codes)
        .collect();
    let mut known: Vec<&str> = CAUSES.iter().map(|cause| cause.code.as_str()).collect();
    named.sort_unstable();
    known.sort_unstable();
    assert_eq!(named, known);
}
