//! The commands that were run, as `tests/printed/commands.md` lists them.
//!
//! `COMMANDS=write cargo test --test diagnose` writes what each state has shown as soon as it
//! has ended, with the seconds that it took. Otherwise the list must say the same but for the
//! seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Mutex;

use crate::printed::{LIST, NOT_RUN};
use crate::world::Mode;

/// A command that did what it promised.
#[derive(Debug)]
pub(crate) struct Row {
    /// Without the names of the objects that it is about.
    pub(crate) command: String,
    /// What was waited for.
    pub(crate) end: String,
    pub(crate) seconds: f64,
}

/// The lines of a state: the command and what ended, with the seconds by mode.
type Lines = BTreeMap<(String, String), BTreeMap<Mode, String>>;

/// One state ends at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Writes what a state has shown into the list, or compares it with the list.
///
/// # Panics
///
/// When the list says something else.
pub(crate) fn add(states: &[&'static str], state: &str, mode: Mode, rows: &[Row]) {
    let turn = TURN.lock().unwrap();
    let list = std::fs::read_to_string(LIST).unwrap();
    let listed = lines(&list, state);
    if std::env::var_os("COMMANDS").is_some_and(|it| it == "write") {
        let merged = merged(listed, mode, rows);
        std::fs::write(LIST, rewritten(&list, states, state, &merged)).unwrap();
        return;
    }
    drop(turn);
    let ran: BTreeSet<(String, String)> = rows.iter().map(key).collect();
    let missing: Vec<_> = ran.iter().filter(|key| !listed.contains_key(key)).collect();
    assert!(
        missing.is_empty(),
        "tests/printed/commands.md does not list what was run in the state \"{state}\"; \
         COMMANDS=write writes it: {missing:#?}"
    );
}

fn key(row: &Row) -> (String, String) {
    (row.command.clone(), row.end.clone())
}

/// The lines with what this mode has shown, the longest time of a command that was run more
/// than once.
fn merged(mut lines: Lines, mode: Mode, rows: &[Row]) -> Lines {
    for cells in lines.values_mut() {
        cells.remove(&mode);
    }
    let mut seconds: BTreeMap<(String, String), f64> = BTreeMap::new();
    for row in rows {
        let longest = seconds.entry(key(row)).or_default();
        *longest = longest.max(row.seconds);
    }
    for (key, seconds) in seconds {
        let cells = lines.entry(key).or_default();
        cells.insert(mode, format!("{seconds:.1}"));
    }
    lines.retain(|_, cells| !cells.is_empty());
    lines
}

/// What the list says of a state.
fn lines(list: &str, state: &str) -> Lines {
    let mut lines = Lines::new();
    for line in section(list, state).lines() {
        let Some((command, rest)) = line
            .strip_prefix("| `")
            .and_then(|it| it.split_once("` | "))
        else {
            continue;
        };
        let mut cells = rest.trim_end_matches(" |").split(" | ");
        let end = cells.next().unwrap_or_default().to_owned();
        let cells = Mode::ALL.into_iter().zip(cells.map(str::to_owned));
        let cells = cells.filter(|(_, cell)| cell != NONE).collect();
        lines.insert((command.replace("\\|", "|"), end), cells);
    }
    lines
}

/// What stands where there is no number.
const NONE: &str = "–";

fn written(lines: &Lines) -> String {
    let mut text =
        "| command | then | deny | warn-only | absent |\n|---|---|---|---|---|\n".to_owned();
    for ((command, end), cells) in lines {
        let cell = |mode| cells.get(&mode).map_or(NONE, String::as_str);
        let [deny, warn, absent] = Mode::ALL.map(cell);
        let command = command.replace('|', "\\|");
        writeln!(text, "| `{command}` | {end} | {deny} | {warn} | {absent} |").unwrap();
    }
    text
}

fn section<'a>(list: &'a str, title: &str) -> &'a str {
    let opening = format!("\n## {title}\n");
    let rest = list.split_once(&opening).map_or("", |(_, rest)| rest);
    rest.split_once("\n## ")
        .map_or(rest, |(section, _)| section)
}

/// The list with one state's lines; those of others stay as long as there is such a state.
fn rewritten(list: &str, states: &[&'static str], state: &str, lines: &Lines) -> String {
    let (head, _) = list.split_once("\n## ").unwrap();
    let mut text = format!("{head}\n");
    for title in states {
        let lines = if *title == state {
            written(lines)
        } else {
            section(list, title).trim().to_owned()
        };
        if lines.contains("| `") {
            write!(text, "## {title}\n\n{}\n\n", lines.trim()).unwrap();
        }
    }
    let rest = section(list, NOT_RUN).trim();
    write!(text, "## {NOT_RUN}\n\n{rest}\n").unwrap();
    text
}
