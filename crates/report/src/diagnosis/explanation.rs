//! Explanations of messages, for people and for programs.

use std::io::{self, Write};

use super::super::safe;
use super::Format;
use super::text::paragraph;
use doctor::diagnosis::{Cause, Explanation};

/// The page that describes each cause.
const RUNBOOK: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/runbook.md");

/// Writes `explanation` in `format`.
///
/// # Errors
/// Writing to `out` fails.
pub fn write(explanation: &Explanation, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Text => text(explanation, out),
        Format::Json => out.write_all(safe::json(explanation)?.as_bytes()),
    }
}

fn text(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} ({})\n", explanation.searched, explanation.says)?;
    paragraph(out, "  ", explanation.meaning)?;
    writeln!(out, "\n  First look:\n")?;
    for command in &explanation.look {
        writeln!(out, "    {}", safe::line(command))?;
    }
    writeln!(out, "\n  The way out:\n")?;
    paragraph(out, "    ", explanation.fix)?;
    writeln!(out, "\n  The causes that `diagnose` distinguishes ({RUNBOOK}):\n")?;
    let causes = explanation.causes.iter();
    for cause in causes.filter_map(|code| Cause::named(code)) {
        writeln!(out, "    {:<24}{}", cause.code, cause.title)?;
    }
    Ok(())
}
