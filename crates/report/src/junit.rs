//! Reports as JUnit XML: a file is a suite, a rule on an object is a test.
//!
//! Viewers show only the first failure of a test, so each finding is its own test. An object
//! without findings is one test that passes, or is skipped if the object is incomplete.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report as Tests, TestCase, TestCaseStatus, TestSuite};

use super::concise::at;
use super::{Located, Notice, Place, Report, Severity};

/// The suite of objects that came from no file.
const CLUSTER: &str = "cluster";

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut suites: BTreeMap<&str, Vec<TestCase>> = BTreeMap::new();
    for unread in &report.unread {
        let cases = suites.entry(&unread.file).or_default();
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_type("unreadable");
        status.set_description(unread.message.as_str());
        cases.push(case(unread.place(), &unread.file, status));
    }
    for one in &report.not_judged {
        let mut status = not_judged(report, &one.reason);
        if let Some(command) = &one.command {
            status.set_description(format!("Run {command}"));
        }
        let cases = suites.entry(&one.place).or_default();
        cases.push(case(one.name(), &one.place, status));
    }
    let mut reported: BTreeSet<(&str, String)> = BTreeSet::new();
    for notice in &report.incomplete {
        let (file, about) = (file(notice.place.as_ref()), about(notice));
        let status = not_judged(report, &notice.text);
        suites.entry(file).or_default().push(case(format!("{about}: incomplete"), file, status));
        reported.insert((file, about));
    }
    for located in &report.findings {
        let Some(status) = status(located) else {
            continue;
        };
        let file = file(located.place.as_ref());
        let object = located.finding.object.to_string();
        let name = format!("{object}: {}", located.finding.rule);
        let mut case = case(name, file, status);
        if Severity::of(located.finding.action) == Some(Severity::Warning) {
            let (place, finding) = (at(located.place.as_ref()), &located.finding);
            let text = format!("{place}warning: {}: {}", finding.rule, finding.message);
            case.set_system_out(text);
        }
        reported.insert((file, object));
        suites.entry(file).or_default().push(case);
    }
    for notice in &report.notices {
        let (file, about) = (file(notice.place.as_ref()), about(notice));
        let mut case = case(format!("{about}: note"), file, TestCaseStatus::success());
        let (place, text) = (at(notice.place.as_ref()), &notice.text);
        case.set_system_out(format!("{place}note: {text}"));
        reported.insert((file, about));
        suites.entry(file).or_default().push(case);
    }
    for judged in &report.judged {
        let file = judged.file.as_deref().unwrap_or(CLUSTER);
        let object = judged.object.to_string();
        let cases = suites.entry(file).or_default();
        if !reported.contains(&(file, object.clone())) {
            cases.push(case(object, file, TestCaseStatus::success()));
        }
    }

    let mut tests = Tests::new("multi-attach-guard");
    for (file, cases) in suites {
        let mut suite = TestSuite::new(file);
        suite.add_test_cases(cases);
        tests.add_test_suite(suite);
    }
    let xml = tests.to_string().map_err(io::Error::other)?;
    out.write_all(xml.as_bytes())
}

fn file(place: Option<&Place>) -> &str {
    place.map_or(CLUSTER, |place| place.file.as_str())
}

/// The object, or the policy, that the notice is about.
fn about(notice: &Notice) -> String {
    notice.object.as_ref().map_or_else(|| "policy".to_owned(), ToString::to_string)
}

fn skipped(reason: String) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(reason);
    status
}

/// The result of a test of something that was not judged, or not completely.
fn not_judged(report: &Report, reason: &str) -> TestCaseStatus {
    let mut status = if report.must_be_complete {
        TestCaseStatus::non_success(NonSuccessKind::Error)
    } else {
        TestCaseStatus::skipped()
    };
    status.set_type("not-judged");
    status.set_message(reason);
    status
}

fn case(name: String, file: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(file);
    case.extra.insert("file".into(), file.into());
    case
}

/// The result of a test; `None` for findings that are not reported. A warning passes, and its text
/// is in the output.
fn status(located: &Located) -> Option<TestCaseStatus> {
    let finding = &located.finding;
    match (Severity::of(finding.action), &finding.suppressed) {
        (_, None) if located.is_new == Some(false) => {
            Some(skipped("The earlier report has it too.".to_owned()))
        }
        (Some(Severity::Error), _) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(finding.rule);
            status.set_message(finding.brief.as_str());
            let place = at(located.place.as_ref());
            status.set_description(format!("{place}{}", finding.message));
            Some(status)
        }
        (Some(Severity::Warning), _) => Some(TestCaseStatus::success()),
        (None, Some(reason)) => Some(skipped(reason.to_string())),
        (None, None) => None,
    }
}
