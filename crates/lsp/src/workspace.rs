//! The folders that the editor opens, and the open documents.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::{fs, io, mem};

use jiff::Timestamp;
use lsp_server::Notification;
use lsp_types::{
    Diagnostic, DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    TextDocumentPositionParams, Url,
};
use serde_json::{Value, from_value, json};

use super::transport::tell;
use super::{diagnostic, position};
use check::{Files as _, Parsed, parse};
use engine::snapshot::Snapshot;
use engine::verdict::EffectivePolicy;
use render::{Input, Kustomizations, Paths};
use report::{Format, Located, Place, Report, Severity, safe};
use source::policy_file;

/// The notification of a changed text, after which no file is searched again.
const CHANGED: &str = "textDocument/didChange";

/// The notification of changed files.
pub(super) const WATCHED: &str = "workspace/didChangeWatchedFiles";

/// An open document.
pub(super) struct Document {
    /// Its file, with links followed.
    pub(super) file: PathBuf,
    pub(super) text: String,
    version: i32,
    /// The diagnostics that the editor shows.
    shown: Vec<Diagnostic>,
}

/// The last judgement.
pub(super) struct Judged {
    pub(super) parsed: Parsed,
    report: Report,
    pub(super) effective: EffectivePolicy,
}

/// The open documents and their neighbours.
pub(super) struct Workspace<'a> {
    pub(super) input: Input<'a>,
    /// The facts of the cluster, while no judgement has them.
    pub(super) facts: Snapshot,
    pub(super) documents: BTreeMap<Url, Document>,
    /// The files in the folders; `None` if they must be searched again.
    pub(super) paths: Option<Paths<'a>>,
    pub(super) judged: Option<Judged>,
    /// Whether something changed after the last judgement.
    pub(super) is_changed: bool,
    /// The last problem that the user was told about.
    pub(super) problem: String,
}

impl Workspace<'_> {
    /// Takes note of a change. Other notifications, and those without a file, are ignored.
    pub(super) fn note(&mut self, Notification { method, params }: Notification) -> io::Result<()> {
        let noted = match method.as_str() {
            "textDocument/didOpen" => self.open(params),
            CHANGED => self.change(params),
            "textDocument/didClose" => {
                let closed = from_value::<DidCloseTextDocumentParams>(params).ok();
                let uri = closed.map(|closed| closed.text_document.uri);
                if let Some(uri) = uri.filter(|uri| self.documents.remove(uri).is_some()) {
                    publish(&uri, &[], None)?;
                }
                Some(())
            }
            "textDocument/didSave" | WATCHED => Some(()),
            _ => None,
        };
        self.is_changed |= noted.is_some();
        if noted.is_some() && method != CHANGED {
            self.paths = None;
        }
        Ok(())
    }

    fn open(&mut self, params: Value) -> Option<()> {
        let opened = from_value::<DidOpenTextDocumentParams>(params).ok()?.text_document;
        let named = opened.uri.to_file_path().ok()?;
        let file = fs::canonicalize(&named).unwrap_or(named);
        let (text, version) = (opened.text, opened.version);
        self.documents.insert(opened.uri, Document { file, text, version, shown: Vec::new() });
        Some(())
    }

    fn change(&mut self, params: Value) -> Option<()> {
        let changed: DidChangeTextDocumentParams = from_value(params).ok()?;
        let document = self.documents.get_mut(&changed.text_document.uri)?;
        document.version = changed.text_document.version;
        for change in changed.content_changes {
            position::apply(&mut document.text, change);
        }
        if let Some(paths) = &mut self.paths {
            paths.open(&document.file, &document.text);
        }
        Some(())
    }

    /// The errors and warnings of a judgement in a document, with their places.
    pub(super) fn findings<'j>(
        &self,
        judged: &'j Judged,
        document: &Document,
    ) -> impl Iterator<Item = (Severity, &'j Located, &'j Place)> {
        let path = self.input.repository.path_of(&document.file);
        judged.report.reported().filter_map(move |(severity, located)| {
            let place =
                located.place.as_ref().filter(|place| place.path.as_ref() == Some(&path))?;
            Some((severity, located, place))
        })
    }

    /// Judges the open documents if something changed, and tells the editor. A judgement that
    /// `is_obsolete` is given up, and the next call repeats it.
    pub(super) fn judge(&mut self, is_obsolete: &(dyn Fn() -> bool + Sync)) -> io::Result<()> {
        if !self.is_changed {
            return Ok(());
        }
        let problem = match self.report(is_obsolete) {
            Ok(None) => return Ok(()),
            Ok(judged) => {
                self.judged = judged;
                self.publish()?;
                String::new()
            }
            Err(problem) => problem,
        };
        self.is_changed = false;
        let is_new = !problem.is_empty() && problem != self.problem;
        self.problem = problem;
        if is_new {
            const ERROR: u8 = 1;
            tell("window/showMessage", json!({"type": ERROR, "message": self.problem}))?;
        }
        Ok(())
    }

    /// The judgement of `check --render never` on the open documents, or the problem as a sentence;
    /// `None` if it is obsolete.
    fn report(
        &mut self,
        is_obsolete: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Judged>, String> {
        let repository = self.input.repository;
        let policy = repository.policy_for(self.input.paths);
        if let Some(file) = &policy {
            let refused = |error| format!("{}: {error}.", file.display());
            repository.refuse_to_leave(file).map_err(refused)?;
        }
        let effective =
            policy_file::effective(policy.as_deref()).map_err(|error| error.to_string())?;
        let files = || self.documents.values().map(|document| document.file.as_path());
        let paths = self.paths.get_or_insert_with(|| {
            let mut paths = Paths::find(self.input);
            paths.keep_nearest(&files().collect::<Vec<_>>());
            for document in self.documents.values() {
                paths.open(&document.file, &document.text);
            }
            paths
        });
        let reading = paths.read(Kustomizations::Rendered).map_err(|error| error.to_string())?;
        if let Some(last) = self.judged.take() {
            self.facts = last.parsed.facts;
        }
        let facts = mem::replace(&mut self.facts, Snapshot::complete());
        let parsed = parse(reading, facts, Timestamp::now());
        let open: HashSet<&Path> = files().collect();
        let report = parsed.report(
            |text, _| text.file().is_some_and(|file| open.contains(file)) && !is_obsolete(),
            &effective,
            repository,
            Format::Text,
        );
        if is_obsolete() {
            self.facts = parsed.facts;
            return Ok(None);
        }
        Ok(Some(Judged { parsed, report, effective }))
    }

    /// Publishes the diagnostics of each document in which they changed.
    fn publish(&mut self) -> io::Result<()> {
        let mut documents = mem::take(&mut self.documents);
        for (uri, document) in &mut documents {
            let Some(judged) = &self.judged else { continue };
            let path = self.input.repository.path_of(&document.file);
            let notices = judged.report.notices.iter().filter_map(|notice| {
                let place = notice.place.as_ref()?;
                (place.path.as_ref() == Some(&path)).then(|| diagnostic::of_notice(notice, place))
            });
            let found = self.findings(judged, document);
            let found = found
                .map(|(severity, located, place)| diagnostic::of_finding(severity, located, place));
            let now: Vec<Diagnostic> = found.chain(notices).collect();
            if now != document.shown {
                publish(uri, &now, Some(document.version))?;
                document.shown = now;
            }
        }
        self.documents = documents;
        Ok(())
    }

    /// What is known of the field at the position, as the protocol's `Hover`.
    pub(super) fn hover(&self, at: &TextDocumentPositionParams) -> Option<Value> {
        let (document, judged) =
            (self.documents.get(&at.text_document.uri)?, self.judged.as_ref()?);
        let byte = position::offset(&document.text, at.position);
        let (spot, lines) = judged.parsed.about(&document.file, byte, &judged.effective)?;
        let lines: Vec<_> = lines.iter().map(|line| safe::line(line)).collect();
        Some(json!({
            "contents": {"kind": "plaintext", "value": lines.join("\n")},
            "range": position::range(&document.text, spot.start, spot.end),
        }))
    }
}

fn publish(uri: &Url, diagnostics: &[Diagnostic], version: Option<i32>) -> io::Result<()> {
    let params = json!({"uri": uri, "diagnostics": diagnostics, "version": version});
    tell("textDocument/publishDiagnostics", params)
}
