//! Reports as one page.

mod picture;

use std::io::{self, Write};

use maud::{Markup, html};

use super::page::{self, Heading};
use super::{Located, Place, Report, Severity, safe, words};

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let reported: Vec<(Severity, &Located)> = report.reported().collect();
    let heading = Heading {
        title: "Volumes at risk",
        extent: &extent(report),
        summary: &words::summary(&report.summary),
    };
    let content = html! {
        (counts(report, &reported))
        (findings(&reported))
        (asides(report))
    };
    page::write(&heading, &content, out)
}

fn extent(report: &Report) -> String {
    let summary = &report.summary;
    match (summary.deny + summary.fix, summary.warn) {
        (0, 0) => "no findings".to_owned(),
        (errors, warnings) => words::severities(errors, warnings),
    }
}

/// How many findings there are, by rule and, in a cluster, by namespace.
fn counts(report: &Report, reported: &[(Severity, &Located)]) -> Markup {
    let rules = words::by_rule(report);
    let namespaces = by_namespace(reported);
    html! {
        @if !rules.is_empty() {
            div.counts {
                (table("By rule", "Rule", rules.iter().map(|(rule, errors, warnings)| {
                    (html! { code { (rule) } }, *errors, *warnings)
                })))
                @if report.summary.cluster && namespaces.len() > 1 {
                    (table("By namespace", "Namespace", namespaces.iter().map(|(name, errors, warnings)| {
                        (html! { a href=(format!("#{}", anchor(name))) { (name) } }, *errors, *warnings)
                    })))
                }
            }
        }
    }
}

/// The namespaces in the order of their findings, with their errors and warnings.
fn by_namespace<'r>(reported: &[(Severity, &'r Located)]) -> Vec<(&'r str, usize, usize)> {
    let mut namespaces: Vec<(&str, usize, usize)> = Vec::new();
    for (severity, located) in reported {
        let name = namespace(located);
        if namespaces.last().is_none_or(|(last, _, _)| *last != name) {
            namespaces.push((name, 0, 0));
        }
        if let Some((_, errors, warnings)) = namespaces.last_mut() {
            match severity {
                Severity::Error => *errors += 1,
                Severity::Warning => *warnings += 1,
            }
        }
    }
    namespaces
}

fn namespace(located: &Located) -> &str {
    located
        .finding
        .object
        .namespace
        .as_deref()
        .unwrap_or_default()
}

/// The name of the place at which a namespace's findings begin.
fn anchor(namespace: &str) -> String {
    format!("namespace-{namespace}")
}

fn table(title: &str, what: &str, rows: impl Iterator<Item = (Markup, usize, usize)>) -> Markup {
    html! {
        section {
            h2 { (title) }
            table {
                thead { tr {
                    th scope="col" { (what) }
                    th.number scope="col" { "Errors" }
                    th.number scope="col" { "Warnings" }
                } }
                tbody {
                    @for (name, errors, warnings) in rows {
                        tr {
                            th scope="row" { (name) }
                            td.number { (errors) }
                            td.number { (warnings) }
                        }
                    }
                }
            }
        }
    }
}

/// The findings one after the other; a reader can go to the first of each namespace.
fn findings(reported: &[(Severity, &Located)]) -> Markup {
    let mut last = None;
    html! {
        @for (severity, located) in reported {
            @if last.replace(namespace(located)) != Some(namespace(located)) {
                a id=(anchor(namespace(located))) {}
            }
            (finding(*severity, located))
        }
    }
}

fn finding(severity: Severity, located: &Located) -> Markup {
    let finding = &located.finding;
    html! {
        article class=(severity.name()) {
            h2 {
                span.severity { (severity.name()) } " "
                (finding.object)
            }
            p.brief { code { (finding.rule) } " · " (finding.brief) }
            p { (prose(&finding.message)) }
            (place(located.place.as_ref()))
            (picture::of(located))
            (remedy(located))
        }
    }
}

/// Sentences, with what stands between backticks as code.
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
                (place.file) ":" (place.line) ":" (place.column)
                @if let Some(template) = &place.template { ", rendered from " (template) }
            }
        }
    }
}

/// The remedy that is tried first, as a diff, and what the others cost.
fn remedy(located: &Located) -> Markup {
    let remedies = &located.finding.remedies;
    html! {
        @for (number, proposal) in remedies.iter().enumerate() {
            @if number == 0 {
                h3 { "Remedy: " code { (proposal.remedy.name) } }
                p { (proposal.remedy.cost) }
                (diff(located))
                (picture::with(located, proposal.remedy.name))
            } @else {
                @if number == 1 { h3 { "Other remedies" } }
                p { code { (proposal.remedy.name) } ": " (proposal.remedy.cost) }
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

/// What else there is to say.
fn asides(report: &Report) -> Markup {
    let suppressed: Vec<_> = report.suppressed().collect();
    html! {
        @if !suppressed.is_empty() {
            section {
                h2 { "Suppressed" }
                ul {
                    @for (reason, located) in suppressed {
                        li { code { (located.finding.rule) } " on " (located.finding.object) ": " (reason) }
                    }
                }
            }
        }
        @if !report.notices.is_empty() {
            section {
                h2 { "Notices" }
                ul { @for notice in &report.notices { li { (notice.sentence()) } } }
            }
        }
        @if !report.unopened.is_empty() {
            section {
                h2 { "Not looked into" }
                ul { @for sentence in words::unopened(report) { li { (sentence) } } }
            }
        }
        @if !report.unread.is_empty() {
            section {
                h2 { "Could not be read" }
                ul { @for unread in &report.unread { li { (unread.file) ": " (unread.message) } } }
            }
        }
    }
}
