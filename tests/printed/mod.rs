//! Commands that the program or its documentation prints, and `tests/printed/commands.md`, the list
//! of the commands that tests have run.

#![allow(dead_code, reason = "each test binary uses only a part of what is shared")]

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// Words of a command that names follow, up to the next option.
const BEFORE_NAMES: [&str; 20] = [
    "cordon",
    "cronjob",
    "daemonset",
    "deploy",
    "deployment",
    "drain",
    "hpa",
    "job",
    "lease",
    "namespace",
    "node",
    "pod",
    "pv",
    "pvc",
    "replicaset",
    "replicationcontroller",
    "statefulset",
    "uncordon",
    "volumeattachment",
    "volumeattachments",
];

/// JSON keys whose values are names.
const NAMED: [&str; 4] = ["kubernetes.io/hostname", "claimName", "matchLabels", "value"];

/// The command without the names of its objects, so that the same command for two objects is one
/// entry of the list.
pub(crate) fn shape(command: &str) -> String {
    let mut shaped: Vec<String> = Vec::new();
    let mut names_follow = false;
    for word in words(command) {
        let after = shaped.last().map(String::as_str).unwrap_or_default();
        let shape = match after {
            "-n" | "--namespace" => "NAMESPACE".to_owned(),
            "--explain" => "LINE".to_owned(),
            "-f" | "-k" if !command.contains(" logs ") && !is_of_the_repository(&word) => {
                "FILE".to_owned()
            }
            "-l" if !word.contains("multi-attach-guard") => "LABELS".to_owned(),
            _ if word.starts_with('-') => option(&word),
            _ if names_follow && is_name(&word) => "NAME".to_owned(),
            _ => argument(&word),
        };
        names_follow = match shape.as_str() {
            "NAME" => true,
            other => BEFORE_NAMES.contains(&other),
        };
        // Several names are one in the list.
        if !shape.ends_with("NAME") || shape != after {
            shaped.push(shape);
        }
    }
    shaped.join(" ")
}

fn is_of_the_repository(word: &str) -> bool {
    word == "-" || word.starts_with("manifests/") || word.starts_with("examples/")
}

fn is_name(word: &str) -> bool {
    let mut characters = word.chars();
    !word.ends_with('-') && characters.all(|c| c.is_ascii_alphanumeric() || "-._…".contains(c))
}

fn option(word: &str) -> String {
    for named in ["--to-revision=", "--kubeconfig=", "--as=", "--context="] {
        if word.starts_with(named) {
            return format!("{named}…");
        }
    }
    match word.strip_prefix("--replicas=") {
        Some(count) if count != "0" => "--replicas=N".to_owned(),
        _ => word.to_owned(),
    }
}

/// `deployment/web` and `key="some text"` without the reader's own parts.
fn argument(word: &str) -> String {
    if let Some(json) = word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''))
        && let Ok(mut value) = serde_json::from_str::<Value>(json)
    {
        without_names(&mut value);
        return format!("'{value}'");
    }
    // If the argument contains spaces, all of it is quoted.
    let bare = word.trim_matches('\'');
    if let Some((key, _)) = bare.split_once('=')
        && (key.ends_with("/reason") || key.ends_with("/until"))
    {
        return format!("{key}=…");
    }
    match bare.split_once('/') {
        Some((kind, name))
            if is_kind(kind) && !name.contains(['=', ':']) && !name.ends_with('-') =>
        {
            format!("{kind}/NAME")
        }
        _ => word.to_owned(),
    }
}

/// Whether the word is a kind of Kubernetes, or a custom kind with its group.
fn is_kind(word: &str) -> bool {
    let has_group = word.contains('.')
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.');
    BEFORE_NAMES.contains(&word) || has_group
}

/// Replaces the parts of a patch that differ between objects.
fn without_names(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                match field {
                    Value::String(path) if key == "path" => *path = path.replace("/1/", "/0/"),
                    Value::String(name) if NAMED.contains(&key.as_str()) => "…".clone_into(name),
                    Value::Object(labels) if key == "matchLabels" => {
                        *labels = serde_json::Map::from_iter([("…".to_owned(), "…".into())]);
                    }
                    other => without_names(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_names),
        _ => {}
    }
}

/// The words of a command with their quotes, as a shell splits them.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => {
                if words.last().is_some_and(|word| !word.is_empty()) {
                    words.push(String::new());
                }
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The commands in a text: the lines of its shell blocks, and the parts between backticks that
/// begin with the name of a program.
pub(crate) fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, part) in text.split("```").enumerate() {
        if number % 2 == 0 {
            found.extend(between_backticks(part));
        } else if let Some(block) =
            ["sh\n", "console\n"].iter().find_map(|language| part.strip_prefix(language))
        {
            found.extend(of_block(block));
        }
    }
    found
}

/// The commands between backticks in prose.
pub(crate) fn between_backticks(text: &str) -> Vec<String> {
    let parts = text.split('`').enumerate();
    let spans = parts.filter_map(|(number, part)| (number % 2 == 1).then_some(part));
    spans
        .map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ").replace("\\|", "|"))
        .filter(|command| is_command(command))
        .collect()
}

/// The commands between backticks in a printed text, as a reader copies them.
pub(crate) fn copied(text: &str) -> impl Iterator<Item = &str> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| is_command(&span.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Asserts that a shell takes each of these texts for one command.
///
/// # Panics
///
/// If a text is several commands or none.
pub(crate) fn assert_pasted<'a>(commands: impl IntoIterator<Item = &'a str>) {
    let commands = BTreeSet::from_iter(commands);
    assert!(!commands.is_empty());
    for command in commands {
        let parsed = Command::new("sh").args(["-n", "-c", command]).output().unwrap();
        let is_one = parsed.status.success() && !command.contains('\n');
        assert!(is_one, "{command:?}: {}", String::from_utf8_lossy(&parsed.stderr));
    }
}

/// Whether the text is a command that can be run, not only the name of one.
fn is_command(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    match words.first() {
        Some(&"kubectl") => words.len() > 3 || text.contains('/'),
        Some(&"multi-attach-guard") => words.len() > 3,
        Some(&("helm" | "flux" | "argocd" | "docker")) => words.len() > 2,
        _ => false,
    }
}

/// The commands of a block, each with its continuation lines.
pub(crate) fn of_block(block: &str) -> Vec<String> {
    let joined = block.replace("\\\n", " ");
    let mut commands: Vec<String> = Vec::new();
    let mut is_input = false;
    for line in joined.lines() {
        if is_input {
            is_input = line != "YAML";
            continue;
        }
        is_input = line.contains("<<'YAML'");
        let (line, _) = line.split_once(" # ").unwrap_or((line, ""));
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        match commands.last_mut() {
            // An open quote or a pipe at the end continues on the next line.
            Some(last) if last.matches('\'').count() % 2 == 1 || last.ends_with('|') => {
                last.push(' ');
                last.push_str(&line);
            }
            _ if line.is_empty() || line.starts_with('#') => {}
            _ => commands.push(line.trim_start_matches("$ ").to_owned()),
        }
    }
    commands
}

/// The shapes of all commands in the list, including those that are not run.
fn listed() -> &'static BTreeSet<String> {
    static LISTED: OnceLock<BTreeSet<String>> = OnceLock::new();
    LISTED.get_or_init(|| {
        let list = include_str!("commands.md");
        let rows = list.lines().filter_map(|line| line.strip_prefix("| `"));
        let cells = rows.filter_map(|row| row.split_once("` |"));
        cells.map(|(command, _)| command.replace("\\|", "|")).collect()
    })
}

/// Asserts that the list has these commands: a command that no test has run needs a reason there.
///
/// # Panics
///
/// If the list lacks a command.
pub(crate) fn assert_listed<'a>(commands: impl IntoIterator<Item = &'a str>, printed_by: &str) {
    let listed = listed();
    // Control characters for a terminal are printed as escapes, and such a text is no command.
    let commands = commands.into_iter().filter(|command| !command.contains("\\u{"));
    let shapes = commands.map(shape);
    let missing: BTreeSet<String> = shapes.filter(|shape| !listed.contains(shape)).collect();
    assert!(
        missing.is_empty(),
        "{printed_by} prints commands that tests/printed/commands.md does not list. Have a state of \
         tests/diagnose run them, or give the reason under \"Not run\":\n{}",
        Vec::from_iter(missing).join("\n")
    );
}
