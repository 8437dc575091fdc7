//! Explanations of messages, for people and for programs.

use std::io::{self, Write};

use super::super::{Width, safe};
use super::text::{Page, hung, paragraph};
use super::{Format, MOST};
use doctor::diagnosis::{Cause, Explained, Explanation};

/// The page that describes each cause.
const RUNBOOK: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/runbook.md");

/// Writes what a text means in `format`; the format for people has lines of this `width`.
///
/// # Errors
/// Writing to `out` fails.
pub fn write(
    explained: &Explained,
    format: Format,
    width: Width,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Text => text(explained, &mut Page { width, out }),
        Format::Json => out.write_all(safe::json(explained)?.as_bytes()),
    }
}

fn text(explained: &Explained, out: &mut Page<'_>) -> io::Result<()> {
    for (number, explanation) in explained.known.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        describe(explanation, out)?;
    }
    let unknown: Vec<String> = explained.unknown.iter().take(MOST).cloned().collect();
    list("These lines also report an error, and are not known", &unknown, out)
}

fn describe(explanation: &Explanation, out: &mut Page<'_>) -> io::Result<()> {
    let Explanation { object, searched, says, .. } = explanation;
    if !object.is_empty() {
        writeln!(out, "{}", safe::line(object))?;
    }
    let harmless = if explanation.harmless { ", no error" } else { "" };
    writeln!(out, "{searched} ({says}{harmless})\n")?;
    paragraph(out, "  ", &explanation.meaning)?;
    list("First look", &explanation.look, out)?;
    writeln!(out, "\n  The way out:\n")?;
    paragraph(out, "    ", explanation.fix)?;
    let causes: Vec<&Cause> =
        explanation.causes.iter().filter_map(|code| Cause::named(code)).collect();
    if !causes.is_empty() {
        writeln!(out)?;
        paragraph(out, "  ", &format!("The causes that `diagnose` distinguishes ({RUNBOOK}):"))?;
        writeln!(out)?;
    }
    causes
        .into_iter()
        .try_for_each(|cause| hung(out, &format!("    {:<24}", cause.code), &cause.title))
}

/// Writes the items below their title, and nothing if there are none.
fn list(title: &str, items: &[String], out: &mut Page<'_>) -> io::Result<()> {
    if !items.is_empty() {
        writeln!(out, "\n  {title}:\n")?;
    }
    items.iter().try_for_each(|item| writeln!(out, "    {}", safe::line(item)))
}
