//! Reports as workflow commands of GitHub Actions.

use std::io::{self, Write};

use super::{Notice, Place, Report, Unread, words};

/// The title of messages that are not from a rule.
const TITLE: &str = "multi-attach-guard";

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for unread in &report.unread {
        command(out, "error", of_unread(unread), TITLE, &unread.message)?;
    }
    let failing = report.must_be_complete.then_some("error");
    for notice in &report.incomplete {
        note(failing.unwrap_or("notice"), notice, out)?;
    }
    for (severity, located) in report.reported() {
        let (name, finding) = (severity.name(), &located.finding);
        let properties = of(located.place.as_ref());
        command(out, name, properties, finding.rule, &finding.message)?;
    }
    for (reason, located) in report.suppressed() {
        let (properties, finding) = (of(located.place.as_ref()), &located.finding);
        let message = format!("{}: suppressed: {reason}", finding.object);
        command(out, "notice", properties, finding.rule, &message)?;
    }
    for notice in &report.notices {
        note("notice", notice, out)?;
    }
    for sentence in words::not_judged(report) {
        command(out, failing.unwrap_or("warning"), Vec::new(), TITLE, &sentence)?;
    }
    Ok(())
}

fn note(name: &str, notice: &Notice, out: &mut dyn Write) -> io::Result<()> {
    command(out, name, of(notice.place.as_ref()), TITLE, &notice.sentence())
}

/// The names and values before the message of a command.
type Properties = Vec<(&'static str, String)>;

/// A place without a path gives no line: lines of a rendered template are not those of the template
/// file.
fn of(place: Option<&Place>) -> Properties {
    let Some(place) = place else {
        return Vec::new();
    };
    match (&place.path, &place.template) {
        (Some(path), _) => vec![
            ("file", path.clone()),
            ("line", place.line.number.to_string()),
            ("col", place.line.column.to_string()),
            ("endColumn", place.line.end_column.to_string()),
        ],
        (None, Some(template)) => vec![("file", template.clone())],
        (None, None) => Vec::new(),
    }
}

fn of_unread(unread: &Unread) -> Properties {
    let Some(path) = &unread.path else {
        return Vec::new();
    };
    let mut properties = vec![("file", path.clone())];
    if let Some((line, column)) = unread.at {
        properties.extend([("line", line.to_string()), ("col", column.to_string())]);
    }
    properties
}

fn command(
    out: &mut dyn Write,
    name: &str,
    properties: Properties,
    title: &str,
    message: &str,
) -> io::Result<()> {
    let properties: Vec<String> = properties
        .into_iter()
        .chain([("title", title.to_owned())])
        .map(|(key, value)| {
            format!("{key}={}", escaped(&value).replace(':', "%3A").replace(',', "%2C"))
        })
        .collect();
    writeln!(out, "::{name} {}::{}", properties.join(","), escaped(message))
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}
