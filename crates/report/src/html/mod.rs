//! Reports as one HTML page.

mod picture;

use std::io::{self, Write};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::live::{Owner, Stuck};
use super::words::Section;
use super::{Located, Notice, Place, Report, Severity, safe, words};

/// Colours have a contrast of 4.5 to 1 or more in both schemes (WCAG 2.2, 1.4.3), and colour is
/// never the only sign of a meaning.
const STYLE: &str = include_str!("../page.css");

/// The page loads nothing, and a script that a text brought into it would not run.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Writes a complete page that is safe to print, because it may be shown in the log of a pipeline.
/// It has no script and needs no network, and it can be printed and read by screen readers.
pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Volumes at risk: " (extent(report)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Volumes at risk" }
                    @if let Some(origin) = &report.origin {
                        p.origin {
                            "Cluster " (origin.cluster)
                            @if let Some(namespace) = &origin.namespace { ", namespace " (namespace) }
                            ", " (format!("{:.0}", origin.at))
                        }
                    }
                    p.summary { (words::summary(report)) }
                }
                main {
                    (counts(report))
                    (incomplete(report))
                    @for section in words::sections(report) { (self::section(&section)) }
                    (overrides(report))
                    (asides(report))
                }
                footer {
                    p { "Made by multi-attach-guard " (env!("CARGO_PKG_VERSION")) "." }
                }
            }
        }
    };
    writeln!(out, "{}", safe::lines(&page.into_string()))
}

/// The pictures, the remedy and the full text of each finding.
pub(super) fn details(report: &Report) -> Markup {
    html! {
        @for (_, located) in report.reported() {
            (picture::of(located))
            (remedy(located, &mut Vec::new()))
            details.long {
                summary { "In full" }
                p { (prose(&located.finding.message)) }
            }
        }
    }
}

/// The number of findings in a word or two; it follows the title in the window's name.
fn extent(report: &Report) -> String {
    let summary = &report.summary;
    match (summary.deny + summary.fix, summary.warn) {
        (0, 0) if report.is_complete() => "no findings".to_owned(),
        (0, 0) => "not everything was judged".to_owned(),
        (errors, warnings) => words::severities(errors, warnings),
    }
}

/// The number of findings by rule and, in a cluster, by namespace.
fn counts(report: &Report) -> Markup {
    let rules = words::by_rule(report);
    let namespaces = if report.summary.cluster { words::by_namespace(report) } else { Vec::new() };
    html! {
        @if !rules.is_empty() || !namespaces.is_empty() {
            div.counts {
                (table("By rule", &["Rule", "Errors", "Warnings"], rules.iter().map(|rule| {
                    (html! { code { (rule.name) } }, vec![rule.errors, rule.warnings])
                })))
                @if !namespaces.is_empty() {
                    (table("By namespace", &["Namespace", "Stuck", "Errors", "Warnings"], namespaces.iter().map(|namespace| {
                        (html! { a href=(format!("#{}", anchor(namespace.name))) { (namespace.name) } }, vec![namespace.stuck, namespace.errors, namespace.warnings])
                    })))
                }
            }
        }
    }
}

/// The anchor of a namespace's section.
fn anchor(namespace: &str) -> String {
    format!("namespace-{namespace}")
}

fn table(
    title: &str,
    columns: &[&str],
    rows: impl Iterator<Item = (Markup, Vec<usize>)>,
) -> Markup {
    html! {
        section {
            h2 { (title) }
            table {
                thead { tr {
                    @for (number, column) in columns.iter().enumerate() {
                        th.number[number > 0] scope="col" { (column) }
                    }
                } }
                tbody {
                    @for (name, numbers) in rows {
                        tr {
                            th scope="row" { (name) }
                            @for number in numbers { td.number { (number) } }
                        }
                    }
                }
            }
        }
    }
}

/// The section of a namespace, with stuck volumes first, or of all files.
fn section(section: &Section<'_>) -> Markup {
    html! {
        @if section.counts.is_some() || !section.objects.is_empty() {
            section id=[section.counts.map(|counts| anchor(counts.name))] {
                h2 { @match section.counts {
                    Some(counts) => { "Namespace " (counts) },
                    None => "Findings",
                } }
                @for stuck in &section.stuck { (stuck_now(stuck)) }
                @for together in &section.objects { (object(together)) }
            }
        }
    }
}

fn stuck_now(stuck: &Stuck) -> Markup {
    let case = &stuck.case;
    let severity = if case.passes { "warning" } else { "error" };
    html! {
        article class=(severity) {
            h3 {
                span.severity { @if case.passes { "waits" } @else { "stuck now" } } " "
                (words::claim(case))
            }
            p.brief { code { (case.cause) } " · " (case.title) }
            p { (words::waiting(case)) "." }
            p { (prose(&case.explanation)) }
            (owner(stuck.owner.as_ref()))
            @let steps = case.safest();
            @if !steps.is_empty() {
                h4 { "The way out" }
            }
            @for step in steps {
                @if let Some(command) = &step.command {
                    (self::command(command))
                    p { "Costs: " (prose(&step.text)) }
                } @else {
                    p { (prose(&step.text)) }
                }
            }
        }
    }
}

/// One card with all findings on an object, at least one.
fn object(together: &[(Severity, &Located)]) -> Markup {
    let mut shown: Vec<&str> = Vec::new();
    let (gravest, first) = together[0];
    html! {
        article class=(gravest.name()) {
            h3 {
                span.severity { (gravest.name()) } " "
                (first.finding.object)
            }
            (owner(first.owner.as_ref()))
            @for (severity, located) in together {
                @let finding = &located.finding;
                p.brief { code { (finding.rule) } " · " (severity.name()) " · " (finding.brief) }
                p { (prose(&finding.message)) }
                (place(located.place.as_ref()))
                (picture::of(located))
                (remedy(located, &mut shown))
            }
        }
    }
}

fn owner(owner: Option<&Owner>) -> Markup {
    html! {
        @if let Some(owner) = owner {
            p.owner { "Written by " (owner) }
            @if let Some(command) = &owner.command { (self::command(command)) }
        }
    }
}

fn command(command: &str) -> Markup {
    html! { pre.diff { (command) } }
}

/// Sentences, with the text between backticks as code.
fn prose(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (number, part) in parts.into_iter().enumerate() {
            @if number % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn place(place: Option<&Place>) -> Markup {
    html! {
        @if let Some(place) = place {
            p.place {
                (place.file) ":" (place.line.number) ":" (place.line.column)
                @if let Some(template) = &place.template { ", rendered from " (template) }
            }
        }
    }
}

/// The remedy that is tried first, as a diff, and the cost of the others. Each remedy is shown once
/// per object.
fn remedy<'l>(located: &'l Located, shown: &mut Vec<&'l str>) -> Markup {
    let mut remedies = located.finding.remedies.iter().collect::<Vec<_>>();
    remedies.retain(|proposal| !shown.contains(&proposal.remedy.name));
    shown.extend(remedies.iter().map(|proposal| proposal.remedy.name));
    html! {
        @if let Some((first, others)) = remedies.split_first() {
            h4 { "Remedy: " code { (first.remedy.name) } }
            p { (first.remedy.cost) }
            @if located.finding.remedies.first().is_some_and(|proposal| proposal.remedy.name == first.remedy.name) {
                (diff(located))
                @if let Some(command) = &located.command { (self::command(command)) }
            }
            (picture::with(located, first.remedy.name))
            @if !others.is_empty() { h4 { "Other remedies" } }
            @for other in others {
                p { code { (other.remedy.name) } ": " (other.remedy.cost) }
            }
        }
    }
}

fn diff(located: &Located) -> Markup {
    let mut lines: Vec<String> = Vec::new();
    if let Some(fix) = &located.fix {
        let line =
            |sign: &str, text: &String| format!("{sign} {}", text.trim_end_matches(['\n', '\r']));
        lines.extend(fix.removed.iter().map(|text| line("-", text)));
        lines.extend(fix.added.iter().map(|text| line("+", text)));
    } else if let Some(proposal) = located.finding.remedies.first() {
        for operation in &proposal.patch.0 {
            let path = operation.path().to_string();
            let field = path.trim_start_matches('/').replace('/', ".");
            match serde_json::to_value(operation) {
                Ok(json) if json["op"] == "remove" => lines.push(format!("- {field}")),
                Ok(json) => lines.push(format!("+ {field}: {}", json["value"])),
                Err(_) => {}
            }
        }
    }
    html! {
        pre.diff aria-label="The change, lines that go with a minus and lines that come with a plus" {
            @for line in &lines {
                @let line = safe::line(line);
                @if line.starts_with('-') { del { (line) } } @else { ins { (line) } }
                "\n"
            }
        }
    }
}

/// The table of overrides.
fn overrides(report: &Report) -> Markup {
    html! {
        @if !report.overrides.is_empty() {
            section {
                h2 { "Overrides" }
                table {
                    thead { tr { @for column in ["Object", "Sets", "Reason", "Last written", "By", "Until", "Counts"] {
                        th scope="col" { (column) }
                    } } }
                    tbody { @for exception in &report.overrides { tr {
                        th scope="row" { (exception.object) }
                        td { @for (key, value) in &exception.sets { code { (key) "=" (value) } " " } }
                        td { (exception.reason) }
                        td { @match exception.since { Some(since) => (format!("{since:.0}")), None => "not known" } }
                        td { (exception.by.as_deref().unwrap_or("not known")) }
                        td { (exception.until.as_deref().unwrap_or("no end")) }
                        td { @match &exception.ignored { Some(why) => { "no: " (why) }, None => "yes" } }
                    } } }
                }
            }
        }
    }
}

/// The notices about incomplete objects.
pub(super) fn incomplete(report: &Report) -> Markup {
    aside("Incomplete", sentences(&report.incomplete))
}

fn sentences(notices: &[Notice]) -> Vec<Markup> {
    notices.iter().map(|notice| html! { (notice.sentence()) }).collect()
}

/// The contents of the report other than findings.
pub(super) fn asides(report: &Report) -> Markup {
    let listed = |all: &[String]| all.iter().map(|sentence| html! { (sentence) }).collect();
    let suppressed = report.suppressed().map(|(reason, located)| {
        let finding = &located.finding;
        html! { code { (finding.rule) } " on " (finding.object) ": " (reason) }
    });
    let unread = report.unread.iter().map(|unread| html! { (unread.file) ": " (unread.message) });
    html! {
        (aside("Not seen", listed(&report.open)))
        (aside("Suppressed", suppressed.collect()))
        (aside("Notices", sentences(&report.notices)))
        (aside("Not judged", listed(&words::not_judged(report))))
        (aside("Could not be read", unread.collect()))
    }
}

fn aside(title: &str, entries: Vec<Markup>) -> Markup {
    html! {
        @if !entries.is_empty() {
            section {
                h2 { (title) }
                ul { @for entry in entries { li { (entry) } } }
            }
        }
    }
}
