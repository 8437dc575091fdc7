//! Reports for people.

use std::io::{self, Write};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Located, Place, Report, Severity, Style, words};
use engine::remedy::REMEDIES;

pub(super) fn write(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if !style.summary {
        blocks(report, style, out)?;
        remedies(report, style, out)?;
    }
    let rules = words::by_rule(report);
    if report.reported().count() > 1 || (style.summary && !rules.is_empty()) {
        writeln!(out, "By rule:")?;
        for (rule, errors, warnings) in rules {
            writeln!(out, "  {rule}: {}", words::severities(errors, warnings))?;
        }
        writeln!(out)?;
    }
    for hint in &report.hints {
        writeln!(out, "{hint}")?;
    }
    if !report.hints.is_empty() {
        writeln!(out)?;
    }
    writeln!(out, "{}", words::summary(&report.summary))
}

/// A block for each object with findings, then suppressions and notices.
fn blocks(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let renderer = if style.colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    }
    .term_width(style.width);
    let mut print = |group| writeln!(out, "{}\n", renderer.render(&[group]));
    let findings: Vec<(Severity, &Located)> = report.reported().collect();
    for together in findings.chunk_by(|(_, a), (_, b)| same_object(a, b)) {
        print(block(together, style))?;
    }
    for (reason, located) in report.suppressed() {
        let finding = &located.finding;
        let title = format!("{}: {}: {reason}", finding.object, finding.rule);
        let group = Level::INFO.with_name("suppressed").primary_title(title);
        print(Group::with_title(group).elements(located.place.as_ref().map(origin)))?;
    }
    for notice in &report.notices {
        let group = Group::with_title(Level::WARNING.primary_title(notice.sentence()));
        print(group.elements(notice.place.as_ref().map(origin)))?;
    }
    for sentence in words::unopened(report) {
        writeln!(out, "{sentence}")?;
    }
    if !report.unopened.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

/// The findings on one object, of which there is at least one.
fn block<'r>(together: &[(Severity, &'r Located)], style: Style) -> Group<'r> {
    let (severity, first) = together[0];
    let finding = &first.finding;
    let title = format!("{}: {}", finding.object, finding.brief);
    let mut group = level(severity)
        .primary_title(title)
        .id(finding.rule)
        .elements(first.place.as_ref().map(snippet));
    group = rendered_from(group, first.place.as_ref());
    group = group.element(Level::NOTE.message(wrapped(message(first), style.width)));
    for (number, (severity, other)) in together.iter().enumerate().skip(1) {
        let is_same = |(as_grave, earlier): &(Severity, &Located)| {
            as_grave == severity && say_the_same(earlier, other)
        };
        let note = if together[..number].iter().any(is_same) {
            again(other)
        } else {
            let (severity, rule) = (severity.name(), other.finding.rule);
            let also = format!("{severity}[{rule}] too: {}", message(other));
            wrapped(&also, style.width)
        };
        group = group.element(Level::NOTE.message(note));
    }
    let names = remedy_names(together.iter().map(|(_, located)| *located));
    if names.is_empty() {
        return group;
    }
    let help = format!("remedies: {}", names.join(", "));
    group.element(Level::HELP.message(help))
}

/// Whether two findings are about one object of one file.
fn same_object(a: &Located, b: &Located) -> bool {
    let file = |located: &Located| located.place.as_ref().map(|place| place.file.clone());
    a.finding.object == b.finding.object && file(a) == file(b)
}

/// Whether two findings about one object say the same of it.
fn say_the_same(a: &Located, b: &Located) -> bool {
    a.finding.rule == b.finding.rule && a.finding.message == b.finding.message
}

/// The note for a finding that says the same as one before it.
fn again(located: &Located) -> String {
    let place = located.place.as_ref();
    match place.and_then(|place| place.template.as_deref()) {
        Some(template) => format!("the same in what is rendered from {template}"),
        None => "the same again".to_owned(),
    }
}

/// The finding's sentences without the object, which the title names.
fn message(located: &Located) -> &str {
    let finding = &located.finding;
    let object = format!("{}: ", finding.object);
    let message = finding.message.strip_prefix(&object);
    message.unwrap_or(&finding.message)
}

/// The remedies of the findings, each once.
fn remedy_names<'l>(located: impl Iterator<Item = &'l Located>) -> Vec<&'static str> {
    let mut names = Vec::new();
    for proposal in located.flat_map(|it| &it.finding.remedies) {
        if !names.contains(&proposal.remedy.name) {
            names.push(proposal.remedy.name);
        }
    }
    names
}

/// What each remedy costs, once for the whole report.
fn remedies(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let named = remedy_names(report.reported().map(|(_, located)| located));
    let used = REMEDIES.iter().filter(|it| named.contains(&it.name));
    for (number, remedy) in used.enumerate() {
        if number == 0 {
            writeln!(out, "Remedies:")?;
        }
        let text = format!("{}: {}", remedy.name, remedy.cost);
        let text = wrapped(&text, style.width).replace('\n', "\n    ");
        writeln!(out, "  {text}")?;
    }
    if !named.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

const fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    }
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

fn origin(place: &Place) -> Origin<'_> {
    Origin::path(place.file.as_str())
        .line(place.line)
        .char_column(place.column)
}

fn rendered_from<'g>(group: Group<'g>, place: Option<&Place>) -> Group<'g> {
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
