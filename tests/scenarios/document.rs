//! Checks that the tables of `docs/evidence/ground-truth.md` are the rows of
//! `tests/ground-truth.yaml`.

use std::path::Path;

use crate::scenario::{Played, Section, played, sections};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/evidence/ground-truth.md");

const HEAD: &str = "| scenario | set-up | what happens | elsewhere | the engine says |";

/// Writes the tables if `GROUND_TRUTH` is `write`, and compares them otherwise.
///
/// # Errors
///
/// The first line that differs, or a section that the document lacks.
pub(crate) fn check() -> Result<(), String> {
    let document = Path::new(DOCUMENT);
    let old = std::fs::read_to_string(document).map_err(|error| error.to_string())?;
    let mut new = old.clone();
    for section in sections() {
        new = with_table(&new, section)?;
    }
    new = with_played(&new)?;
    if std::env::var("GROUND_TRUTH").is_ok_and(|value| value == "write") {
        return std::fs::write(document, new).map_err(|error| error.to_string());
    }
    let differing = old.lines().zip(new.lines()).find(|(old, new)| old != new);
    match differing {
        None if old == new => Ok(()),
        _ => Err(format!(
            "docs/evidence/ground-truth.md is not what tests/ground-truth.yaml says, first here: \
             {differing:?}. Run GROUND_TRUTH=write cargo test --workspace --test scenarios -- tables"
        )),
    }
}

/// The document with a new line about where the rows were played.
fn with_played(document: &str) -> Result<String, String> {
    let begin = "\nPlayed so far: ";
    let lacking = "docs/evidence/ground-truth.md has no line that begins with \"Played so far: \"";
    let (before, rest) = document.split_once(begin).ok_or(lacking)?;
    let (_, after) = rest.split_once('\n').ok_or(lacking)?;
    let Played { simulated, kubelets } = played();
    let list = |minors: &[String]| match minors {
        [] => "none".to_owned(),
        minors => minors.join(", "),
    };
    let (simulated, kubelets) = (list(simulated), list(kubelets));
    Ok(format!(
        "{before}{begin}with simulated nodes on {simulated}; with kubelets on {kubelets}.\n{after}"
    ))
}

/// The document with a new table for the section.
fn with_table(document: &str, section: &Section) -> Result<String, String> {
    let title = format!("\n## {}\n", section.title);
    let lacking = || format!("docs/evidence/ground-truth.md has no table under {}", title.trim());
    let (before, rest) = document.split_once(&title).ok_or_else(lacking)?;
    let (between, table) = rest.split_once("| scenario |").ok_or_else(lacking)?;
    let after = table.split_once("\n\n").map_or("", |(_, after)| after);
    let rows: String = section.rows.iter().map(|row| row.row() + "\n").collect();
    Ok(format!("{before}{title}{between}{HEAD}\n|---|---|---|---|---|\n{rows}\n{after}"))
}
