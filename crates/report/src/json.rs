//! Reports as JSON.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::live::{Override, Owner, Stuck};
use super::{Located, Notice, Report, Summary, Unopened, Unread, safe};
use engine::model::Text;
use engine::model::object::ObjectRef;
use engine::policy::Action;
use engine::rules::{Certainty, Outcome};
use engine::verdict::Proposal;

#[derive(Serialize)]
struct Json<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<Cluster<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stuck: &'a [Stuck],
    findings: Vec<Finding<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    overrides: &'a [Override],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    open: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressed: Vec<Finding<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unopened: &'a [Unopened],
    summary: &'a Summary,
}

#[derive(Serialize)]
struct Cluster<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    time: String,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    places: Vec<OverlayPlace<'a>>,
    message: &'a str,
    volumes: &'a [Text],
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_new: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a Owner>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    remedies: &'a [Proposal],
}

/// One of several places of a finding.
#[derive(Serialize)]
struct OverlayPlace<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    template: Option<&'a str>,
}

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let json = Json {
        cluster: report.origin.as_ref().map(|origin| Cluster {
            name: &origin.cluster,
            namespace: origin.namespace.as_deref(),
            time: format!("{:.0}", origin.at),
        }),
        stuck: &report.stuck,
        overrides: &report.overrides,
        open: &report.open,
        findings: report
            .found()
            .map(|(_, located)| finding(located))
            .collect(),
        suppressed: report
            .suppressed()
            .map(|(_, located)| finding(located))
            .collect(),
        notices: report.notices.iter().map(notice).collect(),
        errors: report.unread.iter().map(unread).collect(),
        unopened: &report.unopened,
        summary: &report.summary,
    };
    out.write_all(safe::json(&json)?.as_bytes())
}

fn notice(notice: &Notice) -> Value {
    let place = notice.place.as_ref();
    json!({
        "object": notice.object,
        "file": place.map(|place| &place.file),
        "line": place.map(|place| place.line),
        "message": notice.text,
    })
}

fn unread(unread: &Unread) -> Value {
    json!({
        "file": unread.file,
        "line": unread.at.map(|(line, _)| line),
        "column": unread.at.map(|(_, column)| column),
        "message": unread.message,
    })
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
        places: places(located),
        message: &finding.message,
        volumes: &finding.volumes,
        reason: finding.suppressed.as_ref().map(ToString::to_string),
        is_new: located.is_new,
        owner: located.owner.as_ref(),
        command: located.command.as_deref(),
        remedies: &finding.remedies,
    }
}

/// Where the finding was made, if at several places.
fn places(located: &Located) -> Vec<OverlayPlace<'_>> {
    let Some(place) = located.place.as_ref().filter(|_| !located.also.is_empty()) else {
        return Vec::new();
    };
    let also = located.also.iter().map(|(object, place)| (object, place));
    std::iter::once((&located.finding.object, place))
        .chain(also)
        .map(|(object, place)| OverlayPlace {
            namespace: object.namespace.as_deref(),
            template: place.template.as_deref(),
        })
        .collect()
}
