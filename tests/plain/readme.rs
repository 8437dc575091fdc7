//! The commands in the README print the output that it shows.

use crate::output::{out, program};

/// The parts of a ```` ```console ```` block: a command and its output.
fn sessions(text: &str) -> Vec<(String, String)> {
    let mut sessions: Vec<(String, String)> = Vec::new();
    for block in text.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                sessions.push((command.to_owned(), String::new()));
            } else if let Some((_, output)) = sessions.last_mut() {
                output.push_str(line);
                output.push('\n');
            }
        }
    }
    sessions
}

#[test]
fn the_readme_shows_what_is_printed() {
    let root = env!("CARGO_MANIFEST_DIR");
    let readme = std::fs::read_to_string(format!("{root}/README.md")).unwrap();
    let mut checked = 0;
    for (command, shown) in sessions(&readme) {
        let Some(line) = command.strip_prefix("multi-attach-guard ") else {
            continue;
        };
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let output = program(&arguments).current_dir(root).output().unwrap();
        assert_eq!(shown.trim_end(), out(&output).trim_end(), "{command}");
        checked += 1;
    }
    assert!(checked > 0, "the README shows no command");
}
