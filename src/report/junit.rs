//! Reports as JUnit XML: a file is a suite, an object is a test, a finding is a
//! failure.

use std::collections::BTreeMap;
use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use super::{Located, Report, Severity};

/// The suite of objects that came from no file.
const CLUSTER: &str = "cluster";

#[derive(Default)]
struct Suite<'a> {
    cases: BTreeMap<String, Vec<&'a Located>>,
    errors: Vec<(String, &'a str)>,
}

impl Suite<'_> {
    fn failures(&self) -> usize {
        self.cases.values().filter(|found| fails(found)).count()
    }

    fn skipped(&self) -> usize {
        self.cases
            .values()
            .filter(|found| is_skipped(found))
            .count()
    }

    fn tests(&self) -> usize {
        self.cases.len() + self.errors.len()
    }
}

fn fails(found: &[&Located]) -> bool {
    found
        .iter()
        .any(|located| Severity::of(located.finding.action) == Some(Severity::Error))
}

/// Whether all that was found in an object is suppressed.
fn is_skipped(found: &[&Located]) -> bool {
    !found.is_empty()
        && found
            .iter()
            .all(|located| located.finding.suppressed.is_some())
}

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut suites: BTreeMap<&str, Suite<'_>> = BTreeMap::new();
    for judged in &report.judged {
        let file = judged.file.as_deref().unwrap_or(CLUSTER);
        let suite = suites.entry(file).or_default();
        suite.cases.entry(judged.object.to_string()).or_default();
    }
    for located in &report.findings {
        let finding = &located.finding;
        if Severity::of(finding.action).is_none() && finding.suppressed.is_none() {
            continue;
        }
        let place = located.place.as_ref();
        let file = place.map_or(CLUSTER, |place| place.file.as_str());
        let suite = suites.entry(file).or_default();
        let case = suite.cases.entry(finding.object.to_string());
        case.or_default().push(located);
    }
    for unread in &report.unread {
        let name = match unread.at {
            Some((line, column)) => format!("{}:{line}:{column}", unread.file),
            None => unread.file.clone(),
        };
        let suite = suites.entry(&unread.file).or_default();
        suite.errors.push((name, &unread.message));
    }

    let mut xml = Writer::new_with_indent(out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let total = |count: &dyn Fn(&Suite<'_>) -> usize| -> String {
        number(suites.values().map(count).sum())
    };
    open(
        &mut xml,
        "testsuites",
        &[
            ("name", "multi-attach-guard".to_owned()),
            ("tests", total(&|suite| suite.tests())),
            ("failures", total(&|suite| suite.failures())),
            ("errors", total(&|suite| suite.errors.len())),
            ("skipped", total(&|suite| suite.skipped())),
        ],
    )?;
    for (file, suite) in &suites {
        write_suite(&mut xml, file, suite)?;
    }
    close(&mut xml, "testsuites")?;
    writeln!(xml.into_inner())
}

type Xml<'w> = Writer<&'w mut dyn Write>;

fn write_suite(xml: &mut Xml<'_>, file: &str, suite: &Suite<'_>) -> io::Result<()> {
    open(
        xml,
        "testsuite",
        &[
            ("name", file.to_owned()),
            ("tests", number(suite.tests())),
            ("failures", number(suite.failures())),
            ("errors", number(suite.errors.len())),
            ("skipped", number(suite.skipped())),
        ],
    )?;
    for (name, message) in &suite.errors {
        open_case(xml, name, file)?;
        leaf(xml, "error", &[("type", "unreadable".to_owned())], message)?;
        close(xml, "testcase")?;
    }
    for (name, found) in &suite.cases {
        open_case(xml, name, file)?;
        for located in found {
            write_finding(xml, located, is_skipped(found))?;
        }
        close(xml, "testcase")?;
    }
    close(xml, "testsuite")
}

fn write_finding(xml: &mut Xml<'_>, located: &Located, skipped: bool) -> io::Result<()> {
    let finding = &located.finding;
    let place = located.place.as_ref().map_or_else(String::new, |place| {
        format!("{}:{}:{}: ", place.file, place.line, place.column)
    });
    match (Severity::of(finding.action), &finding.suppressed) {
        (Some(Severity::Error), _) => {
            let attributes = [
                ("type", finding.rule.to_owned()),
                ("message", finding.warning.clone()),
            ];
            leaf(
                xml,
                "failure",
                &attributes,
                &format!("{place}{}", finding.message),
            )
        }
        (Some(Severity::Warning), _) => {
            let text = format!("{place}warning: {}: {}", finding.rule, finding.message);
            leaf(xml, "system-out", &[], &text)
        }
        (None, Some(reason)) if skipped => {
            let message = format!("{}: {reason}", finding.rule);
            leaf(xml, "skipped", &[("message", message)], "")
        }
        (None, _) => Ok(()),
    }
}

fn open_case(xml: &mut Xml<'_>, name: &str, file: &str) -> io::Result<()> {
    let attributes = [
        ("name", name.to_owned()),
        ("classname", file.to_owned()),
        ("file", file.to_owned()),
    ];
    open(xml, "testcase", &attributes)
}

fn element<'e>(name: &'e str, attributes: &[(&str, String)]) -> BytesStart<'e> {
    let mut start = BytesStart::new(name);
    for (key, value) in attributes {
        start.push_attribute((*key, permitted(value).as_str()));
    }
    start
}

fn open(xml: &mut Xml<'_>, name: &str, attributes: &[(&str, String)]) -> io::Result<()> {
    xml.write_event(Event::Start(element(name, attributes)))
}

fn close(xml: &mut Xml<'_>, name: &str) -> io::Result<()> {
    xml.write_event(Event::End(BytesEnd::new(name)))
}

fn leaf(
    xml: &mut Xml<'_>,
    name: &str,
    attributes: &[(&str, String)],
    text: &str,
) -> io::Result<()> {
    let start = element(name, attributes);
    if text.is_empty() {
        return xml.write_event(Event::Empty(start));
    }
    xml.write_event(Event::Start(start))?;
    xml.write_event(Event::Text(BytesText::new(&permitted(text))))?;
    close(xml, name)
}

/// XML 1.0 has no way to write most control characters, escaped or not.
fn permitted(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' | '\n' | '\r' => c,
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => '\u{fffd}',
            c => c,
        })
        .collect()
}

fn number(count: usize) -> String {
    count.to_string()
}
