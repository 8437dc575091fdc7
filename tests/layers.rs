//! Imports point downwards only, and doors do not know each other.

#![allow(
    clippy::expect_used,
    reason = "a source that cannot be read stops the test"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// The core, from the ground up: each may name those before it.
const CORE: [&str; 10] = [
    "model",
    "snapshot",
    "storage",
    "analysis",
    "rules",
    "remedy",
    "policy",
    "verdict",
    "diagnosis",
    "migration",
];

/// The doors: each may name the core, itself and what stands beside it.
const DOORS: [(&str, &[&str]); 8] = [
    ("admission", &[]),
    ("certs", &["file_poller"]),
    ("events", &[]),
    ("file_poller", &[]),
    ("manifest", &[]),
    ("report", &[]),
    // What it serves are reviews.
    ("server", &["admission"]),
    // Facts come from manifests too.
    ("source", &["manifest"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

/// The modules of this crate that a source names, but for documentation.
fn named(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| {
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            &rest[..end]
        })
        .filter(|name| !name.is_empty())
}

#[test]
fn imports_point_downwards_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut wrong = Vec::new();
    let mut imports = 0;
    for file in &files {
        let inside = file.strip_prefix(&root).expect("the file is in src");
        let module = inside
            .iter()
            .next()
            .and_then(|first| Path::new(first).file_stem())
            .and_then(|stem| stem.to_str())
            .expect("the module has a name");
        let text = fs::read_to_string(file).expect("the file can be read");
        if text.contains("use crate::{") {
            wrong.push(format!(
                "{} groups its imports, which this test does not read; name each module in a line of its own",
                inside.display()
            ));
        }
        for target in named(&text) {
            imports += 1;
            let level = |name| CORE.iter().position(|layer| *layer == name);
            let allowed = match (level(module), level(target)) {
                (Some(own), Some(other)) => other <= own,
                (Some(_), None) => false,
                (None, Some(_)) => true,
                (None, None) => {
                    target == module
                        || matches!(module, "cli" | "main" | "lib")
                        || DOORS
                            .iter()
                            .any(|(door, overlay)| *door == module && overlay.contains(&target))
                }
            };
            if !allowed {
                wrong.push(format!("{} names crate::{target}", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(imports > 100, "only {imports} imports were seen");
}
