//! Reports for people.

use std::io::{self, Write};

use annotate_snippets::{AnnotationKind, Group, Level, Message, Origin, Renderer, Snippet};

use super::live::{Owner, Stuck};
use super::{Located, Place, Report, Severity, Style, words};
use engine::remedy::REMEDIES;
use engine::rules::SETTLE;

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
    live(report, style, out)?;
    for hint in &report.hints {
        writeln!(out, "{hint}")?;
    }
    if !report.hints.is_empty() {
        writeln!(out)?;
    }
    writeln!(out, "{}", words::summary(&report.summary))
}

/// A block for each volume that is stuck and each object with findings, then suppressions
/// and notices. Those of a cluster stand under their namespaces.
fn blocks(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let renderer = if style.colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    }
    .term_width(style.width);
    let mut said = false;
    for section in words::sections(report) {
        if let Some(counts) = section.counts {
            writeln!(out, "Namespace {counts}\n")?;
        }
        for stuck in section.stuck {
            writeln!(out, "{}\n", renderer.render(&[stuck_now(stuck, style)]))?;
        }
        for together in section.objects {
            writeln!(
                out,
                "{}\n",
                renderer.render(&[block(&together, style, &mut said)])
            )?;
        }
    }
    let mut print = |group| writeln!(out, "{}\n", renderer.render(&[group]));
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

/// Who waits for a volume, why, and the command that ends it.
fn stuck_now(stuck: &Stuck, style: Style) -> Group<'_> {
    let case = &stuck.case;
    let name = if case.passes { "waits" } else { "stuck" };
    let title = format!("{}: {}", stuck.claim(), case.title);
    let group = Level::ERROR.with_name(name).primary_title(title);
    let mut group = Group::with_title(group.id(case.cause));
    let note = |text: &str| Level::NOTE.message(wrapped(text, style.width));
    group = group.element(note(&words::waiting(case)));
    group = group.element(note(&case.because));
    group = group.elements(owner_notes(stuck.owner.as_ref(), style));
    match stuck.way_out() {
        Some((command, cost)) => {
            let help = |text: String| Level::HELP.message(text);
            group = group.element(help(format!("run: {command}")));
            group.element(note(&format!("costs: {cost}")))
        }
        None => group,
    }
}

/// Who writes the object, and the command that shows what to change there, on a line to copy.
fn owner_notes(owner: Option<&Owner>, style: Style) -> Vec<Message<'static>> {
    let Some(owner) = owner else {
        return Vec::new();
    };
    let text = wrapped(&format!("written by {owner}"), style.width);
    let command = owner.command.as_ref();
    let command = command.map(|it| Level::HELP.message(format!("look at: {it}")));
    [Level::NOTE.message(text)]
        .into_iter()
        .chain(command)
        .collect()
}

/// What else is known of a live cluster.
fn live(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let overrides: Vec<String> = report.overrides.iter().map(ToString::to_string).collect();
    for (title, sentences) in [("Overrides", &overrides), ("Not seen", &report.open)] {
        if sentences.is_empty() {
            continue;
        }
        if style.summary {
            writeln!(out, "{title}: {}", sentences.len())?;
            continue;
        }
        writeln!(out, "{title}:")?;
        for sentence in sentences {
            let text = wrapped(sentence, style.width).replace('\n', "\n    ");
            writeln!(out, "  {text}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The findings on one object: at least one.
fn block<'r>(together: &[(Severity, &'r Located)], style: Style, settled: &mut bool) -> Group<'r> {
    let (severity, first) = together[0];
    let finding = &first.finding;
    let title = format!("{}: {}", finding.object, finding.brief);
    let mut group = level(severity)
        .primary_title(title)
        .id(finding.rule)
        .elements(first.place.as_ref().map(snippet));
    group = rendered_from(group, first.place.as_ref());
    if let Some(note) = elsewhere(first) {
        group = group.element(Level::NOTE.message(wrapped(&note, style.width)));
    }
    let text = settled_once(message(first), settled);
    group = group.element(Level::NOTE.message(wrapped(text, style.width)));
    for (number, (severity, other)) in together.iter().enumerate().skip(1) {
        let is_same = |(as_grave, earlier): &(Severity, &Located)| {
            as_grave == severity && say_the_same(earlier, other)
        };
        let note = if together[..number].iter().any(is_same) {
            again(other)
        } else {
            let (severity, rule) = (severity.name(), other.finding.rule);
            let text = settled_once(message(other), settled);
            let also = format!("{severity}[{rule}] too: {text}");
            wrapped(&also, style.width)
        };
        group = group.element(Level::NOTE.message(note));
    }
    group = group.elements(owner_notes(first.owner.as_ref(), style));
    let names = remedy_names(together.iter().map(|(_, located)| *located));
    if names.is_empty() {
        return group;
    }
    let help = format!("remedies: {}", names.join(", "));
    group = group.element(Level::HELP.message(help));
    let command = first.command.as_ref();
    group.elements(command.map(|it| Level::HELP.message(format!("run: {it}"))))
}

/// So many other places of a finding are named.
const MOST_PLACES: usize = 3;

/// The note on the other charts and kustomizations that take the line.
fn elsewhere(located: &Located) -> Option<String> {
    let templates = located
        .also
        .iter()
        .filter_map(|(_, place)| place.template.as_deref());
    let templates: Vec<&str> = templates.collect();
    let (named, more) = templates.split_at(templates.len().min(MOST_PLACES));
    if named.is_empty() {
        return None;
    }
    let mut named: Vec<String> = named.iter().map(|it| (*it).to_owned()).collect();
    if !more.is_empty() {
        named.push(format!("{} more", more.len()));
    }
    Some(format!(
        "the same in what is rendered from {}",
        words::listed(&named)
    ))
}

/// The message without what would settle an assumption, if that was said before.
fn settled_once<'m>(message: &'m str, settled: &mut bool) -> &'m str {
    let Some((before, _)) = message.split_once(SETTLE) else {
        return message;
    };
    match std::mem::replace(settled, true) {
        true => before.trim_end(),
        false => message,
    }
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
