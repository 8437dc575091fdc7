//! The findings and the edits in an editor against those of `check`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::case_files::put;
use super::client::{Editor, at_start, check, folder, place_in_editor, place_of, program, uri};

/// The files of cases whose folders need no server.
const CASES: [&str; 6] =
    ["findings", "scopes", "custom_kinds", "rendered", "deliveries", "releases"];

/// The manifests below a folder.
fn manifests(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        // An editor shows what is open; `check` skips hidden files.
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let is_manifest = path
            .extension()
            .is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        if kind.is_dir() {
            files.extend(manifests(&path));
        } else if kind.is_file() && is_manifest {
            files.extend(fs::read_to_string(&path).ok().map(|text| (path, text)));
        }
    }
    files
}

/// Opens every manifest of the folder, and compares what is shown with the findings of `check`.
/// Returns their number.
fn compare(name: &str, root: &Path) -> usize {
    let found = check(root, &[]);
    let mut editor = Editor::start(root, &[]);
    let files = manifests(root);
    for (file, text) in &files {
        editor.open(file, text);
    }
    let mut compared = 0;
    for (file, text) in &files {
        let of_file = |finding: &&Value| {
            let named = root.join(finding["file"].as_str().unwrap());
            named.canonicalize().is_ok_and(|real| real == *file)
        };
        let reported = found.iter().filter(|finding| finding["action"] != "ignore");
        let mut expected: Vec<Value> =
            reported.filter(of_file).map(|finding| place_of(finding, text)).collect();
        // A notice has no rule.
        let shown = editor.shown(file);
        let mut shown: Vec<Value> =
            shown.iter().filter(|one| !one["code"].is_null()).map(place_in_editor).collect();
        expected.sort_by_key(Value::to_string);
        shown.sort_by_key(Value::to_string);
        assert_eq!(shown, expected, "{name}: {}", file.display());
        compared += expected.len();
    }
    editor.end();
    compared
}

#[test]
fn the_examples_and_the_corpus_have_the_findings_of_check() {
    let mut compared = 0;
    for folder in ["examples", "tests/corpus", "tests/corpus/at-fault"] {
        compared += compare(folder, &fs::canonicalize(folder).unwrap());
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn the_cases_have_the_findings_of_check() {
    let mut compared = 0;
    for file in CASES {
        let text = fs::read_to_string(format!("tests/check/cases/{file}.yaml")).unwrap();
        let all: Value = serde_saphyr::from_str(&text).unwrap();
        for case in all["cases"].as_array().unwrap() {
            let files: Vec<BTreeMap<String, Value>> =
                serde_json::from_value(case["files"].clone()).unwrap_or_default();
            let (_kept, root) = folder(&[]);
            // A cache of fetched charts comes only from a fetch.
            let is_here = |(name, content): &(&String, &Value)| {
                !name.ends_with("/*") && (!content.is_null() || root.join(name).exists())
            };
            put(&root, files.iter().flatten().filter(is_here));
            compared += compare(&format!("{file}: {}", case["name"]), &root);
        }
    }
    println!("{compared} findings are the same");
    assert!(compared > 100, "{compared}");
}

/// The text after the first edit of the action.
fn edited(text: &str, action: &Value, file: &Path) -> String {
    let edit = &action["edit"]["changes"][uri(file)][0];
    let byte = |position: &Value| {
        let number = usize::try_from(position["line"].as_u64().unwrap()).unwrap();
        let start: usize = text.split_inclusive('\n').take(number).map(str::len).sum();
        let units = usize::try_from(position["character"].as_u64().unwrap()).unwrap();
        let before: Vec<u16> = text[start..].encode_utf16().take(units).collect();
        start + String::from_utf16(&before).unwrap().len()
    };
    let [start, end] = ["start", "end"].map(|which| byte(&edit["range"][which]));
    [&text[..start], edit["newText"].as_str().unwrap(), &text[end..]].concat()
}

#[test]
fn an_action_makes_the_text_that_check_makes() {
    let mut compared = 0;
    for (file, text) in manifests(Path::new("tests/corpus/at-fault")) {
        let name = file.file_name().unwrap().to_str().unwrap();
        let fixed = |remedy: &[&str]| {
            let (_kept, root) = folder(&[(name, &text)]);
            let arguments = [&["check", "--render", "never", "--fix", name], remedy].concat();
            program(&root, &arguments).output().unwrap();
            fs::read_to_string(root.join(name)).unwrap()
        };
        let (_kept, root) = folder(&[(name, &text)]);
        let document = root.join(name);
        let mut editor = Editor::start(&root, &[]);
        editor.open(&document, &text);
        let whole = editor.actions(&document, &at_start(), &json!(["source.fixAll"]));
        let by_fix = fixed(&[]);
        let by_editor =
            whole.first().map_or_else(|| text.clone(), |all| edited(&text, all, &document));
        assert_eq!(by_editor, by_fix, "{name}");
        let shown = editor.shown(&document);
        let objects = shown.iter().filter(|one| one["severity"] == 1).count();
        for found in &shown {
            let offered = editor.actions(&document, &found["range"]["start"], &Value::Null);
            assert!(
                offered
                    .iter()
                    .any(|action| { action["title"].as_str().unwrap().starts_with("Ignore ") })
            );
            for action in
                offered.iter().filter(|action| objects == 1 && !action["isPreferred"].is_null())
            {
                let (remedy, _) = action["title"].as_str().unwrap().split_once(':').unwrap();
                let repaired = edited(&text, action, &document);
                assert_eq!(repaired, fixed(&["--remedy", remedy]), "{name} {remedy}");
                assert_eq!(action["isPreferred"], repaired == by_fix, "{name} {remedy}");
                compared += 1;
            }
        }
        editor.end();
    }
    assert!(compared > 0);
}
