//! An editor's side of the Language Server Protocol, against the program: the findings are those of
//! `check`, at the same places.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests are outside of the functions that clippy recognizes as tests"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], storageClassName: gp3, resources: {requests: {storage: 1Gi}}}\n";
/// The characters before the field at fault are surrogate pairs in UTF-16.
const WEB: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n\
    spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}, annotations: {note: 💾💾}}, \
    spec: {containers: [{name: web, image: web, volumeMounts: [{name: data, mountPath: /data}]}], \
    volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}}, strategy: {type: RollingUpdate}}\n";

fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
    command.args(arguments).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    command
}

struct Editor {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Editor {
    fn start(folder: &Path) -> Self {
        let mut child = program(Path::new("/"), &["lsp"]).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut editor = Self { child, output };
        let params = json!({"capabilities": {}, "rootUri": uri(folder)});
        editor.send(&json!({"id": 1, "method": "initialize", "params": params}));
        assert_eq!(editor.receive()["result"]["serverInfo"]["name"], "multi-attach-guard");
        editor.send(&json!({"method": "initialized", "params": {}}));
        editor
    }

    fn send(&mut self, message: &Value) {
        let mut whole = message.clone();
        whole["jsonrpc"] = "2.0".into();
        let text = whole.to_string();
        let input = self.child.stdin.as_mut().unwrap();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the program ended");
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", number)) => length = number.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut text = vec![0; length];
        self.output.read_exact(&mut text).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    fn open(&mut self, file: &Path, text: &str) {
        let document = json!({"uri": uri(file), "languageId": "yaml", "version": 1, "text": text});
        self.send(&json!({"method": "textDocument/didOpen", "params": {"textDocument": document}}));
    }

    fn change(&mut self, file: &Path, version: u32, text: &str) {
        let document = json!({"uri": uri(file), "version": version});
        let params = json!({"textDocument": document, "contentChanges": [{"text": text}]});
        self.send(&json!({"method": "textDocument/didChange", "params": params}));
    }

    /// The published findings of the file's `version`.
    fn published(&mut self, file: &Path, version: u32) -> Vec<Value> {
        loop {
            let params = self.receive()["params"].take();
            if params["uri"] == uri(file) && params["version"] == version {
                return params["diagnostics"].as_array().unwrap().clone();
            }
        }
    }

    /// Ends as the protocol wants it.
    fn end(mut self) {
        self.send(&json!({"id": 9, "method": "shutdown"}));
        while self.receive()["id"] != 9 {}
        self.send(&json!({"method": "exit"}));
        assert!(self.child.wait().unwrap().success());
    }
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// The rule, the message and the first character of each finding of `check` in the file.
fn of_check(folder: &Path, file: &str, text: &str) -> Vec<(Value, Value, u64, usize)> {
    let arguments = ["check", "--render", "never", "--format", "json", "."];
    let output = program(folder, &arguments).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    let here = findings.filter(|finding| finding["file"].as_str().unwrap().ends_with(file));
    here.map(|finding| {
        let number = finding["line"].as_u64().unwrap() - 1;
        let line = text.lines().nth(usize::try_from(number).unwrap()).unwrap();
        let column = usize::try_from(finding["column"].as_u64().unwrap()).unwrap() - 1;
        let units = line.chars().take(column).map(char::len_utf16).sum();
        (finding["rule"].clone(), finding["message"].clone(), number, units)
    })
    .collect()
}

fn of_editor(diagnostics: &[Value]) -> Vec<(Value, Value, u64, usize)> {
    let place = |diagnostic: &Value| {
        let start = &diagnostic["range"]["start"];
        let units = usize::try_from(start["character"].as_u64().unwrap()).unwrap();
        (start["line"].as_u64().unwrap(), units)
    };
    diagnostics
        .iter()
        .map(|diagnostic| {
            let (line, units) = place(diagnostic);
            (diagnostic["code"].clone(), diagnostic["message"].clone(), line, units)
        })
        .collect()
}

#[test]
fn an_editor_shows_the_findings_of_check_and_follows_the_text() {
    let folder = folder(&[("claim.yaml", CLAIM), ("web.yaml", WEB)]);
    let (root, web, claim) =
        (folder.path(), folder.path().join("web.yaml"), folder.path().join("claim.yaml"));
    let mut editor = Editor::start(root);
    editor.open(&web, WEB);
    let found = editor.published(&web, 1);
    assert!(!found.is_empty());
    assert_eq!(of_editor(&found), of_check(root, "web.yaml", WEB));
    assert_eq!(found[0]["severity"], 1);
    assert!(found[0]["relatedInformation"].as_array().is_some_and(|marks| !marks.is_empty()));

    editor.change(&web, 2, &WEB.replace("RollingUpdate", "Recreate"));
    assert!(editor.published(&web, 2).is_empty());
    // Texts that are not finished, or are no manifests.
    for (version, text) in [(3, "spec: {strategy: ["), (4, "{{ if }}\na: 1\n"), (5, "a:\n\tb")] {
        editor.change(&web, version, text);
        assert!(editor.published(&web, version).is_empty(), "{text}");
    }
    editor.change(&web, 6, WEB);
    assert!(!editor.published(&web, 6).is_empty());
    // A neighbour in the editor is a fact instead of the one on disk.
    editor.open(&claim, &CLAIM.replace("name: data", "name: other"));
    let [guess] = &editor.published(&web, 6)[..] else { panic!("one finding") };
    assert_eq!((&guess["code"], &guess["severity"]), (&json!("unresolved-claim"), &json!(4)));
    editor.end();
}

#[test]
fn the_corpus_has_the_same_findings() {
    let corpus = fs::canonicalize("tests/corpus/at-fault").unwrap();
    let mut editor = Editor::start(&corpus);
    let mut compared = 0;
    for entry in fs::read_dir(&corpus).unwrap() {
        let file = entry.unwrap().path();
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let name = format!("./{}", file.file_name().unwrap().to_str().unwrap());
        editor.open(&file, &text);
        let mut shown = of_editor(&editor.published(&file, 1));
        let mut expected = of_check(&corpus, &name[2..], &text);
        shown.sort_by_key(|found| format!("{found:?}"));
        expected.sort_by_key(|found| format!("{found:?}"));
        assert_eq!(shown, expected, "{name}");
        compared += expected.len();
    }
    assert!(compared > 0);
    editor.end();
}

#[test]
fn an_editor_that_goes_away_is_no_error_and_a_malformed_message_is() {
    let folder = folder(&[]);
    let mut editor = Editor::start(folder.path());
    drop(editor.child.stdin.take());
    assert!(editor.child.wait().unwrap().success());

    let mut child = program(folder.path(), &["lsp"]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("The editor's messages cannot be read"), "{said}");
}
