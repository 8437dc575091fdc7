//! Reports as workflow commands of GitHub Actions.

use std::io::{self, Write};

use super::{Place, Report, words};

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for unread in &report.unread {
        let mut properties = Properties::default();
        if let Some(path) = &unread.path {
            properties.add("file", &path);
            if let Some((line, column)) = unread.at {
                properties.add("line", &line);
                properties.add("col", &column);
            }
        }
        properties.add("title", &"multi-attach-guard");
        properties.write("error", &unread.message, out)?;
    }
    for (severity, located) in report.reported() {
        let mut properties = Properties::default();
        properties.place(located.place.as_ref());
        properties.add("title", &located.finding.rule);
        properties.write(severity.name(), &located.finding.message, out)?;
    }
    for (reason, located) in report.suppressed() {
        let mut properties = Properties::default();
        properties.place(located.place.as_ref());
        properties.add("title", &located.finding.rule);
        let message = format!("{}: suppressed: {reason}", located.finding.object);
        properties.write("notice", &message, out)?;
    }
    for notice in &report.notices {
        let mut properties = Properties::default();
        properties.place(notice.place.as_ref());
        properties.add("title", &"multi-attach-guard");
        properties.write("notice", &notice.sentence(), out)?;
    }
    for sentence in words::unopened(report) {
        let mut properties = Properties::default();
        properties.add("title", &"multi-attach-guard");
        properties.write("notice", &sentence, out)?;
    }
    Ok(())
}

#[derive(Default)]
struct Properties(Vec<String>);

impl Properties {
    fn add(&mut self, name: &str, value: &dyn ToString) {
        let value = escaped(&value.to_string())
            .replace(':', "%3A")
            .replace(',', "%2C");
        self.0.push(format!("{name}={value}"));
    }

    /// The line in a rendered template says nothing about the template's own.
    fn place(&mut self, place: Option<&Place>) {
        let Some(place) = place else { return };
        if let Some(path) = &place.path {
            self.add("file", &path);
            self.add("line", &place.line);
            self.add("col", &place.column);
            self.add("endColumn", &place.end_column);
        } else if let Some(template) = &place.template {
            self.add("file", &template);
        }
    }

    fn write(self, command: &str, message: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "::{command} {}::{}",
            self.0.join(","),
            escaped(message)
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}
