//! The commands that were run; `tests/printed/commands.md` lists them by state.

use std::collections::BTreeSet;

/// A successful command, without the names of its objects, and its effect.
pub(crate) type Row = (String, String);

/// Asserts that the list has all commands that were run in a state.
///
/// # Panics
///
/// With the missing lines.
pub(crate) fn assert_has(state: &str, rows: &[Row]) {
    let list = include_str!("../printed/commands.md");
    let (_, section) = list.split_once(&format!("\n## {state}\n")).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = rows.iter().map(|(command, end)| {
        let command = command.replace('|', "\\|");
        format!("| `{command}` | {end} |")
    });
    let missing: BTreeSet<String> = lines.filter(|line| !section.contains(line)).collect();
    assert!(
        missing.is_empty(),
        "tests/printed/commands.md lacks these lines under \"{state}\":\n{}",
        Vec::from_iter(missing).join("\n")
    );
}
