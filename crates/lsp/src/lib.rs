//! Serves an editor with the Language Server Protocol on standard input and output.
//!
//! ```text
//! editor ─▶ transport ─▶ workspace ─▶ check::Report ─┬─▶ diagnostic ─▶ editor
//!                                                    └─▶ action, hover
//! ```
//!
//! The findings are those of `check --render never` in the folders that the editor opens. Open
//! documents are read instead of their files. One thread reads messages, so that a change makes the
//! judgement before it obsolete while it still runs.

mod action;
mod diagnostic;
mod position;
mod transport;
mod workspace;

use std::env;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use lsp_server::{ErrorCode, Message, Notification, Request, Response};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionParams, HoverParams, HoverProviderCapability,
    InitializeParams, SaveOptions, ServerCapabilities, TextDocumentSyncCapability,
    TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
};
use serde_json::{Value, from_value, json};

use engine::snapshot::Snapshot;
use manifest::find::Exclude;
use render::{Fetch, FetchOptions, Input, Render, RenderOptions, Repository};
use transport::{Inbox, Received, note, send};
use workspace::{FILES_CHANGED, Workspace};

/// A reason why the editor is no longer served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The messages cannot be read.
    #[error(
        "Standard input has no messages of the Language Server Protocol: {0}. Start this command from an editor."
    )]
    Messages(#[source] io::Error),
    /// The folder cannot be used.
    #[error("The editor's folder {} cannot be opened: {source}. Open another folder.", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The problem.
        source: io::Error,
    },
}

/// Serves the editor until it ends or goes away. Returns whether it ended as the protocol wants.
///
/// # Errors
/// Standard input has no messages of the protocol, or the editor's folder cannot be used.
pub fn serve(facts: Snapshot) -> Result<bool, ServeError> {
    let inbox = Arc::new(Inbox::default());
    let filled = Arc::clone(&inbox);
    // It ends with the process: a read of standard input cannot be interrupted.
    thread::spawn(move || filled.fill(&mut io::stdin().lock()));
    match handshake(&inbox)? {
        None => Ok(true),
        Some(params) => converse(&inbox, facts, &params),
    }
}

/// Waits for the first request; `None` if the editor ends before it.
fn handshake(inbox: &Inbox) -> Result<Option<InitializeParams>, ServeError> {
    loop {
        let Message::Request(Request { id, method, params }) = (match inbox.next() {
            Received::Message(Message::Notification(last)) if last.method == "exit" => {
                return Ok(None);
            }
            Received::End(end) => return end.map(|()| None).map_err(ServeError::Messages),
            Received::Message(message) => message,
            Received::Malformed(_) => continue,
        }) else {
            continue;
        };
        let answer = match from_value(params) {
            _ if method != "initialize" => {
                let text = "The first request must be initialize.".to_owned();
                Response::new_err(id, ErrorCode::ServerNotInitialized as i32, text)
            }
            Err(error) => invalid(id, &error),
            Ok(params) => {
                let server =
                    json!({"name": "multi-attach-guard", "version": env!("CARGO_PKG_VERSION")});
                let result = json!({"capabilities": capabilities(), "serverInfo": server});
                return Ok(send(Response::new_ok(id, result)).is_ok().then_some(params));
            }
        };
        if send(answer).is_err() {
            return Ok(None);
        }
    }
}

fn capabilities() -> ServerCapabilities {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::INCREMENTAL),
        save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions {
            include_text: Some(false),
        })),
        ..TextDocumentSyncOptions::default()
    };
    let actions = CodeActionOptions {
        code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, action::FIX_ALL]),
        ..CodeActionOptions::default()
    };
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Options(sync)),
        code_action_provider: Some(actions.into()),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        ..ServerCapabilities::default()
    }
}

/// Serves the editor after the first request.
fn converse(inbox: &Inbox, facts: Snapshot, params: &InitializeParams) -> Result<bool, ServeError> {
    let folders = folders(params);
    if let Some(folder) = folders.first() {
        // Files then have the same names as in `check`.
        let failed = |source| ServeError::Folder { folder: folder.clone(), source };
        env::set_current_dir(folder).map_err(failed)?;
    }
    let repository = Repository::around_here();
    // The first folder is named as `check` names it.
    let here = folders.iter().take(1).map(|_| PathBuf::from("."));
    let paths: Vec<PathBuf> = here.chain(folders.iter().skip(1).cloned()).collect();
    let render = RenderOptions {
        render: Render::Never,
        values: Vec::new(),
        set: Vec::new(),
        render_timeout: 0,
        verbose: false,
    };
    let fetch = FetchOptions { fetch: Fetch::Never, fetch_cache: None, fetch_from: Vec::new() };
    let exclude = Exclude::nothing();
    let mut server = Server {
        workspace: Workspace::new(
            Input {
                paths: &paths,
                exclude: &exclude,
                namespace: None,
                render: &render,
                fetch: &fetch,
                repository: &repository,
                say: |_| {},
            },
            facts,
        ),
        inbox,
        is_shut_down: false,
    };
    let watches = params.capabilities.workspace.as_ref();
    let watches = watches.and_then(|workspace| workspace.did_change_watched_files);
    if watches.and_then(|files| files.dynamic_registration) == Some(true) && send(watch()).is_err()
    {
        return Ok(true);
    }
    server.run()
}

/// The request to be told about manifests that other programs change.
fn watch() -> Request {
    let watchers = json!([{"globPattern": "**/*.{yaml,yml,json}"}]);
    let options = json!({"watchers": watchers});
    let one = json!({"id": FILES_CHANGED, "method": FILES_CHANGED, "registerOptions": options});
    Request {
        id: 1.into(),
        method: "client/registerCapability".to_owned(),
        params: json!({"registrations": [one]}),
    }
}

/// The folders that the editor opens; none for single files.
#[allow(deprecated, reason = "older editors name only the root")]
fn folders(params: &InitializeParams) -> Vec<PathBuf> {
    let folders = params.workspace_folders.iter().flatten().map(|folder| &folder.uri);
    let mut uris: Vec<_> = folders.collect();
    if uris.is_empty() {
        uris.extend(&params.root_uri);
    }
    uris.into_iter().filter_map(|uri| uri.to_file_path().ok()).collect()
}

struct Server<'a> {
    workspace: Workspace<'a>,
    inbox: &'a Inbox,
    /// Whether the editor has asked for the end.
    is_shut_down: bool,
}

impl Server<'_> {
    fn run(&mut self) -> Result<bool, ServeError> {
        loop {
            let sent = match self.inbox.next() {
                Received::End(end) => return end.map(|()| true).map_err(ServeError::Messages),
                Received::Malformed(problem) => {
                    log(&format!("A message cannot be read: {problem}."))
                }
                Received::Message(Message::Notification(last)) if last.method == "exit" => {
                    return Ok(self.is_shut_down);
                }
                Received::Message(Message::Notification(notification)) => self.note(notification),
                Received::Message(Message::Request(request)) => self.answer(request),
                Received::Message(Message::Response(_)) => Ok(()),
            };
            // The editor went away.
            if sent.is_err() {
                return Ok(true);
            }
        }
    }

    fn note(&mut self, notification: Notification) -> io::Result<()> {
        if let Some(closed) = self.workspace.note(notification) {
            send(closed)?;
        }
        let inbox = self.inbox;
        // A change that has already arrived makes the findings before it obsolete.
        self.workspace.judge(&|| inbox.has_changes()).into_iter().try_for_each(send)
    }

    fn answer(&mut self, Request { id, method, params }: Request) -> io::Result<()> {
        if self.is_shut_down {
            let text = "The server was shut down.".to_owned();
            return send(Response::new_err(id, ErrorCode::InvalidRequest as i32, text));
        }
        // Answers are about the text that the editor has.
        self.workspace.judge(&|| false).into_iter().try_for_each(send)?;
        if self.inbox.has_cancelled(&id) {
            let text = "The editor cancelled the request.".to_owned();
            return send(Response::new_err(id, ErrorCode::RequestCanceled as i32, text));
        }
        let answer = match method.as_str() {
            "shutdown" => {
                self.is_shut_down = true;
                Ok(Value::Null)
            }
            "textDocument/hover" => from_value::<HoverParams>(params).map(|params| {
                let at = params.text_document_position_params;
                json!(self.workspace.hover(&at.text_document.uri, at.position))
            }),
            "textDocument/codeAction" => from_value::<CodeActionParams>(params)
                .map(|params| json!(action::offered(&self.workspace, &params))),
            _ => {
                let text = format!("There is no {method}.");
                return send(Response::new_err(id, ErrorCode::MethodNotFound as i32, text));
            }
        };
        send(match answer {
            Ok(result) => Response::new_ok(id, result),
            Err(error) => invalid(id, &error),
        })
    }
}

fn invalid(id: lsp_server::RequestId, error: &serde_json::Error) -> Response {
    let text = format!("The parameters cannot be read: {error}.");
    Response::new_err(id, ErrorCode::InvalidParams as i32, text)
}

/// Writes into the editor's log.
fn log(message: &str) -> io::Result<()> {
    const ERROR: u8 = 1;
    send(note("window/logMessage", json!({"type": ERROR, "message": message})))
}
