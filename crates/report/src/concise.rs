//! Reports with a line for each finding, in the form `file:line:column:` that
//! editors and compilers share.

use std::io::{self, Write};

use super::{Place, Report, Style, safe, words};

pub(super) fn write(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if !style.summary {
        for stuck in report.stuck_now() {
            let case = &stuck.case;
            writeln!(
                out,
                "stuck[{}] {}: {}",
                case.cause,
                stuck.claim(),
                case.title
            )?;
        }
        for (severity, located) in report.reported() {
            let finding = &located.finding;
            writeln!(
                out,
                "{}{}[{}] {}: {}",
                at(located.place.as_ref()),
                severity.name(),
                finding.rule,
                finding.object,
                finding.brief
            )?;
        }
        for (reason, located) in report.suppressed() {
            let finding = &located.finding;
            writeln!(
                out,
                "{}suppressed[{}] {}: {reason}",
                at(located.place.as_ref()),
                finding.rule,
                finding.object
            )?;
        }
        for notice in &report.notices {
            let place = at(notice.place.as_ref());
            writeln!(out, "{place}warning {}", notice.sentence())?;
        }
        for it in &report.overrides {
            writeln!(out, "override {it}")?;
        }
        for open in &report.open {
            writeln!(out, "warning {open}")?;
        }
        for sentence in words::unopened(report) {
            writeln!(out, "{sentence}")?;
        }
    }
    writeln!(out, "{}", words::summary(&report.summary))
}

fn at(place: Option<&Place>) -> String {
    place.map_or_else(String::new, |place| {
        // Once more: a file may be called ":".
        let at = format!("{}:{}:{}: ", place.file, place.line, place.column);
        safe::line(&at).into_owned()
    })
}
