//! A client of the program that speaks the protocol.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// The program, in a folder.
pub(crate) fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
    command.args(arguments).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// An editor, and the program that serves it.
pub(crate) struct Editor {
    pub(crate) child: Child,
    output: BufReader<ChildStdout>,
    /// The number of the last request.
    last: u64,
    /// The diagnostics that were published for each file, the last ones at the end.
    pub(crate) published: Vec<(String, Value)>,
    /// The other notifications.
    pub(crate) told: Vec<Value>,
}

impl Editor {
    /// Starts the program elsewhere than in the folder that it opens.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let arguments = [&["lsp"], arguments].concat();
        let mut child = program(Path::new("/"), &arguments).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut editor = Self { child, output, last: 0, published: Vec::new(), told: Vec::new() };
        let watches =
            json!({"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}}});
        let result =
            editor.ask("initialize", &json!({"capabilities": watches, "rootUri": uri(folder)}));
        assert_eq!(result["serverInfo"]["name"], "multi-attach-guard");
        editor.tell("initialized", &json!({}));
        editor
    }

    pub(crate) fn write(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    }

    pub(crate) fn tell(&mut self, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request, and returns its number.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.write(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        id
    }

    /// The response to the request with that number.
    pub(crate) fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
            self.keep(message);
        }
    }

    /// The result of a request.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.response(id)["result"].take()
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

    fn keep(&mut self, mut message: Value) {
        let params = message["params"].take();
        if message["method"] == "textDocument/publishDiagnostics" {
            let file = params["uri"].as_str().unwrap().to_owned();
            self.published.push((file, params));
        } else {
            self.told.push(json!([message["method"], params]));
        }
    }

    /// The diagnostics of the file when the program has handled everything.
    pub(crate) fn shown(&mut self, file: &Path) -> Vec<Value> {
        let nothing = json!({"textDocument": {"uri": "file:///nothing"}, "position": at_start()});
        assert!(self.ask("textDocument/hover", &nothing).is_null());
        let mut of_file = self.published.iter().rev().filter(|(known, _)| *known == uri(file));
        of_file
            .next()
            .map_or_else(Vec::new, |(_, params)| params["diagnostics"].as_array().unwrap().clone())
    }

    /// Waits until diagnostics are published for the file.
    pub(crate) fn next_published(&mut self, file: &Path) -> Vec<Value> {
        loop {
            let message = self.receive();
            self.keep(message);
            if let Some((known, params)) = self.published.last()
                && *known == uri(file)
            {
                return params["diagnostics"].as_array().unwrap().clone();
            }
        }
    }

    pub(crate) fn open(&mut self, file: &Path, text: &str) {
        let document = json!({"uri": uri(file), "languageId": "yaml", "version": 1, "text": text});
        self.tell("textDocument/didOpen", &json!({"textDocument": document}));
    }

    pub(crate) fn close(&mut self, file: &Path) {
        self.tell("textDocument/didClose", &json!({"textDocument": {"uri": uri(file)}}));
    }

    /// Sends changes: each a whole text, or a text with its range.
    pub(crate) fn change(&mut self, file: &Path, changes: &Value) {
        let document = json!({"uri": uri(file), "version": 2});
        let params = json!({"textDocument": document, "contentChanges": changes});
        self.tell("textDocument/didChange", &params);
    }

    /// The actions that are offered on the line of the position.
    pub(crate) fn actions(&mut self, file: &Path, position: &Value, only: &Value) -> Vec<Value> {
        let range = json!({"start": position, "end": position});
        let mut context = json!({"diagnostics": []});
        if !only.is_null() {
            context["only"] = only.clone();
        }
        let document = json!({"uri": uri(file)});
        let params = json!({"textDocument": document, "range": range, "context": context});
        let offered = self.ask("textDocument/codeAction", &params);
        offered.as_array().unwrap().clone()
    }

    /// The lines that are shown at the position.
    pub(crate) fn hover(&mut self, file: &Path, position: &Value) -> Vec<String> {
        let params = json!({"textDocument": {"uri": uri(file)}, "position": position});
        let shown = self.ask("textDocument/hover", &params);
        let text = shown["contents"]["value"].as_str().unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Ends as the protocol wants it.
    pub(crate) fn end(mut self) {
        self.ask("shutdown", &Value::Null);
        self.tell("exit", &Value::Null);
        assert!(self.child.wait().unwrap().success());
    }
}

/// The first position of a file.
pub(crate) fn at_start() -> Value {
    json!({"line": 0, "character": 0})
}

pub(crate) fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// A folder with these files. Its path has no links.
pub(crate) fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let root = fs::canonicalize(folder.path()).unwrap();
    (folder, root)
}

/// The findings of `check` in the folder.
pub(crate) fn check(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let always = ["check", "--render", "never", "--format", "json", "."];
    let output = program(folder, &[&always, arguments].concat()).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["findings"].as_array().unwrap().clone()
}

/// The rule, the message and the first position of a finding of `check` in a text, and whether it
/// is certain.
pub(crate) fn place_of(finding: &Value, text: &str) -> Value {
    let line = finding["line"].as_u64().unwrap() - 1;
    let before = finding["column"].as_u64().unwrap() - 1;
    let own = text.lines().nth(usize::try_from(line).unwrap()).unwrap_or_default();
    let letters = own.chars().take(usize::try_from(before).unwrap());
    let character: usize = letters.map(char::len_utf16).sum();
    let is_guess = finding["certainty"] == "assumed" || finding["outcome"] == "unknown";
    let is_error = finding["action"] != "warn";
    let severity = if is_guess {
        4
    } else if is_error {
        1
    } else {
        2
    };
    let start = json!({"line": line, "character": character});
    json!([finding["rule"], finding["message"], start, severity])
}

/// The same of a diagnostic.
pub(crate) fn place_in_editor(diagnostic: &Value) -> Value {
    let message = diagnostic["message"].as_str().unwrap().lines().next();
    json!([diagnostic["code"], message, diagnostic["range"]["start"], diagnostic["severity"]])
}
