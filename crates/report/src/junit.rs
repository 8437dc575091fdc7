//! Reports as JUnit XML: a file is a suite, a rule on an object is a test.
//!
//! Viewers show only the first failure of a test, so each finding is its own test. An object
//! without findings is one test that passes, or is skipped if the object is incomplete.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use maud::{Markup, PreEscaped, html};

use super::concise::at;
use super::{Located, Notice, Place, Report, Severity};

/// The suite of objects that came from no file.
const CLUSTER: &str = "cluster";

/// A test, its result, and what the element of the result says.
struct Test {
    name: String,
    result: TestResult,
    /// The attribute `type`.
    kind: Option<&'static str>,
    message: Option<String>,
    text: String,
    /// The text that the test prints.
    output: Option<String>,
}

/// The result of a test; all but the first are elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TestResult {
    Passed,
    Skipped,
    Failure,
    Error,
}

impl Test {
    const fn passed(name: String) -> Self {
        let result = TestResult::Passed;
        Self { name, result, kind: None, message: None, text: String::new(), output: None }
    }
}

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let xml = document(&suites(report));
    out.write_all(xml.into_string().as_bytes())
}

/// The tests of each file.
fn suites(report: &Report) -> BTreeMap<&str, Vec<Test>> {
    let mut suites: BTreeMap<&str, Vec<Test>> = BTreeMap::new();
    for unread in &report.unread {
        let test = Test {
            result: TestResult::Error,
            kind: Some("unreadable"),
            text: unread.message.clone(),
            ..Test::passed(unread.place())
        };
        suites.entry(&unread.file).or_default().push(test);
    }
    for one in &report.not_judged {
        let mut test = not_judged(report, one.name(), &one.reason);
        if let Some(command) = &one.command {
            test.text = format!("Run {command}");
        }
        suites.entry(&one.place).or_default().push(test);
    }
    let mut reported: BTreeSet<(&str, String)> = BTreeSet::new();
    for notice in &report.incomplete {
        let (file, about) = (file(notice.place.as_ref()), about(notice));
        let test = not_judged(report, format!("{about}: incomplete"), &notice.text);
        suites.entry(file).or_default().push(test);
        reported.insert((file, about));
    }
    for located in &report.findings {
        let Some(test) = test(located) else {
            continue;
        };
        let file = located.file().unwrap_or(CLUSTER);
        reported.insert((file, located.finding.object.to_string()));
        suites.entry(file).or_default().push(test);
    }
    for notice in &report.notices {
        let (file, about) = (file(notice.place.as_ref()), about(notice));
        let mut test = Test::passed(format!("{about}: note"));
        test.output = Some(format!("{}note: {}", at(notice.place.as_ref()), notice.text));
        reported.insert((file, about));
        suites.entry(file).or_default().push(test);
    }
    for judged in &report.judged {
        let file = judged.file.as_deref().unwrap_or(CLUSTER);
        let object = judged.object.to_string();
        let tests = suites.entry(file).or_default();
        if !reported.contains(&(file, object.clone())) {
            tests.push(Test::passed(object));
        }
    }
    suites
}

fn document(suites: &BTreeMap<&str, Vec<Test>>) -> Markup {
    use TestResult::{Error, Failure, Skipped};
    let count = |tests: &[Test], result| tests.iter().filter(|test| test.result == result).count();
    let sum = |result| -> usize { suites.values().map(|tests| count(tests, result)).sum() };
    let all: usize = suites.values().map(Vec::len).sum();
    let line = PreEscaped("\n");
    html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name="multi-attach-guard" tests=(all) skipped=(sum(Skipped))
            failures=(sum(Failure)) errors=(sum(Error)) {
            @for (file, tests) in suites {
                (line)
                testsuite name=(file) tests=(tests.len()) skipped=(count(tests, Skipped))
                    failures=(count(tests, Failure)) errors=(count(tests, Error)) {
                    @for test in tests {
                        (line)
                        testcase name=(test.name) classname=(file) file=(file) {
                            (element(test))
                            @if let Some(output) = &test.output { system-out { (output) } }
                        }
                    }
                }
            }
        }
        (line)
    }
}

/// The element that stands in a test with its result.
fn element(test: &Test) -> Markup {
    let Test { kind, message, text, .. } = test;
    html! {
        @match test.result {
            TestResult::Passed => {}
            TestResult::Skipped => { skipped message=[message] type=[kind] { (text) } }
            TestResult::Failure => { failure message=[message] type=[kind] { (text) } }
            TestResult::Error => { error message=[message] type=[kind] { (text) } }
        }
    }
}

fn file(place: Option<&Place>) -> &str {
    place.map_or(CLUSTER, |place| place.file.as_str())
}

/// The object, or the policy, that the notice is about.
fn about(notice: &Notice) -> String {
    notice.object.as_ref().map_or_else(|| "policy".to_owned(), ToString::to_string)
}

/// The test of something that was not judged, or not completely.
fn not_judged(report: &Report, name: String, reason: &str) -> Test {
    let result = if report.must_be_complete { TestResult::Error } else { TestResult::Skipped };
    let (kind, message) = (Some("not-judged"), Some(reason.to_owned()));
    Test { result, kind, message, ..Test::passed(name) }
}

/// The test of a finding; `None` if it is not reported. A warning passes, and its text is in the
/// output.
fn test(located: &Located) -> Option<Test> {
    let finding = &located.finding;
    let (rule, message) = (finding.rule, &finding.message);
    let place = at(located.place.as_ref());
    let severity = Severity::of(finding.action);
    let mut test = Test::passed(format!("{}: {rule}", finding.object));
    if severity == Some(Severity::Warning) {
        test.output = Some(format!("{place}warning: {rule}: {message}"));
    }
    let (result, why) = match (severity, &finding.suppressed) {
        (_, None) if located.is_new == Some(false) => {
            (TestResult::Skipped, "The earlier report has it too.".to_owned())
        }
        (Some(Severity::Error), _) => {
            test.kind = Some(rule);
            test.text = format!("{place}{message}");
            (TestResult::Failure, finding.brief.clone())
        }
        (Some(Severity::Warning), _) => return Some(test),
        (None, suppressed) => (TestResult::Skipped, suppressed.as_ref()?.to_string()),
    };
    Some(Test { result, message: Some(why), ..test })
}
