//! Messages on standard input and output.
//!
//! The transport of `lsp-server` allocates as many bytes as a header announces and ends at the first
//! text that is no message, so only its messages are used.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use lsp_server::{Message, RequestId};
use serde_json::Value;

/// The most bytes of one message: a document of the largest file that is read, escaped.
const MAX_MESSAGE: u64 = 256 << 20;

/// The most bytes of one line of a header.
const MAX_HEADER: u64 = 4 << 10;

/// What the editor sends.
pub(super) enum Received {
    /// A message.
    Message(Message),
    /// A text that is no message, and the problem.
    Malformed(String),
    /// The end: the editor went away, or what it sends has no messages.
    End(io::Result<()>),
}

/// The messages that have arrived and were not handled.
#[derive(Default)]
pub(super) struct Inbox {
    queue: Mutex<VecDeque<Received>>,
    arrived: Condvar,
}

impl Inbox {
    /// Takes messages from `input` until it ends.
    pub(super) fn fill(&self, input: &mut impl BufRead) {
        loop {
            let received = match read(input) {
                Ok(Some(text)) => match serde_json::from_slice(&text) {
                    Ok(message) => Received::Message(message),
                    Err(error) => Received::Malformed(error.to_string()),
                },
                Ok(None) => Received::End(Ok(())),
                Err(error) => Received::End(Err(error)),
            };
            let is_end = matches!(received, Received::End(_));
            self.queue().push_back(received);
            self.arrived.notify_one();
            if is_end {
                return;
            }
        }
    }

    /// Waits for the next message.
    pub(super) fn next(&self) -> Received {
        let mut queue = self.queue();
        loop {
            if let Some(received) = queue.pop_front() {
                return received;
            }
            queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether a change of a document waits, so that a judgement would be obsolete.
    pub(super) fn has_changes(&self) -> bool {
        self.queue().iter().any(|received| match received {
            Received::Message(Message::Notification(note)) => {
                note.method.starts_with("textDocument/did")
            }
            _ => false,
        })
    }

    /// Whether the editor has cancelled the request that is to be answered.
    pub(super) fn has_cancelled(&self, request: &RequestId) -> bool {
        let request = serde_json::to_value(request).unwrap_or_default();
        self.queue().iter().any(|received| match received {
            Received::Message(Message::Notification(note)) => {
                note.method == "$/cancelRequest" && note.params.get("id") == Some(&request)
            }
            _ => false,
        })
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Received>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The next text; `None` at the end of the input.
fn read(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let malformed = |problem: &str| io::Error::new(io::ErrorKind::InvalidData, problem.to_owned());
    let mut length = None;
    loop {
        let mut line = String::new();
        input.by_ref().take(MAX_HEADER).read_line(&mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let Some(field) = line.strip_suffix("\r\n") else {
            return Err(malformed("a line of a header does not end with CR and LF"));
        };
        match field.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("Content-Length") => {
                length = value.trim().parse().ok().filter(|length| *length <= MAX_MESSAGE);
            }
            Some(_) => {}
            None if field.is_empty() => break,
            None => return Err(malformed("a line of a header has no colon")),
        }
    }
    let length = length.ok_or_else(|| malformed("a header has no possible Content-Length"))?;
    let mut text = Vec::new();
    input.by_ref().take(length).read_to_end(&mut text)?;
    Ok(Some(text))
}

/// Sends the message to the editor.
pub(super) fn send(message: impl Into<Message>) -> io::Result<()> {
    message.into().write(&mut io::stdout().lock())
}

/// A notification to the editor.
pub(super) fn note(method: &str, params: Value) -> lsp_server::Notification {
    lsp_server::Notification { method: method.to_owned(), params }
}
