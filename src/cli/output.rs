//! The output of commands.

use std::fmt::Display;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::error::CommandError;
use super::format;
use report::{Earlier, Format, Report, Style, Width, safe};

/// A result that makes a command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Findings that the webhook would deny or repair
    Deny,
    /// Warnings too
    Warn,
    /// Anything that could not be judged too
    Incomplete,
}

/// When text has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal that has them, unless NO_COLOR or CLICOLOR=0 forbids it; with FORCE_COLOR too
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Whether text has colours on a `terminal`, or in another output.
    fn is_on(self, terminal: bool) -> bool {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if anstyle_query::no_color() => false,
            Self::Auto if anstyle_query::clicolor_force() || is_set("FORCE_COLOR") => true,
            Self::Auto => {
                terminal
                    && anstyle_query::clicolor() != Some(false)
                    && anstyle_query::term_supports_color()
            }
        }
    }
}

/// How findings are reported, and which of them make a command fail.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// Output format
    #[arg(long, short = 'o', visible_alias = "output", value_parser = format::values(&Format::ALL, Format::documented), default_value = "text")]
    pub format: Format,

    /// Print all that is known of each finding, as `--format wide`, and what confines rendering
    #[arg(long, short, conflicts_with = "summary")]
    pub verbose: bool,

    /// Print only the counts, in the formats for people
    #[arg(long, visible_short_alias = 'q')]
    pub summary: bool,

    /// Colours in the formats for people
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,

    /// Report and fail on only the findings that this earlier `--format json` lacks
    #[arg(long, value_name = "EARLIER.json")]
    pub compare: Option<PathBuf>,

    /// Mildest finding that makes the exit code 1; "incomplete" may be added: warn,incomplete
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [FailOn::Deny])]
    pub fail_on: Vec<FailOn>,

    /// Exit with 0 whatever is found
    #[arg(long, conflicts_with = "fail_on")]
    pub exit_zero: bool,
}

impl ReportArgs {
    /// The earlier report for the comparison. It is read before anything else: a mistake in it
    /// should not cost the reading of a large cluster.
    pub(super) fn earlier(&self) -> Result<Option<Earlier>, CommandError> {
        let Some(path) = self.compare.clone() else {
            return Ok(None);
        };
        match fs::read(&path).map(|json| Earlier::parse(&json)) {
            Ok(Ok(earlier)) => Ok(Some(earlier)),
            Ok(Err(source)) => Err(CommandError::NoReport { path, source }),
            Err(source) => Err(CommandError::Earlier { path, source }),
        }
    }

    /// The style of text, for a terminal or another output.
    fn style(&self, terminal: bool) -> Style {
        Style {
            colour: self.color.is_on(terminal),
            width: width(terminal),
            summary: self.summary,
            verbose: self.verbose,
        }
    }

    /// Whether the command fails if something could not be judged.
    pub(super) fn must_be_complete(&self) -> bool {
        self.fail_on.contains(&FailOn::Incomplete)
    }

    /// The exit code. Findings outweigh what could not be read. `is_blind` says that something
    /// could not be read, or that there was nothing to judge.
    pub(super) fn exit_code(&self, report: &Report, is_blind: bool) -> u8 {
        let summary = &report.summary;
        let failing = if self.fail_on.contains(&FailOn::Warn) {
            summary.reported()
        } else {
            summary.deny + summary.fix
        };
        let lacks_something = self.must_be_complete() && !report.is_complete();
        if failing + summary.stuck > 0 && !self.exit_zero {
            1
        } else if is_blind {
            2
        } else {
            u8::from(lacks_something && !self.exit_zero)
        }
    }
}

/// Writes a report to `out`, which is standard output or standard error.
pub(super) fn write_report(
    report: &Report,
    options: &ReportArgs,
    out: impl Write + IsTerminal,
) -> io::Result<()> {
    let style = options.style(out.is_terminal());
    let mut out = io::BufWriter::new(out);
    report::write(report, options.format, style, &mut out)?;
    out.flush()
}

/// The width that names and fields need.
const NARROWEST: usize = 40;

/// The width of text for a terminal or another output.
pub(super) fn width(terminal: bool) -> Width {
    terminal_size::terminal_size().filter(|_| terminal).map_or(Width::OfPipe, |(width, _)| {
        Width::OfWindow(usize::from(width.0).clamp(NARROWEST, Width::WIDEST))
    })
}

/// A line of standard output: `text` after `start`.
pub(super) fn line(start: &str, text: &str) -> String {
    width(io::stdout().is_terminal()).line(start, text) + "\n"
}

/// The question whether a similar name was meant, after a space; empty if there is none.
pub(super) fn did_you_mean(meant: Option<&str>) -> String {
    meant.map_or_else(String::new, |meant| format!(" Did you mean \"{meant}\"?"))
}

/// Prints an error to standard error, made safe to print: it may name files and objects.
pub(super) fn complain(what: &impl Display) {
    eprintln!("{}", safe::lines(&what.to_string()));
}

/// The exit code of a command; 2, and a sentence, if it failed.
pub(super) fn exit_code(outcome: Result<impl Into<ExitCode>, CommandError>) -> ExitCode {
    match outcome {
        Ok(code) => code.into(),
        Err(error) => {
            // A reader such as `head` has seen enough and closed the pipe.
            let is_closed = matches!(&error, CommandError::Write(error) if error.kind() == io::ErrorKind::BrokenPipe);
            if !is_closed {
                complain(&error);
            }
            ExitCode::from(2)
        }
    }
}

/// Prints `text` and returns the exit code of the program. `what` names the text in the message
/// about a failed write, such as "capabilities".
pub(super) fn print(what: &str, text: &[u8]) -> ExitCode {
    match io::stdout().lock().write_all(text) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader such as `head` has seen enough and closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("The {what} could not be written: {error}.");
            ExitCode::from(2)
        }
    }
}
