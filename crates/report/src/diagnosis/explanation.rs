//! What a line means, for people and for programs.

use std::io::{self, Write};

use maud::html;

use super::super::page::{self, Heading};
use super::super::safe;
use super::Format;
use super::text::paragraph;
use doctor::diagnosis::{Cause, Explanation};

/// Where a cause is described.
const RUNBOOK: &str = "docs/runbook.md";

/// Writes `explanation` in `format`.
///
/// # Errors
/// Whatever writing to `out` says.
pub fn write(explanation: &Explanation, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Text => text(explanation, out),
        Format::Json => out.write_all(safe::json(explanation)?.as_bytes()),
        Format::Html => page(explanation, out),
    }
}

/// The causes with their titles.
fn causes(explanation: &Explanation) -> impl Iterator<Item = &'static Cause> {
    explanation
        .causes
        .iter()
        .filter_map(|code| Cause::named(code))
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
    writeln!(
        out,
        "\n  The causes that `diagnose` distinguishes ({RUNBOOK}):\n"
    )?;
    for cause in causes(explanation) {
        writeln!(out, "    {:<24}{}", cause.code, cause.title)?;
    }
    Ok(())
}

fn page(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let heading = Heading {
        origin: None,
        title: explanation.searched,
        extent: "",
        summary: explanation.meaning,
    };
    let content = html! {
        h2 { "First look" }
        @for command in &explanation.look { pre.diff { (command) } }
        h2 { "The way out" }
        p { (explanation.fix) }
        h2 { "Causes" }
        ul { @for cause in causes(explanation) { li { code { (cause.code) } " " (cause.title) } } }
    };
    page::write(&heading, &content, out)
}
