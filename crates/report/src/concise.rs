//! Reports with one line for each finding, in the form `file:line:column:` that editors and
//! compilers share.

use std::io::{self, Write};

use super::{Located, Notice, Place, Report, Severity, safe, words};

pub(super) fn write(report: &Report, summary: bool, out: &mut dyn Write) -> io::Result<()> {
    if !summary {
        for stuck in report.stuck_now() {
            let case = &stuck.case;
            let (cause, claim, title) = (case.cause, words::claim(case), case.title);
            writeln!(out, "stuck[{cause}] {claim}: {title}")?;
        }
        for notice in &report.incomplete {
            writeln!(out, "{}", note(notice))?;
        }
        for (severity, located) in report.reported() {
            writeln!(out, "{}", line(severity, located))?;
        }
        for (reason, located) in report.suppressed() {
            let finding = &located.finding;
            let (rule, object) = (finding.rule, &finding.object);
            let place = at(located.place.as_ref());
            writeln!(out, "{place}suppressed[{rule}] {object}: {reason}")?;
        }
        for notice in &report.notices {
            writeln!(out, "{}", note(notice))?;
        }
        for exception in &report.overrides {
            writeln!(out, "override {exception}")?;
        }
        for open in &report.open {
            writeln!(out, "note {open}")?;
        }
        for sentence in words::not_judged(report) {
            writeln!(out, "{sentence}")?;
        }
    }
    writeln!(out, "{}", words::summary(report))
}

fn note(notice: &Notice) -> String {
    format!("{}note {}", at(notice.place.as_ref()), notice.sentence())
}

/// A finding on one line.
pub(super) fn line(severity: Severity, located: &Located) -> String {
    let (place, severity) = (at(located.place.as_ref()), severity.name());
    let finding = &located.finding;
    let (rule, object, brief) = (finding.rule, &finding.object, &finding.brief);
    format!("{place}{severity}[{rule}] {object}: {brief}")
}

pub(super) fn at(place: Option<&Place>) -> String {
    place.map_or_else(String::new, |place| {
        // The result is made safe again, because a file may be called ":".
        let Place { file, line, .. } = place;
        let at = format!("{file}:{}:{}: ", line.number, line.column);
        safe::line(&at).into_owned()
    })
}
