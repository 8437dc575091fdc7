//! What a command prints.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::ValueEnum;

use crate::report::{self, Format, Report, Style, Summary, safe};

/// The least that makes a command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// What the webhook would refuse or repair
    Deny,
    /// Warnings too
    Warn,
}

impl FailOn {
    pub(super) const fn fails(self, summary: &Summary) -> bool {
        match self {
            Self::Deny => summary.deny + summary.fix > 0,
            Self::Warn => summary.reported() > 0,
        }
    }
}

/// Writes a report to standard output, in full or only its numbers.
pub(super) fn print_report(report: &Report, format: Format, summary: bool) -> io::Result<()> {
    let out = io::stdout();
    let terminal = out.is_terminal();
    write_report(
        report,
        format,
        summary,
        terminal,
        &mut io::BufWriter::new(out.lock()),
    )
}

/// Writes a report to `out`, which may be a terminal.
pub(super) fn write_report(
    report: &Report,
    format: Format,
    summary: bool,
    terminal: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    // https://no-color.org
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let style = Style {
        colour: terminal && !unwanted,
        width: 110,
        summary,
    };
    report::write(report, format, style, out)?;
    out.flush()
}

/// Says on standard error what went wrong, safe to print: it may name files and objects.
pub(super) fn complain(what: &impl Display) {
    eprintln!("{}", safe::lines(&what.to_string()));
}

/// The code with which a command ends; 2 and a sentence where it failed. `unwritten` is
/// the error of standard output, where that is what failed.
pub(super) fn exit_code<E: Display>(
    outcome: Result<u8, E>,
    unwritten: fn(&E) -> Option<&io::Error>,
) -> ExitCode {
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let is_closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
            // Whoever reads the output has seen enough, as `head` does.
            if !unwritten(&error).is_some_and(is_closed) {
                complain(&error);
            }
            ExitCode::from(2)
        }
    }
}

/// Prints `text` and says with which code the program ends. `what` it is stands in
/// the message should it not be written: "capabilities" for example.
pub(super) fn print(what: &str, text: &[u8]) -> ExitCode {
    match io::stdout().lock().write_all(text) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads it has seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("The {what} could not be written: {error}.");
            ExitCode::from(2)
        }
    }
}
