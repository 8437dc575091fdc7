//! The destination and the format of log lines.

use std::fmt::{self, Debug};
use std::io::{self, IsTerminal, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use tracing::field::Field;
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::{Targets, dynamic_filter_fn};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{self, JsonFields, Writer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use report::safe;

/// The time between two warnings of the HTTP/2 library. A client causes one with each connection on
/// which it resets too many requests.
const HTTP2_EVERY: Duration = Duration::from_secs(60);

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line of text an event, for people
    #[default]
    Text,
    /// One JSON object an event, for log collectors
    Json,
}

/// The log.
#[derive(Args, Clone, Debug)]
pub(crate) struct LogOptions {
    /// Format of the log on standard error
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub log_format: LogFormat,

    /// Log level, also by module: "info,multi_attach_guard=debug"
    #[arg(long, env = "RUST_LOG", default_value = "info", value_name = "FILTER")]
    pub log: Targets,
}

impl LogOptions {
    /// Sends the log of the whole process to `log`, which passes it on to standard error. It must
    /// be called only once.
    pub(crate) fn install<W: Write + 'static>(
        &self,
        log: impl Fn() -> W + Send + Sync + 'static,
    ) -> Result<(), TryInitError> {
        let lines = tracing_subscriber::fmt::layer()
            .fmt_fields(text_fields())
            .with_ansi(io::stderr().is_terminal())
            // Such errors would go to standard error at once. That may panic or wait, and no review
            // may end because of the log.
            .log_internal_errors(false)
            .with_writer(log);
        let filter = tracing_subscriber::registry().with(self.log.clone()).with(seldom_http2());
        match self.log_format {
            LogFormat::Text => filter.with(lines).try_init()?,
            LogFormat::Json => {
                let json = lines
                    .fmt_fields(JsonFields::new())
                    .map_writer(|plain| move || Escaping(plain()))
                    .json()
                    .flatten_event(true);
                filter.with(json).try_init()?;
            }
        }
        panic::set_hook(Box::new(log_panic));
        Ok(())
    }
}

/// Lets a warning of the HTTP/2 library pass once in [`HTTP2_EVERY`].
fn seldom_http2<S: Subscriber>() -> impl Layer<S> {
    let last = Mutex::new(None::<Instant>);
    dynamic_filter_fn(move |metadata, _| {
        if *metadata.level() != Level::WARN || !metadata.target().starts_with("h2::") {
            return true;
        }
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|at| at.elapsed() >= HTTP2_EVERY);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    })
}

/// Makes each line of JSON safe to print.
struct Escaping<W>(W);

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let json = String::from_utf8_lossy(line);
        self.0.write_all(safe::json_escaped(&json).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn text_fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    format::debug_fn(write_field).delimited(" ")
}

/// Writes a field of an event in a line of text. Names and reasons in it can neither begin another
/// line nor move the cursor.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    let text = format!("{value:?}");
    let line = safe::line(&text);
    match field.name() {
        "message" => out.write_str(&line),
        name => write!(out, "{name}={line}"),
    }
}

/// Turns a panic into a log line like any other, so that JSON stays JSON.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let payload = panic.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let at = panic.location().map(ToString::to_string);
    tracing::error!(at, message, "A panic happened, which is a bug.");
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    struct Log(Sender<Vec<u8>>);

    impl Write for Log {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.send(line.to_vec()).map_err(io::Error::other)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_client_cannot_fill_the_log_with_warnings_of_http2() {
        let (log, written) = channel();
        let lines = tracing_subscriber::fmt::layer().with_writer(move || Log(log.clone()));
        let registry = tracing_subscriber::registry().with(seldom_http2()).with(lines);
        tracing::subscriber::with_default(registry, || {
            for _ in 0..3 {
                tracing::warn!(target: "h2::proto", "too many resets");
                tracing::warn!("reviewed");
            }
        });
        let text = String::from_utf8(written.iter().flatten().collect()).unwrap();
        let counts = ["too many resets", "reviewed"].map(|words| text.matches(words).count());
        assert_eq!(counts, [1, 3], "{text}");
    }

    #[test]
    fn no_name_of_a_json_line_is_more_than_text() {
        let (log, written) = channel();
        let name = "web\u{9b}2J\u{202e}";
        let line = serde_json::json!({"object": name}).to_string() + "\n";
        Escaping(Log(log)).write_all(line.as_bytes()).unwrap();
        let written = String::from_utf8(written.iter().flatten().collect()).unwrap();
        assert_eq!(written, "{\"object\":\"web\\u009b2J\\u202e\"}\n");
    }

    #[test]
    fn no_name_forges_a_line_of_the_log() {
        let (log, written) = channel();
        let lines = tracing_subscriber::fmt::layer()
            .fmt_fields(text_fields())
            .with_ansi(false)
            .with_writer(move || Log(log.clone()));
        let name = "web\n2026-11-25T00:00:00Z  INFO reviewed\u{202e}\x1b[2J";
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            tracing::warn!(shown = %name, quoted = name, "The file {name} is odd.");
        });
        let written = String::from_utf8(written.iter().flatten().collect()).unwrap();
        assert_eq!(written.lines().count(), 1, "{written}");
        assert!(!written.contains(['\x1b', '\u{202e}']), "{written:?}");
        let safe = "web 2026-11-25T00:00:00Z  INFO reviewed\\u{202e}\\u{1b}[2J";
        assert!(written.contains(&format!(": The file {safe} is odd. ")), "{written}");
        assert!(written.contains(&format!(" shown={safe} ")), "{written}");
        assert!(written.contains(" quoted=\"web\\n2026"), "{written}");
    }
}
