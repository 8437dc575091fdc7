//! Where log lines go and what they look like.

use std::io::{self, IsTerminal};
use std::panic::{self, PanicHookInfo};

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line of text an event, for people.
    #[default]
    Text,
    /// One JSON object an event, for log collectors.
    Json,
}

/// What is logged, and how.
#[derive(Args, Clone, Debug)]
pub struct LogOptions {
    /// How log lines are written; they go to standard error
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub log_format: LogFormat,

    /// What is logged: error, warn, info, debug or trace, also for one module alone, as in
    /// "info,multi_attach_guard=debug"
    #[arg(long, env = "RUST_LOG", default_value = "info", value_name = "FILTER")]
    pub log: Targets,
}

impl LogOptions {
    /// Sends the log of the whole process to `log`, on its way to standard error. Call it
    /// once.
    pub fn install(
        &self,
        log: impl for<'w> MakeWriter<'w> + Send + Sync + 'static,
    ) -> Result<(), TryInitError> {
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(io::stderr().is_terminal())
            // They would go to standard error at once: that may panic or wait, and no
            // review may end for the log.
            .log_internal_errors(false)
            .with_writer(log);
        let filter = tracing_subscriber::registry().with(self.log.clone());
        match self.log_format {
            LogFormat::Text => filter.with(lines).try_init()?,
            LogFormat::Json => filter.with(lines.json().flatten_event(true)).try_init()?,
        }
        panic::set_hook(Box::new(log_panic));
        Ok(())
    }
}

/// A panic becomes a log line like any other, so that JSON stays JSON.
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
