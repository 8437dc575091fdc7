//! What a command prints.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::ValueEnum;

use crate::report::{self, Format, Report, Style, Summary};

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
            Self::Warn => summary.told() > 0,
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
