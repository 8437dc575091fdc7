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

/// A test and its result.
struct Test {
    name: String,
    result: TestResult,
    /// The text that the test prints.
    output: Option<String>,
}

/// The result of a test. `kind` is the attribute `type` of its element.
enum TestResult {
    Passed,
    Skipped { kind: Option<&'static str>, message: String, text: Option<String> },
    Failure { kind: &'static str, message: String, text: String },
    Error { kind: &'static str, message: Option<String>, text: Option<String> },
}

impl Test {
    const fn new(name: String, result: TestResult) -> Self {
        Self { name, result, output: None }
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
        let text = Some(unread.message.clone());
        let result = TestResult::Error { kind: "unreadable", message: None, text };
        suites.entry(&unread.file).or_default().push(Test::new(unread.place(), result));
    }
    for one in &report.not_judged {
        let text = one.command.as_ref().map(|command| format!("Run {command}"));
        let result = not_judged(report, &one.reason, text);
        suites.entry(&one.place).or_default().push(Test::new(one.name(), result));
    }
    let mut reported: BTreeSet<(&str, String)> = BTreeSet::new();
    for notice in &report.incomplete {
        let (file, about) = (file(notice.place.as_ref()), about(notice));
        let result = not_judged(report, &notice.text, None);
        let test = Test::new(format!("{about}: incomplete"), result);
        suites.entry(file).or_default().push(test);
        reported.insert((file, about));
    }
    for located in &report.findings {
        let Some(result) = result(located) else {
            continue;
        };
        let (place, finding) = (located.place.as_ref(), &located.finding);
        let object = finding.object.to_string();
        let mut test = Test::new(format!("{object}: {}", finding.rule), result);
        if Severity::of(finding.action) == Some(Severity::Warning) {
            let (rule, message) = (finding.rule, &finding.message);
            test.output = Some(format!("{}warning: {rule}: {message}", at(place)));
        }
        reported.insert((file(place), object));
        suites.entry(file(place)).or_default().push(test);
    }
    for notice in &report.notices {
        let (file, about) = (file(notice.place.as_ref()), about(notice));
        let mut test = Test::new(format!("{about}: note"), TestResult::Passed);
        test.output = Some(format!("{}note: {}", at(notice.place.as_ref()), notice.text));
        reported.insert((file, about));
        suites.entry(file).or_default().push(test);
    }
    for judged in &report.judged {
        let file = judged.file.as_deref().unwrap_or(CLUSTER);
        let object = judged.object.to_string();
        let tests = suites.entry(file).or_default();
        if !reported.contains(&(file, object.clone())) {
            tests.push(Test::new(object, TestResult::Passed));
        }
    }
    suites
}

fn document(suites: &BTreeMap<&str, Vec<Test>>) -> Markup {
    let count = |tests: &[Test], is_counted: fn(&TestResult) -> bool| {
        tests.iter().filter(|test| is_counted(&test.result)).count()
    };
    let sum = |is_counted| -> usize { suites.values().map(|tests| count(tests, is_counted)).sum() };
    let all = |_: &TestResult| true;
    let skipped = |result: &TestResult| matches!(result, TestResult::Skipped { .. });
    let errors = |result: &TestResult| matches!(result, TestResult::Error { .. });
    let failures = |result: &TestResult| matches!(result, TestResult::Failure { .. });
    let line = PreEscaped("\n");
    html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name="multi-attach-guard" tests=(sum(all)) skipped=(sum(skipped))
            failures=(sum(failures)) errors=(sum(errors)) {
            @for (file, tests) in suites {
                (line)
                testsuite name=(file) tests=(tests.len()) skipped=(count(tests, skipped))
                    failures=(count(tests, failures)) errors=(count(tests, errors)) {
                    @for test in tests {
                        (line)
                        testcase name=(test.name) classname=(file) file=(file) {
                            (element(&test.result))
                            @if let Some(output) = &test.output { system-out { (output) } }
                        }
                    }
                }
            }
        }
        (line)
    }
}

/// The element that stands in a test with that result.
fn element(result: &TestResult) -> Markup {
    html! {
        @match result {
            TestResult::Passed => {}
            TestResult::Skipped { kind, message, text } => {
                skipped message=(message) type=[kind] { @if let Some(text) = text { (text) } }
            }
            TestResult::Failure { kind, message, text } => {
                failure message=(message) type=(kind) { (text) }
            }
            TestResult::Error { kind, message, text } => {
                error message=[message] type=(kind) { @if let Some(text) = text { (text) } }
            }
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

/// The result of a test of something that was not judged, or not completely.
fn not_judged(report: &Report, reason: &str, text: Option<String>) -> TestResult {
    let (kind, message) = ("not-judged", reason.to_owned());
    if report.must_be_complete {
        TestResult::Error { kind, message: Some(message), text }
    } else {
        TestResult::Skipped { kind: Some(kind), message, text }
    }
}

/// The result of a test; `None` for findings that are not reported. A warning passes, and its text
/// is in the output.
fn result(located: &Located) -> Option<TestResult> {
    let finding = &located.finding;
    match (Severity::of(finding.action), &finding.suppressed) {
        (_, None) if located.is_new == Some(false) => {
            let message = "The earlier report has it too.".to_owned();
            Some(TestResult::Skipped { kind: None, message, text: None })
        }
        (Some(Severity::Error), _) => Some(TestResult::Failure {
            kind: finding.rule,
            message: finding.brief.clone(),
            text: format!("{}{}", at(located.place.as_ref()), finding.message),
        }),
        (Some(Severity::Warning), _) => Some(TestResult::Passed),
        (None, Some(reason)) => {
            Some(TestResult::Skipped { kind: None, message: reason.to_string(), text: None })
        }
        (None, None) => None,
    }
}
