//! Reports for people.

use std::io::{self, Write};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Place, Report, Severity, Style, Summary};

pub(super) fn write(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let renderer = if style.colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    }
    .term_width(style.width);
    for (severity, located) in report.told() {
        let finding = &located.finding;
        let level = match severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let (_, brief) = finding
            .warning
            .split_once(": ")
            .unwrap_or(("", &finding.warning));
        let title = format!("{}: {brief}", finding.object);
        let mut group = level
            .primary_title(title)
            .id(finding.rule)
            .elements(located.place.as_ref().map(snippet));
        group = told_by(group, located.place.as_ref());
        let object = format!("{}: ", finding.object);
        let message = finding.message.strip_prefix(&object);
        let message = message.unwrap_or(&finding.message);
        group = group.element(Level::NOTE.message(wrapped(message, style.width)));
        for proposal in &finding.remedies {
            let help = format!("remedy {}: {}", proposal.remedy.name, proposal.remedy.cost);
            group = group.element(Level::HELP.message(wrapped(&help, style.width)));
        }
        writeln!(out, "{}\n", renderer.render(&[group]))?;
    }
    for notice in &report.notices {
        let title = format!("{}: {}", notice.object, notice.text);
        let mut group = Group::with_title(Level::WARNING.primary_title(title));
        if let Some(place) = &notice.place {
            let origin = Origin::path(place.file.as_str())
                .line(place.line)
                .char_column(place.column);
            group = group.element(origin);
        }
        writeln!(out, "{}\n", renderer.render(&[group]))?;
    }
    writeln!(out, "{}", sentence(&report.summary))
}

fn snippet(place: &Place) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
    let at = |column: usize| {
        place
            .text
            .char_indices()
            .nth(column - 1)
            .map_or(place.text.len(), |(at, _)| at)
    };
    let span = at(place.column)..at(place.end_column);
    Snippet::source(place.text.as_str())
        .line_start(place.line)
        .path(place.file.as_str())
        .annotation(AnnotationKind::Primary.span(span))
}

fn told_by<'g>(group: Group<'g>, place: Option<&Place>) -> Group<'g> {
    match place.and_then(|place| place.template.as_deref()) {
        Some(template) => group.element(Level::NOTE.message(format!("rendered from {template}"))),
        None => group,
    }
}

/// The text on lines that fit a window, the frame around it considered.
fn wrapped(text: &str, width: usize) -> String {
    const FRAME: usize = 16;
    let width = width.saturating_sub(FRAME).max(40);
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let letters = word.chars().count();
        if length > 0 && length + 1 + letters > width {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += letters;
    }
    lines
}

/// The summary in words.
fn sentence(summary: &Summary) -> String {
    let mut said = match (summary.deny + summary.fix, summary.warn) {
        (0, 0) => "No findings".to_owned(),
        (errors, 0) => amount(errors, "error"),
        (0, warnings) => amount(warnings, "warning"),
        (errors, warnings) => format!(
            "{}, {}",
            amount(errors, "error"),
            amount(warnings, "warning")
        ),
    };
    if summary.suppressed > 0 {
        said += &format!("; {} suppressed", summary.suppressed);
    }
    said += &format!(
        ". {} judged in {}",
        amount(summary.judged, "object"),
        amount(summary.files, "file")
    );
    if summary.facts > 0 {
        said += &format!(", {} used as facts", summary.facts);
    }
    let skipped: usize = summary.skipped.values().sum();
    if skipped > 0 {
        let mut kinds: Vec<(&String, &usize)> = summary.skipped.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let named: Vec<String> = kinds
            .iter()
            .take(3)
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        let rest = if kinds.len() > 3 { ", …" } else { "" };
        said += &format!(
            ", {skipped} of other kinds passed over ({}{rest})",
            named.join(", ")
        );
    }
    if summary.unreadable > 0 {
        said += &format!("; {} could not be read", summary.unreadable);
    }
    said.push('.');
    said
}

fn amount(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}
