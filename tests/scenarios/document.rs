//! `docs/ground-truth.md` has a row for each scenario and none besides.

use crate::scenario::{Engine, Scenario};

const DOCUMENT: &str = include_str!("../../docs/ground-truth.md");

/// Compares the document's rows with the scenarios.
///
/// # Errors
///
/// The rows that are missing and those that are too many.
pub(crate) fn check(scenarios: &[Scenario]) -> Result<(), String> {
    let rows: Vec<String> = scenarios.iter().map(row).collect();
    let missing = rows
        .iter()
        .filter(|row| !DOCUMENT.lines().any(|line| line == *row));
    let written = DOCUMENT.lines().filter(|line| {
        ["| S", "| X", "| Y"]
            .iter()
            .any(|start| line.starts_with(start))
    });
    let extra = written.filter(|line| !rows.iter().any(|row| row == line));
    let missing = missing.map(|row| format!("missing: {row}"));
    let extra = extra.map(|line| format!("no such scenario: {line}"));
    let faults: Vec<String> = missing.chain(extra).collect();
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!(
        "docs/ground-truth.md is not what the scenarios say.\n{}",
        faults.join("\n")
    ))
}

fn row(scenario: &Scenario) -> String {
    let outcomes: Vec<String> = scenario.expected.iter().map(ToString::to_string).collect();
    let engine = match scenario.engine {
        Engine::Observation => "the same".to_owned(),
        Engine::Not { verdict, because } => format!("{verdict}: {because}"),
    };
    let Scenario { name, title, .. } = scenario;
    format!(
        "| {name} | {title} | {} | {engine} |",
        outcomes.join(" or ")
    )
}
