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

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::{env, io, thread};

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{CodeActionKind, HoverParams, InitializeParams, TextDocumentSyncKind};
use serde_json::{Value, from_value, json};

use engine::snapshot::Snapshot;
use manifest::find::Exclude;
use render::{Fetch, FetchOptions, Input, Render, RenderOptions, Repository};
use transport::{Inbox, send};
use workspace::Workspace;

/// A reason why the editor is no longer served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The messages cannot be read.
    #[error(
        "Standard input has no messages of the Language Server Protocol: {0}. Start this command from an editor."
    )]
    Messages(#[source] io::Error),
    /// The folder cannot be used.
    #[error("The editor's folder {0} cannot be opened: {1}. Open another folder.")]
    Folder(String, #[source] io::Error),
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
    loop {
        let (id, method, params) = match inbox.next().map_err(ServeError::Messages)? {
            None => return Ok(true),
            Some(Message::Request(request)) => (request.id, request.method, request.params),
            Some(Message::Notification(last)) if last.method == "exit" => return Ok(false),
            Some(_) => continue,
        };
        let answer = match from_value(params) {
            _ if method != "initialize" => {
                let code = ErrorCode::ServerNotInitialized;
                refusal(id, code, "The first request must be initialize.")
            }
            Ok(params) => match send(Response::new_ok(id, capabilities())) {
                Ok(()) => return converse(&inbox, facts, &params),
                Err(_) => return Ok(true),
            },
            Err(error) => refusal(id, ErrorCode::InvalidParams, &error.to_string()),
        };
        if send(answer).is_err() {
            return Ok(true);
        }
    }
}

/// What the program can do.
fn capabilities() -> Value {
    json!({
        "capabilities": {
            "textDocumentSync": {
                "openClose": true,
                "change": TextDocumentSyncKind::INCREMENTAL,
                "save": true,
            },
            "codeActionProvider": {"codeActionKinds": [CodeActionKind::QUICKFIX, action::FIX_ALL]},
            "hoverProvider": true,
        },
        "serverInfo": {"name": "multi-attach-guard", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// Serves the editor after the first request.
fn converse(inbox: &Inbox, facts: Snapshot, params: &InitializeParams) -> Result<bool, ServeError> {
    let mut paths = folders(params);
    if let Some(folder) = paths.first_mut() {
        // Files then have the same names as in `check`.
        env::set_current_dir(&*folder)
            .map_err(|error| ServeError::Folder(folder.display().to_string(), error))?;
        *folder = PathBuf::from(".");
    }
    let render = RenderOptions {
        render: Render::Never,
        values: Vec::new(),
        set: Vec::new(),
        render_timeout: 0,
        verbose: false,
    };
    let input = Input {
        paths: &paths,
        exclude: &Exclude::nothing(),
        namespace: None,
        render: &render,
        fetch: &FetchOptions { fetch: Fetch::Never, fetch_cache: None, fetch_from: Vec::new() },
        repository: &Repository::around_here(),
        say: |_| {},
    };
    let workspace = Workspace {
        input,
        facts,
        documents: BTreeMap::new(),
        paths: None,
        judged: None,
        is_changed: false,
        problem: String::new(),
    };
    let mut server = Server { workspace, inbox, is_shut_down: false };
    loop {
        let sent = match inbox.next().map_err(ServeError::Messages)? {
            None => return Ok(true),
            Some(Message::Notification(last)) if last.method == "exit" => {
                return Ok(server.is_shut_down);
            }
            Some(Message::Notification(first)) if first.method == "initialized" => watch(params),
            Some(Message::Notification(notification)) => server.note(notification),
            Some(Message::Request(request)) => server.answer(request),
            Some(Message::Response(_)) => Ok(()),
        };
        // The editor went away.
        if sent.is_err() {
            return Ok(true);
        }
    }
}

/// Asks the editor to tell of changed files, if it can.
fn watch(params: &InitializeParams) -> io::Result<()> {
    let of_folders = params.capabilities.workspace.as_ref();
    let watching = of_folders.and_then(|known| known.did_change_watched_files);
    if watching.and_then(|known| known.dynamic_registration) != Some(true) {
        return Ok(());
    }
    let registration = json!({
        "id": "files",
        "method": workspace::WATCHED,
        "registerOptions": {"watchers": [{"globPattern": "**/*.{yaml,yml,json}"}]},
    });
    send(Request {
        id: RequestId::from("watch".to_owned()),
        method: "client/registerCapability".to_owned(),
        params: json!({"registrations": [registration]}),
    })
}

/// The folders that the editor opens; none for single files.
#[allow(deprecated, reason = "older editors name only the root")]
fn folders(params: &InitializeParams) -> Vec<PathBuf> {
    let folders = params.workspace_folders.iter().flatten().map(|folder| &folder.uri);
    let root = params.root_uri.iter().filter(|_| params.workspace_folders.is_none());
    folders.chain(root).filter_map(|uri| uri.to_file_path().ok()).collect()
}

struct Server<'a> {
    workspace: Workspace<'a>,
    inbox: &'a Inbox,
    /// Whether the editor has asked for the end.
    is_shut_down: bool,
}

impl Server<'_> {
    fn note(&mut self, notification: Notification) -> io::Result<()> {
        self.workspace.note(notification)?;
        let inbox = self.inbox;
        // A change that has already arrived makes the findings before it obsolete.
        self.workspace.judge(&|| inbox.holds(|next| next.method.starts_with("textDocument/did")))
    }

    fn answer(&mut self, Request { id, method, params }: Request) -> io::Result<()> {
        if self.is_shut_down {
            let code = ErrorCode::InvalidRequest;
            return send(refusal(id, code, "The program was asked to end."));
        }
        // Answers are about the text that the editor has.
        self.workspace.judge(&|| false)?;
        let number = json!(id);
        let cancels = |next: &Notification| {
            next.method == "$/cancelRequest" && next.params.get("id") == Some(&number)
        };
        if self.inbox.holds(cancels) {
            return send(refusal(id, ErrorCode::RequestCanceled, "The editor cancelled it."));
        }
        let answer = match method.as_str() {
            "shutdown" => {
                self.is_shut_down = true;
                Ok(Value::Null)
            }
            "textDocument/hover" => from_value::<HoverParams>(params)
                .map(|at| json!(self.workspace.hover(&at.text_document_position_params))),
            "textDocument/codeAction" => {
                from_value(params).map(|params| json!(action::offered(&self.workspace, &params)))
            }
            _ => {
                let text = format!("There is no {method}.");
                return send(refusal(id, ErrorCode::MethodNotFound, &text));
            }
        };
        send(match answer {
            Ok(result) => Response::new_ok(id, result),
            Err(error) => refusal(id, ErrorCode::InvalidParams, &error.to_string()),
        })
    }
}

fn refusal(id: RequestId, code: ErrorCode, text: &str) -> Response {
    Response::new_err(id, code as i32, text.to_owned())
}
