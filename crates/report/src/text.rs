//! Reports for people.

use std::collections::HashMap;
use std::io::{self, Write};
use std::iter::once;
use std::ops::Range;

use annotate_snippets::{
    Annotation, AnnotationKind, Element, Group, Level, Message, Origin, Renderer, Snippet,
};

use super::live::{Owner, Stuck};
use super::words::folded;
use super::{
    Excerpt, Line, Located, Notice, Place, Report, Severity, Style, Width, concise, safe, words,
};
use doctor::diagnosis::Purpose;
use engine::model::words::some;
use engine::remedy::REMEDIES;
use engine::rules::SETTLE;

/// The most objects per rule that are shown with their lines; each further one takes one line.
const MOST_PICTURES: usize = 10;

pub(super) fn write(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if report.summary.cluster && !style.verbose && !style.summary {
        table(report, out)?;
        for notice in &report.notices {
            writeln!(out, "note: {}\n", safe::line(&notice.sentence()))?;
        }
    } else if !style.summary {
        blocks(report, style, out)?;
        if style.verbose {
            remedies(report, style, out)?;
        }
    }
    let rules = words::by_rule(report);
    if rules.len() > 1 || (style.summary && !rules.is_empty()) {
        writeln!(out, "By rule:")?;
        for rule in rules {
            writeln!(out, "  {rule}")?;
        }
        writeln!(out)?;
    }
    let overrides: Vec<String> = report.overrides.iter().map(ToString::to_string).collect();
    for (title, sentences) in [("Overrides", &overrides), ("Not seen", &report.open)] {
        if style.summary && !sentences.is_empty() {
            writeln!(out, "{title}: {}", sentences.len())?;
        } else {
            list(title, sentences, style, out)?;
        }
    }
    for hint in &report.hints {
        writeln!(out, "{}", style.width.line("", hint))?;
    }
    writeln!(out, "{}", style.width.line("", &words::summary(report)))
}

/// The parts of a report that are already printed and are not repeated.
#[derive(Default)]
struct Said<'r> {
    /// Whether the sentence about settling an assumption was printed.
    settled: bool,
    /// The number of objects that were shown with their lines, for each rule.
    pictures: HashMap<&'r str, usize>,
    /// The suggested changes, with their rules.
    helps: Vec<(&'r str, String)>,
}

/// Prints the notices about incomplete objects, a block for each stuck volume and each object with
/// findings, then suppressions and other notices. The blocks of a cluster are grouped by namespace.
fn blocks(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let renderer = if style.colour { Renderer::styled() } else { Renderer::plain() }
        .term_width(style.width.characters());
    let mut said = Said::default();
    let print = |group: Group<'_>, to: &mut dyn Write| {
        writeln!(to, "{}\n", without_empty_frame(&renderer.render(&[group])))
    };
    let notice = |notice: &Notice, to: &mut dyn Write| {
        let title = titled(&notice.sentence(), "", style.width);
        let group = Group::with_title(Level::NOTE.primary_title(title));
        print(group.elements(notice.place.as_ref().map(origin)), to)
    };
    for incomplete in &report.incomplete {
        notice(incomplete, out)?;
    }
    let mut in_lines = 0;
    for section in words::sections(report) {
        if let Some(counts) = section.counts {
            writeln!(out, "Namespace {counts}\n")?;
        }
        for stuck in section.stuck {
            print(stuck_now(stuck, style), out)?;
        }
        for together in section.objects {
            let pictures = said.pictures.entry(together[0].1.finding.rule).or_default();
            *pictures += 1;
            if style.verbose {
                print(block(&together, style, &mut said), out)?;
            } else if *pictures <= MOST_PICTURES {
                print(picture(&together, style, &mut said), out)?;
            } else {
                for (severity, located) in &together {
                    writeln!(out, "{}", concise::line(*severity, located))?;
                    in_lines += 1;
                }
            }
        }
    }
    if in_lines > 0 {
        writeln!(out)?;
    }
    for (reason, located) in report.suppressed() {
        let finding = &located.finding;
        let title = format!("{}: {}: {reason}", finding.object, finding.rule);
        let title = titled(&title, "", style.width);
        let group = Group::with_title(Level::INFO.with_name("suppressed").primary_title(title));
        print(group.elements(located.place.as_ref().map(origin)), out)?;
    }
    for other in &report.notices {
        notice(other, out)?;
    }
    let not_judged = words::not_judged(report);
    for sentence in &not_judged {
        writeln!(out, "{}", style.width.line("", sentence))?;
    }
    if !not_judged.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

/// A rendered block without the lines that contain only its frame.
fn without_empty_frame(rendered: &str) -> String {
    let lines = rendered.lines().filter(|line| {
        let mut parts = line.split('\x1b');
        let first = parts.next().unwrap_or_default();
        let after_escapes = parts.filter_map(|escape| Some(escape.split_once('m')?.1));
        let text: String = once(first).chain(after_escapes).collect();
        text.trim() != "|"
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Prints the problems of a cluster as a table with one row and one command per object.
fn table(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut rows = vec![["NAMESPACE", "OBJECT", "WHAT", "COMMAND"].map(str::to_owned)];
    for section in words::sections(report) {
        rows.extend(section.stuck.into_iter().map(|stuck| {
            let case = &stuck.case;
            let name = if case.passes { "waits" } else { "stuck" };
            // A row has no place for what must stand before a command.
            let command = match case.safest()[..] {
                [only] => only.command.clone(),
                _ => None,
            };
            let namespace = &case.volume.namespace;
            [
                namespace.to_string(),
                format!("PersistentVolumeClaim {}", case.volume.claim),
                format!("{name}: {}", case.cause),
                command.unwrap_or_else(|| format!("multi-attach-guard diagnose -n {namespace}")),
            ]
        }));
        rows.extend(section.objects.iter().map(|together| {
            let (severity, first) = together[0];
            let object = &first.finding.object;
            let mut rules: Vec<&str> =
                together.iter().map(|(_, located)| located.finding.rule).collect();
            rules.dedup();
            let command = together.iter().find_map(|(_, located)| located.command.clone());
            [
                first.namespace().to_owned(),
                format!("{} {}", object.kind, object.name),
                format!("{}: {}", severity.name(), rules.join(", ")),
                command.unwrap_or_else(|| more(rules[0])),
            ]
        }));
    }
    if rows.len() == 1 {
        return Ok(());
    }
    let [first, second, third] = [0, 1, 2]
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default());
    for [namespace, object, what, command] in &rows {
        writeln!(out, "{namespace:first$}  {object:second$}  {what:third$}  {command}")?;
    }
    writeln!(out)
}

/// The command that shows more about a rule.
fn more(rule: &str) -> String {
    format!("multi-attach-guard rules {rule}")
}

/// The lines at fault, one change, and the command that shows more.
fn picture<'r>(
    together: &[(Severity, &'r Located)],
    style: Style,
    said: &mut Said<'r>,
) -> Group<'r> {
    let (_, first) = together[0];
    let finding = &first.finding;
    let rule = finding.rule;
    // The help of a rule may stand under another one.
    let is_known = said.pictures.get(rule).is_some_and(|shown| *shown > 1)
        && said.helps.iter().any(|(known, _)| *known == rule);
    let headline = format!("{}: {}", finding.object, consequence(first));
    let title = titled(&headline, rule, style.width);
    let mut group = at_fault(together[0], title, !is_known, style);
    group = group.elements(help_once(first, style, said));
    for (sentence, (_, other)) in others(together, consequence).iter().zip(&together[1..]) {
        group = group.element(note(sentence, style));
        if help(other) != help(first) {
            group = group.elements(help_once(other, style, said));
        }
    }
    group.elements((!is_known).then(|| more_of(rule)))
}

/// The help for the finding, unless it was printed for the same rule before.
fn help_once<'r>(
    located: &'r Located,
    style: Style,
    said: &mut Said<'r>,
) -> Option<Message<'static>> {
    let said_help = (located.finding.rule, help(located)?);
    if said.helps.contains(&said_help) {
        return None;
    }
    let message = Level::HELP.message(wrapped(&said_help.1, style.width));
    said.helps.push(said_help);
    Some(message)
}

/// A finding with its title, the lines at fault, and the other places where they are rendered; with
/// `context`, also the lines that the message refers to.
fn at_fault<'r>(
    (severity, located): (Severity, &'r Located),
    title: String,
    context: bool,
    style: Style,
) -> Group<'r> {
    let rendered =
        located.template().map(|template| Level::NOTE.message(format!("rendered from {template}")));
    level(severity)
        .primary_title(title)
        .id(located.finding.rule)
        .elements(snippets(located, context, style.width.characters()))
        .elements(rendered)
        .elements(elsewhere(located).map(|sentence| note(&sentence, style)))
}

fn note(text: &str, style: Style) -> Message<'static> {
    Level::NOTE.message(wrapped(text, style.width))
}

/// The findings on an object after the first one, each in the words of `say`.
fn others(together: &[(Severity, &Located)], mut say: impl FnMut(&Located) -> &str) -> Vec<String> {
    let further = together.iter().enumerate().skip(1).map(|(number, (severity, other))| {
        let (rule, message) = (other.finding.rule, &other.finding.message);
        let is_same = |(as_grave, earlier): &(Severity, &Located)| {
            let earlier = &earlier.finding;
            as_grave == severity && earlier.rule == rule && earlier.message == *message
        };
        if together[..number].iter().any(is_same) {
            again(other)
        } else {
            format!("{}[{rule}] too: {}", severity.name(), say(other))
        }
    });
    further.collect()
}

fn more_of(rule: &str) -> Message<'static> {
    Level::NOTE.with_name("more").message(more(rule))
}

/// The consequence of a finding, without the advice after it.
fn consequence(located: &Located) -> &str {
    let brief = located.finding.brief.as_str();
    brief.split_once(';').map_or(brief, |(before, _)| before)
}

/// The one change that helps, and how `--fix` handles the finding.
fn help(located: &Located) -> Option<String> {
    let finding = &located.finding;
    let change = match finding.remedies.first() {
        Some(proposal) => proposal.remedy.change.to_owned(),
        None => Some(finding.change()).filter(|change| !change.is_empty())?,
    };
    Some(match &located.by_fix {
        Some(by_fix) => format!("{change}; {by_fix}"),
        None => change,
    })
}

/// The lines at fault; with `context`, also the lines they refer to.
fn snippets(located: &Located, context: bool, width: usize) -> Vec<Element<'_>> {
    let snippets: Vec<Element<'_>> = located
        .excerpts
        .iter()
        .filter_map(|lines| excerpt(lines, context, width))
        .map(Element::from)
        .collect();
    match &located.place {
        Some(place) if snippets.is_empty() => vec![snippet(place, width).into()],
        _ => snippets,
    }
}

/// The marked lines, with the lines between them folded.
fn excerpt(excerpt: &Excerpt, context: bool, width: usize) -> Option<Snippet<'_, Annotation<'_>>> {
    let marks = excerpt.marks.iter().filter(|mark| context || mark.is_fault);
    let mut source = String::new();
    let mut annotations = Vec::new();
    let first = marks.clone().next()?;
    let mut window = Window::around(&first.line.text, first.line.column, width);
    source.push_str(&window.text);
    let (mut line, mut start) = (first.line.number, 0);
    for mark in marks {
        let number = mark.line.number;
        if number > line {
            for _ in line + 1..number {
                source.push('\n');
                // A single line between two marked lines is shown.
                if number == line + 2 {
                    source.push_str(&Window::around(&mark.before, 1, width).text);
                }
            }
            source.push('\n');
            (line, start) = (number, source.len());
            window = Window::around(&mark.line.text, mark.line.column, width);
            source.push_str(&window.text);
        }
        let Some(span) = window.span(&mark.line) else {
            continue;
        };
        let kind = if mark.is_fault { AnnotationKind::Primary } else { AnnotationKind::Context };
        let span = start + span.start..start + span.end;
        annotations.push(kind.span(span).label(mark.label.as_str()));
    }
    Some(
        Snippet::source(source)
            .line_start(first.line.number)
            .path(excerpt.file.as_str())
            .annotations(annotations),
    )
}

/// The part of a line that fits in the reader's window.
struct Window {
    text: String,
    /// The number of characters that were cut off before it, minus one for the ellipsis.
    cut: usize,
}

impl Window {
    /// The part of `line` around the character `column`, counted from 1.
    fn around(line: &str, column: usize, width: usize) -> Self {
        const BEFORE: usize = 20;
        let cut = match column.saturating_sub(1) {
            at if at + BEFORE > width => at.saturating_sub(BEFORE),
            _ => 0,
        };
        let mut rest = line.chars().skip(cut);
        let mut text = String::from(if cut > 0 { "…" } else { "" });
        text.extend(rest.by_ref().take(width));
        if rest.next().is_some() {
            text.push('…');
        }
        Self { text, cut: cut.saturating_sub(1) }
    }

    /// The byte range of the columns of the line; `None` if it was cut off.
    fn span(&self, line: &Line) -> Option<Range<usize>> {
        let start = line.column.checked_sub(self.cut)?;
        let span = byte_of(&self.text, start)..byte_of(&self.text, line.end_column - self.cut);
        (span.start < self.text.len()).then_some(span)
    }
}

/// The byte offset of the character `column` of a line, counted from 1.
fn byte_of(line: &str, column: usize) -> usize {
    line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at)
}

/// The waiting pods, the reason, and the command that ends the wait.
fn stuck_now(stuck: &Stuck, style: Style) -> Group<'_> {
    let case = &stuck.case;
    let name = if case.passes { "waits" } else { "stuck" };
    let title = format!("{}: {}", words::claim(case), case.title);
    let mut group =
        Group::with_title(Level::ERROR.with_name(name).primary_title(title).id(case.cause));
    group = group.element(note(&words::waiting(case), style));
    group = group.element(note(&case.explanation, style));
    group = group.elements(owner_notes(stuck.owner.as_ref(), style));
    group.elements(case.safest().into_iter().flat_map(|step| match &step.command {
        Some(command) => {
            let verb = if step.purpose == Purpose::Before { "first" } else { "run" };
            let run = Level::HELP.message(format!("{verb}: {command}"));
            vec![run, note(&format!("costs: {}", step.text), style)]
        }
        None => vec![note(&step.text, style)],
    }))
}

/// The owner of the object, and the command that shows what to change there, on its own line for
/// copying.
fn owner_notes(owner: Option<&Owner>, style: Style) -> Vec<Message<'static>> {
    let Some(owner) = owner else {
        return Vec::new();
    };
    let written = note(&format!("written by {owner}"), style);
    let command = owner.command.iter();
    let look = command.map(|command| Level::HELP.message(format!("look at: {command}")));
    once(written).chain(look).collect()
}

/// Prints the sentences below a title, if there are any.
fn list(title: &str, sentences: &[String], style: Style, out: &mut dyn Write) -> io::Result<()> {
    if sentences.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}:")?;
    for sentence in sentences {
        let text = wrapped(sentence, style.width).replace('\n', "\n    ");
        writeln!(out, "  {text}")?;
    }
    writeln!(out)
}

/// The findings on one object, at least one, with all details.
fn block<'r>(together: &[(Severity, &'r Located)], style: Style, said: &mut Said<'r>) -> Group<'r> {
    let settled = &mut said.settled;
    let (_, first) = together[0];
    let finding = &first.finding;
    let title = format!("{}: {}", finding.object, finding.brief);
    let mut group = at_fault(together[0], title, true, style);
    group = group.element(note(settled_once(message(first), settled), style));
    let also = others(together, |located| settled_once(message(located), settled));
    group = group.elements(also.iter().map(|sentence| note(sentence, style)));
    group = group.elements(owner_notes(first.owner.as_ref(), style));
    let names = remedy_names(together.iter().map(|(_, located)| *located));
    if names.is_empty() {
        return group.element(more_of(finding.rule));
    }
    let help = format!("remedies: {}", names.join(", "));
    group = group.element(Level::HELP.message(help));
    let by_fix = first.by_fix.as_deref();
    group = group.elements(by_fix.map(|text| Level::HELP.message(wrapped(text, style.width))));
    group = group.element(more_of(finding.rule));
    let command = first.command.as_ref();
    group.elements(command.map(|command| Level::HELP.message(format!("run: {command}"))))
}

/// The note about the other charts and kustomizations that include the line.
fn elsewhere(located: &Located) -> Option<String> {
    let templates = located.also.iter().filter_map(|(_, place)| place.template.clone());
    let named = some(templates.collect());
    (!named.is_empty()).then(|| format!("the same line in the output of {named}"))
}

/// The message without the sentence about settling an assumption, if that was printed before.
fn settled_once<'m>(message: &'m str, settled: &mut bool) -> &'m str {
    let Some((before, _)) = message.split_once(SETTLE) else {
        return message;
    };
    if std::mem::replace(settled, true) { before.trim_end() } else { message }
}

/// The note for a finding that has the same text as an earlier one.
fn again(located: &Located) -> String {
    match located.template() {
        Some(template) => format!("the same finding in the output of {template}"),
        None => "the same again".to_owned(),
    }
}

/// The finding's sentences without the object, which the title names.
fn message(located: &Located) -> &str {
    let finding = &located.finding;
    let object = format!("{}: ", finding.object);
    finding.message.strip_prefix(&object).unwrap_or(&finding.message)
}

/// The names of the remedies of the findings, each once.
fn remedy_names<'l>(located: impl Iterator<Item = &'l Located>) -> Vec<&'static str> {
    let mut names = Vec::new();
    for proposal in located.flat_map(|located| &located.finding.remedies) {
        if !names.contains(&proposal.remedy.name) {
            names.push(proposal.remedy.name);
        }
    }
    names
}

/// Prints the cost of each remedy, once for the whole report.
fn remedies(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let named = remedy_names(report.reported().map(|(_, located)| located));
    let used: Vec<String> = REMEDIES
        .iter()
        .filter(|remedy| named.contains(&remedy.name))
        .map(|remedy| format!("{}: {}", remedy.name, remedy.cost))
        .collect();
    list("Remedies", &used, style, out)
}

const fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    }
}

fn snippet(place: &Place, width: usize) -> Snippet<'_, Annotation<'_>> {
    let line = &place.line;
    let window = Window::around(&line.text, line.column, width);
    let span = window.span(line);
    Snippet::source(window.text)
        .line_start(line.number)
        .path(place.file.as_str())
        .annotations(span.map(|span| AnnotationKind::Primary.span(span)))
}

fn origin(place: &Place) -> Origin<'_> {
    Origin::path(place.file.as_str()).line(place.line.number).char_column(place.line.column)
}

/// Wraps the text to lines that fit, including the frame around it.
fn wrapped(text: &str, width: Width) -> String {
    const FRAME: usize = 16;
    folded(text, width.characters().saturating_sub(FRAME).max(40))
}

/// Wraps a title to lines that fit in a window, after its level and rule.
fn titled(text: &str, rule: &str, width: Width) -> String {
    const LEAST: usize = 24;
    let before = "warning[]: ".len() + rule.len();
    match width {
        Width::OfPipe => text.to_owned(),
        Width::OfWindow(width) => folded(text, width.saturating_sub(before).max(LEAST)),
    }
}
