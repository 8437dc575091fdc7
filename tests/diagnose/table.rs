//! The commands that were run, as `docs/commands.md` lists them.
//!
//! `COMMANDS=write cargo test --test diagnose` writes the sections of the states that were
//! played, with the seconds that it took. Otherwise those sections must say the same but for
//! the seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Mutex;

use crate::printed::{LIST, NOT_RUN};
use crate::world::Mode;

/// A command that did what it promised.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) state: &'static str,
    pub(crate) mode: Mode,
    /// Without the names of the objects that it is about.
    pub(crate) command: String,
    /// What was waited for.
    pub(crate) end: String,
    pub(crate) seconds: f64,
}

static ROWS: Mutex<Vec<Row>> = Mutex::new(Vec::new());

/// The states that were played to their end, by mode.
static PLAYED: Mutex<BTreeSet<(&'static str, Mode)>> = Mutex::new(BTreeSet::new());

/// Keeps what a state has shown.
pub(crate) fn add(state: &'static str, mode: Mode, rows: Vec<Row>) {
    ROWS.lock().unwrap().extend(rows);
    PLAYED.lock().unwrap().insert((state, mode));
}

/// A line of the list: the command, what ended, and the seconds by mode.
type Lines = BTreeMap<(String, String), BTreeMap<Mode, f64>>;

/// Writes the list, or compares it with what was run; answers whether they agree. Only
/// states that were played in all of their `modes` count.
pub(crate) fn settle(modes: &BTreeMap<&'static str, &'static [Mode]>) -> bool {
    let played = PLAYED.lock().unwrap();
    let whole = modes
        .iter()
        .filter(|(state, modes)| modes.iter().all(|mode| played.contains(&(*state, *mode))));
    let whole: BTreeMap<&str, Lines> = whole.map(|(state, _)| (*state, lines(state))).collect();
    let list = std::fs::read_to_string(LIST).unwrap();
    if std::env::var_os("COMMANDS").is_some_and(|it| it == "write") {
        std::fs::write(LIST, rewritten(&list, &whole, modes)).unwrap();
        return true;
    }
    let mut agree = true;
    for (state, lines) in whole {
        let section = section(&list, state);
        let listed: BTreeSet<String> = section.lines().filter_map(without_seconds).collect();
        let ran: BTreeSet<String> = written(&lines)
            .lines()
            .filter_map(without_seconds)
            .collect();
        if listed != ran {
            agree = false;
            println!(
                "docs/commands.md does not list what was run in the state \"{state}\" \
                 (COMMANDS=write writes it):\nlisted {listed:#?}\nran {ran:#?}"
            );
        }
    }
    agree
}

fn lines(state: &str) -> Lines {
    let mut lines = Lines::new();
    for row in ROWS.lock().unwrap().iter().filter(|it| it.state == state) {
        let line = lines
            .entry((row.command.clone(), row.end.clone()))
            .or_default();
        let seconds = line.entry(row.mode).or_default();
        *seconds = seconds.max(row.seconds);
    }
    lines
}

fn written(lines: &Lines) -> String {
    let mut text =
        "| command | then | deny | warn-only | absent |\n|---|---|---|---|---|\n".to_owned();
    for ((command, end), seconds) in lines {
        let cell = |mode| {
            let seconds = seconds.get(&mode).copied();
            seconds.map_or_else(|| "–".to_owned(), |it: f64| format!("{it:.1}"))
        };
        let [deny, warn, absent] = Mode::ALL.map(cell);
        let command = command.replace('|', "\\|");
        writeln!(text, "| `{command}` | {end} | {deny} | {warn} | {absent} |").unwrap();
    }
    text
}

/// A row with a mark in place of each number.
fn without_seconds(line: &str) -> Option<String> {
    let row = line.strip_prefix("| `")?;
    let (command, rest) = row.split_once("` | ")?;
    let (end, cells) = rest.split_once(" | ")?;
    let ran = |cell: &str| if cell.trim() == "–" { "–" } else { "ran" };
    let cells: Vec<&str> = cells.trim_end_matches(" |").split(" | ").map(ran).collect();
    Some(format!("{command} | {end} | {}", cells.join(" | ")))
}

fn section<'a>(list: &'a str, title: &str) -> &'a str {
    let opening = format!("\n## {title}\n");
    let rest = list.split_once(&opening).map_or("", |(_, rest)| rest);
    rest.split_once("\n## ")
        .map_or(rest, |(section, _)| section)
}

/// The list with the sections of what was played; others stay as long as there is such a state.
fn rewritten(
    list: &str,
    played: &BTreeMap<&str, Lines>,
    states: &BTreeMap<&'static str, &'static [Mode]>,
) -> String {
    let (head, _) = list.split_once("\n## ").unwrap();
    let mut text = format!("{head}\n");
    for state in states.keys() {
        let lines = match played.get(state) {
            Some(lines) => written(lines),
            None => format!("{}\n", section(list, state).trim()),
        };
        if lines.contains("| `") {
            write!(text, "## {state}\n\n{lines}\n").unwrap();
        }
    }
    let rest = section(list, NOT_RUN).trim();
    write!(text, "## {NOT_RUN}\n\n{rest}\n").unwrap();
    text
}
