//! Reports as workflow commands of GitHub Actions.

use std::io::{self, Write};

use super::{Place, Report, Unread, words};

/// The title of messages that are not from a rule.
const TITLE: &str = "multi-attach-guard";

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for unread in &report.unread {
        let properties = Properties::of_unread(unread);
        properties.write("error", TITLE, &unread.message, out)?;
    }
    for (severity, located) in report.reported() {
        let (properties, finding) = (Properties::of(located.place.as_ref()), &located.finding);
        properties.write(severity.name(), finding.rule, &finding.message, out)?;
    }
    for (reason, located) in report.suppressed() {
        let (properties, finding) = (Properties::of(located.place.as_ref()), &located.finding);
        let message = format!("{}: suppressed: {reason}", finding.object);
        properties.write("notice", finding.rule, &message, out)?;
    }
    for notice in &report.notices {
        let properties = Properties::of(notice.place.as_ref());
        properties.write("notice", TITLE, &notice.sentence(), out)?;
    }
    for sentence in words::unopened(report) {
        Properties::default().write("notice", TITLE, &sentence, out)?;
    }
    Ok(())
}

#[derive(Default)]
struct Properties(Vec<String>);

impl Properties {
    /// A place without a path gives no line: lines of a rendered template are not those of the
    /// template file.
    fn of(place: Option<&Place>) -> Self {
        let mut properties = Self::default();
        let Some(place) = place else {
            return properties;
        };
        if let Some(path) = &place.path {
            properties.add("file", path);
            properties.add("line", &place.line);
            properties.add("col", &place.column);
            properties.add("endColumn", &place.end_column);
        } else if let Some(template) = &place.template {
            properties.add("file", template);
        }
        properties
    }

    fn of_unread(unread: &Unread) -> Self {
        let mut properties = Self::default();
        if let Some(path) = &unread.path {
            properties.add("file", path);
            if let Some((line, column)) = unread.at {
                properties.add("line", &line);
                properties.add("col", &column);
            }
        }
        properties
    }

    fn add(&mut self, name: &str, value: &dyn ToString) {
        let value = escaped(&value.to_string())
            .replace(':', "%3A")
            .replace(',', "%2C");
        self.0.push(format!("{name}={value}"));
    }

    fn write(
        mut self,
        command: &str,
        title: &str,
        message: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.add("title", &title);
        let (properties, message) = (self.0.join(","), escaped(message));
        writeln!(out, "::{command} {properties}::{message}")
    }
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}
