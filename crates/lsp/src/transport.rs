//! Messages on standard input and output.
//!
//! The transport of `lsp-server` allocates as many bytes as a header announces, and shows no message
//! before the last one is handled, so only its messages are used.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use lsp_server::{Message, Notification};
use serde_json::Value;

/// The most bytes of one message: a document of the largest file that is read, escaped.
const MAX_MESSAGE: u64 = 256 << 20;

/// The most bytes of one line of a header.
const MAX_HEADER: u64 = 4 << 10;

/// A message; `None` if the editor went away, and an error if it sends something else.
type Received = io::Result<Option<Message>>;

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
            let received = read(input);
            let is_end = !matches!(received, Ok(Some(_)));
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

    /// Whether such a notification waits.
    pub(super) fn holds(&self, is_such: impl Fn(&Notification) -> bool) -> bool {
        self.queue().iter().any(|received| match received {
            Ok(Some(Message::Notification(notification))) => is_such(notification),
            _ => false,
        })
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Received>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(input: &mut impl BufRead) -> Received {
    let mut length = None;
    loop {
        let mut line = String::new();
        input.by_ref().take(MAX_HEADER).read_line(&mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("Content-Length") => {
                length = value.trim().parse().ok().filter(|bytes| *bytes <= MAX_MESSAGE);
            }
            None if line == "\r\n" => break,
            None => return Err(io::Error::other("a line of a header has no colon")),
            Some(_) => {}
        }
    }
    let length =
        length.ok_or_else(|| io::Error::other("a header has no possible Content-Length"))?;
    let mut text = Vec::new();
    input.by_ref().take(length).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Sends the message to the editor.
pub(super) fn send(message: impl Into<Message>) -> io::Result<()> {
    message.into().write(&mut io::stdout().lock())
}

/// Sends a notification to the editor.
pub(super) fn tell(method: &str, params: Value) -> io::Result<()> {
    send(Notification { method: method.to_owned(), params })
}
