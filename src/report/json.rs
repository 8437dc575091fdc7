//! Reports as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::{Located, Report, Summary, safe};
use engine::model::object::ObjectRef;
use engine::policy::Action;
use engine::rules::{Certainty, Outcome};
use engine::verdict::Proposal;

#[derive(Serialize)]
struct Json<'a> {
    findings: Vec<Finding<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressed: Vec<Finding<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<Notice<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Unread<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unopened: Vec<Unopened<'a>>,
    summary: &'a Summary,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding<'a> {
    rule: &'a str,
    outcome: Outcome,
    action: Action,
    certainty: Certainty,
    object: &'a ObjectRef,
    field_path: &'a str,
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<&'a str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_new: Option<bool>,
    remedies: &'a [Proposal],
}

#[derive(Serialize)]
struct Notice<'a> {
    object: Option<&'a ObjectRef>,
    file: Option<&'a str>,
    line: Option<usize>,
    message: &'a str,
}

#[derive(Serialize)]
struct Unopened<'a> {
    kind: &'a str,
    path: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct Unread<'a> {
    file: &'a str,
    line: Option<usize>,
    column: Option<usize>,
    message: &'a str,
}

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let json = Json {
        findings: report
            .found()
            .map(|(_, located)| finding(located))
            .collect(),
        suppressed: report
            .suppressed()
            .map(|(_, located)| finding(located))
            .collect(),
        notices: report
            .notices
            .iter()
            .map(|notice| Notice {
                object: notice.object.as_ref(),
                file: notice.place.as_ref().map(|place| place.file.as_str()),
                line: notice.place.as_ref().map(|place| place.line),
                message: &notice.text,
            })
            .collect(),
        errors: report
            .unread
            .iter()
            .map(|unread| Unread {
                file: &unread.file,
                line: unread.at.map(|(line, _)| line),
                column: unread.at.map(|(_, column)| column),
                message: &unread.message,
            })
            .collect(),
        unopened: report
            .unopened
            .iter()
            .map(|unopened| Unopened {
                kind: &unopened.what,
                path: &unopened.path,
                reason: &unopened.reason,
            })
            .collect(),
        summary: &report.summary,
    };
    out.write_all(safe::json(&json)?.as_bytes())
}

fn finding(located: &Located) -> Finding<'_> {
    let finding = &located.finding;
    let place = located.place.as_ref();
    Finding {
        rule: finding.rule,
        outcome: finding.outcome,
        action: finding.action,
        certainty: finding.certainty,
        object: &finding.object,
        field_path: &finding.field_path,
        file: place.map(|place| place.file.as_str()),
        line: place.map(|place| place.line),
        column: place.map(|place| place.column),
        template: place.and_then(|place| place.template.as_deref()),
        message: &finding.message,
        reason: finding.suppressed.as_ref().map(ToString::to_string),
        is_new: located.is_new,
        remedies: &finding.remedies,
    }
}
