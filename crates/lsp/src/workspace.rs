//! The folders that the editor opens, and the open documents.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use lsp_server::Notification;
use lsp_types::{
    Diagnostic, DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    Hover, HoverContents, MarkupContent, MarkupKind, Position, PublishDiagnosticsParams, Url,
};
use serde_json::{Value, from_value, json};

use super::transport::note;
use super::{diagnostic, position};
use check::{Files as _, Parsed, parse};
use engine::snapshot::Snapshot;
use engine::verdict::EffectivePolicy;
use render::{Input, Kustomizations, Paths};
use report::{Format, Located, Place, Report};
use source::policy_file;

/// The notifications about documents.
const OPENED: &str = "textDocument/didOpen";
const CHANGED: &str = "textDocument/didChange";
const SAVED: &str = "textDocument/didSave";
const CLOSED: &str = "textDocument/didClose";
/// The notification about files that other programs changed.
pub(super) const FILES_CHANGED: &str = "workspace/didChangeWatchedFiles";

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
    pub(super) report: Report,
    pub(super) effective: EffectivePolicy,
}

/// The open documents and their neighbours.
pub(super) struct Workspace<'a> {
    input: Input<'a>,
    /// The facts of the cluster, while no judgement has them.
    facts: Snapshot,
    documents: BTreeMap<Url, Document>,
    /// The files in the folders; `None` if they must be searched again.
    paths: Option<Paths<'a>>,
    judged: Option<Judged>,
    /// Whether something changed after the last judgement.
    is_changed: bool,
    /// The last problem that the user was told about.
    problem: String,
}

impl<'a> Workspace<'a> {
    pub(super) const fn new(input: Input<'a>, facts: Snapshot) -> Self {
        Self {
            input,
            facts,
            documents: BTreeMap::new(),
            paths: None,
            judged: None,
            is_changed: false,
            problem: String::new(),
        }
    }

    /// Takes note of a change. Other notifications, and those without a file, are ignored. A document
    /// that is closed loses its diagnostics.
    pub(super) fn note(
        &mut self,
        Notification { method, params }: Notification,
    ) -> Option<Notification> {
        let closed = match method.as_str() {
            OPENED => self.open(params).map(|()| None),
            CHANGED => self.change(params).map(|()| None),
            CLOSED => self.close(params).map(Some),
            SAVED | FILES_CHANGED => Some(None),
            _ => None,
        }?;
        self.is_changed = true;
        if method != CHANGED {
            self.paths = None;
        }
        closed
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
        for change in changed.content_changes {
            position::apply(&mut document.text, change);
        }
        document.version = changed.text_document.version;
        if let Some(paths) = &mut self.paths {
            paths.open(&document.file, &document.text);
        }
        Some(())
    }

    fn close(&mut self, params: Value) -> Option<Notification> {
        let uri = from_value::<DidCloseTextDocumentParams>(params).ok()?.text_document.uri;
        self.documents.remove(&uri)?;
        Some(published(uri, Vec::new(), None))
    }

    pub(super) fn document(&self, uri: &Url) -> Option<&Document> {
        self.documents.get(uri)
    }

    pub(super) const fn judged(&self) -> Option<&Judged> {
        self.judged.as_ref()
    }

    /// The errors and warnings of the last judgement in a document, with their places.
    pub(super) fn findings<'j>(
        &self,
        judged: &'j Judged,
        document: &Document,
    ) -> impl Iterator<Item = (report::Severity, &'j Located, &'j Place)> {
        let path = self.input.repository.path_of(&document.file);
        judged.report.reported().filter_map(move |(severity, located)| {
            let place = located.place.as_ref()?;
            (place.path.as_ref() == Some(&path)).then_some((severity, located, place))
        })
    }

    /// Judges the open documents if something changed, and returns the notifications for the
    /// editor. A judgement that `is_obsolete` is given up, and the next call repeats it.
    pub(super) fn judge(&mut self, is_obsolete: &(dyn Fn() -> bool + Sync)) -> Vec<Notification> {
        if !self.is_changed {
            return Vec::new();
        }
        match self.report(is_obsolete) {
            Ok(None) => Vec::new(),
            Ok(Some(judged)) => {
                self.is_changed = false;
                self.problem.clear();
                self.publish(judged)
            }
            Err(problem) => {
                self.is_changed = false;
                if problem == self.problem {
                    return Vec::new();
                }
                const ERROR: u8 = 1;
                let told = note("window/showMessage", json!({"type": ERROR, "message": problem}));
                self.problem = problem;
                vec![told]
            }
        }
    }

    /// The report of `check --render never` on the open documents, or the problem as a sentence;
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
        if self.paths.is_none() {
            let files: Vec<&Path> =
                self.documents.values().map(|document| document.file.as_path()).collect();
            let mut paths = Paths::find(self.input);
            paths.keep_nearest(&files);
            for document in self.documents.values() {
                paths.open(&document.file, &document.text);
            }
            self.paths = Some(paths);
        }
        let Some(paths) = self.paths.as_ref().filter(|_| !is_obsolete()) else { return Ok(None) };
        let reading = paths.read(Kustomizations::Rendered).map_err(|error| error.to_string())?;
        if is_obsolete() {
            return Ok(None);
        }
        let last = self.judged.take().map(|judged| judged.parsed.facts);
        let facts =
            last.unwrap_or_else(|| std::mem::replace(&mut self.facts, Snapshot::complete()));
        let parsed = parse(reading, facts, Timestamp::now());
        let open: HashSet<&Path> =
            self.documents.values().map(|document| document.file.as_path()).collect();
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
    fn publish(&mut self, judged: Judged) -> Vec<Notification> {
        let repository = self.input.repository;
        let mut all = Vec::new();
        for (uri, document) in &self.documents {
            let found = self.findings(&judged, document);
            let mut now: Vec<Diagnostic> = found
                .map(|(severity, located, place)| diagnostic::of_finding(severity, located, place))
                .collect();
            let path = repository.path_of(&document.file);
            now.extend(judged.report.notices.iter().filter_map(|notice| {
                let place =
                    notice.place.as_ref().filter(|place| place.path.as_ref() == Some(&path));
                Some(diagnostic::of_notice(notice, place?))
            }));
            if now != document.shown {
                all.push((uri.clone(), now));
            }
        }
        self.judged = Some(judged);
        let mut notifications = Vec::new();
        for (uri, now) in all {
            if let Some(document) = self.documents.get_mut(&uri) {
                document.shown.clone_from(&now);
                notifications.push(published(uri, now, Some(document.version)));
            }
        }
        notifications
    }

    /// What is known of the field at the position.
    pub(super) fn hover(&self, uri: &Url, at: Position) -> Option<Hover> {
        let (document, judged) = (self.documents.get(uri)?, self.judged.as_ref()?);
        let at = position::offset(&document.text, at);
        let (spot, lines) = judged.parsed.about(&document.file, at, &judged.effective)?;
        let value =
            lines.iter().map(|line| report::safe::line(line)).collect::<Vec<_>>().join("\n");
        Some(Hover {
            contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::PlainText, value }),
            range: Some(position::range(&document.text, spot.start, spot.end)),
        })
    }
}

fn published(uri: Url, diagnostics: Vec<Diagnostic>, version: Option<i32>) -> Notification {
    let params = PublishDiagnosticsParams { uri, diagnostics, version };
    note("textDocument/publishDiagnostics", serde_json::to_value(params).unwrap_or_default())
}
