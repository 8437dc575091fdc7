//! The tables of `docs/evidence/month.md`: the actions of all cases with their answers, and the
//! stuck states of `tests/diagnose` with what was seen after each printed command. `TABLE=write cargo
//! test --workspace --test e2e -- month` writes them.

use std::collections::{BTreeMap, BTreeSet};

use engine::model::words::listed;
use libtest_mimic::Failed;

use crate::always_there::between;
use crate::case::{Case, Command};
use crate::objects::Object;
use crate::{controllers, ways_out};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/evidence/month.md");

/// Checks that the page has the tables, or writes them if `TABLE` is `write`.
pub(crate) fn is_current(cases: &[Case]) -> Result<(), Failed> {
    let page = std::fs::read_to_string(PAGE)?;
    let mut new = page.clone();
    for (name, table) in [("actions", actions(cases)), ("states", states())] {
        let begin = format!(
            "<!-- table {name}: TABLE=write cargo test --workspace --test e2e -- month -->\n"
        );
        let end = format!("<!-- end of table {name} -->\n");
        new = between(&new, [&begin, &end], &table)?;
    }
    if std::env::var_os("TABLE").is_some_and(|value| value == "write") {
        return Ok(std::fs::write(PAGE, new)?);
    }
    let differing = page.lines().zip(new.lines()).find(|(old, new)| old != new);
    match differing {
        None if page == new => Ok(()),
        _ => {
            Err(format!("docs/evidence/month.md says otherwise, first here: {differing:?}").into())
        }
    }
}

/// The actions of people, with the answers of the built-in policy, and the repairs of others. Cases
/// with the same action, kind and answer share a row.
fn actions(cases: &[Case]) -> String {
    let mut rows: BTreeMap<[String; 3], BTreeSet<String>> = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut add = |action: String, kind: &str, operation: &str, said: &str| {
        *counts.entry(in_short(said)).or_default() += 1;
        let operations = rows.entry([action, kind.to_owned(), answer(said)]).or_default();
        operations.insert(operation.to_owned());
    };
    for case in cases {
        for (number, step) in case.steps().enumerate() {
            let operation = match number {
                0 => case.operation.clone(),
                _ => format!("{}, step {}", case.operation, number + 1),
            };
            if let Some(action) = typed(&step.r#do)
                && (case.policy == "deny" || !step.expect.fixed.is_empty())
            {
                add(action, &case.kind, &operation, &step.expect.in_a_word());
            }
        }
    }
    for (row, _) in controllers::ROWS.into_iter().chain(ways_out::ROWS) {
        let parts: Vec<&str> = row.split(" | ").collect();
        if let [kind, operation, said] = parts[..]
            && let Some(operation) = operation.strip_prefix("kubectl rollout undo")
        {
            let operation = operation.trim_start_matches([',', ' ']);
            add("kubectl rollout undo deployment/web".to_owned(), kind, operation, said);
        }
    }
    let all: usize = counts.values().sum();
    let counts: Vec<String> =
        counts.iter().map(|(answer, count)| format!("{count} {answer}")).collect();
    let mut table = format!("Of {all} actions, {}.\n\n", listed(&counts, "and"));
    table.push_str("| action | object | answer |\n|---|---|---|\n");
    for ([action, kind, answer], operations) in rows {
        let operations = Vec::from_iter(operations).join("; ");
        let action = action.replace('|', "\\|");
        table.push_str(&format!("| `{action}` | {kind}: {operations} | {answer} |\n"));
    }
    table
}

/// The command as a user types it; `None` if a controller sends it, or nobody asks the guard.
fn typed(command: &Command) -> Option<String> {
    let text = match command {
        Command::Apply(_) => "apply -f FILE",
        Command::ServerSide(_) => "apply --server-side -f FILE",
        Command::DryRun(_) => "apply --dry-run=server -f FILE",
        Command::Create(objects) if objects.iter().any(Object::is_owned) => return None,
        Command::Create(_) | Command::CreateRaw(_) => "create -f FILE",
        Command::Edit(_) => "edit, and kubectl replace -f FILE",
        Command::Kubectl(text) => text,
        Command::Unguarded(_) => return None,
    };
    let words = text.split(' ').map(|word| {
        let word = word.replace("{ns}", "NAME").replace('␣', " ");
        if word.contains(['{', '*', ' ']) { format!("'{word}'") } else { word }
    });
    Some(format!("kubectl {}", Vec::from_iter(words).join(" ")))
}

fn answer(said: &str) -> String {
    said.replace("deny (", "denied (")
        .replace("fix (", "repaired (")
        .replace("warn (", "warned (")
        .replace("silent", "passes")
        .replace("refused by Kubernetes", "error")
}

fn in_short(said: &str) -> &'static str {
    let answers = [
        ("deny", "are denied"),
        ("fix", "are repaired"),
        ("warn", "pass with a warning"),
        ("refused", "end in another error"),
    ];
    let found = answers.iter().find(|(word, _)| said.contains(word));
    found.map_or("pass silently", |(_, answer)| answer)
}

/// Each state of `tests/printed/commands.md`, with the number of its commands.
fn states() -> String {
    let list = include_str!("../printed/commands.md");
    let mut table = "| state | commands | seen after them |\n|---|---|---|\n".to_owned();
    for section in list.split("\n## ").skip(1) {
        let (title, rows) = section.split_once('\n').unwrap_or_default();
        if title == "Not run" {
            continue;
        }
        let seen: Vec<&str> = rows
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.rsplit_once("` | "))
            .map(|(_, seen)| seen)
            .collect();
        let different = Vec::from_iter(seen.iter().copied().collect::<BTreeSet<_>>()).join("; ");
        table.push_str(&format!("| {title} | {} | {different} |\n", seen.len()));
    }
    table
}
