//! Reports as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Cause, Located, NotJudged, Notice, Report, Unread, safe, words};

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let cluster = report.origin.as_ref().map(|origin| {
        let time = format!("{:.0}", origin.at);
        let json = json!({"name": origin.cluster, "namespace": origin.namespace, "time": time});
        without_empty(json, &[])
    });
    let found = report.found().map(|(_, located)| finding(located));
    let suppressed = report.suppressed().map(|(_, located)| finding(located));
    let incomplete = report.incomplete.iter().map(|about| {
        let mut json = notice(about);
        json["incomplete"] = true.into();
        json
    });
    let json = json!({
        "cluster": cluster,
        "stuck": report.stuck,
        "findings": found.collect::<Vec<_>>(),
        "overrides": report.overrides,
        "open": report.open,
        "suppressed": suppressed.collect::<Vec<_>>(),
        "notices": incomplete.chain(report.notices.iter().map(notice)).collect::<Vec<_>>(),
        "errors": report.unread.iter().map(unread).collect::<Vec<_>>(),
        "notJudged": report.not_judged,
        "unopened": unopened(report),
        "summary": summary(report)?,
    });
    out.write_all(safe::json(&without_empty(json, &["findings"]))?.as_bytes())
}

/// The charts, kustomizations and releases among everything that was not judged, except those that
/// the user does not want rendered, with the keys of 0.1.0.
fn unopened(report: &Report) -> Vec<Value> {
    of_rendering(report)
        .filter(|one| one.cause != Cause::NotWanted)
        .map(|one| json!({"kind": one.what, "path": one.place, "reason": one.reason}))
        .collect()
}

fn of_rendering(report: &Report) -> impl Iterator<Item = &NotJudged> {
    report.not_judged.iter().filter(|one| one.cause.is_of_rendering())
}

/// The counts, with those of everything that was not judged.
fn summary(report: &Report) -> io::Result<Value> {
    let mut summary = serde_json::to_value(&report.summary)?;
    let count = |cause| report.not_judged.iter().filter(|one| one.cause == cause).count();
    summary["complete"] = report.is_complete().into();
    summary["unopened"] = json!(words::kinds(of_rendering(report)));
    summary["templates"] = count(Cause::Template).into();
    summary["links"] = count(Cause::Link).into();
    Ok(summary)
}

/// The object without the fields that are null or empty lists; those in `kept` stay.
fn without_empty(mut object: Value, kept: &[&str]) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, value| {
            let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            !is_empty || kept.contains(&name.as_str())
        });
    }
    object
}

fn notice(notice: &Notice) -> Value {
    let place = notice.place.as_ref();
    json!({
        "object": notice.object,
        "file": place.map(|place| &place.file),
        "line": place.map(|place| place.line.number),
        "message": notice.text,
    })
}

fn unread(unread: &Unread) -> Value {
    let (line, column) = unread.at.unzip();
    json!({
        "file": unread.file,
        "line": line,
        "column": column,
        "message": unread.message,
    })
}

fn finding(located: &Located) -> Value {
    let finding = &located.finding;
    let place = located.place.as_ref();
    let json = json!({
        "rule": finding.rule,
        "outcome": finding.outcome,
        "action": finding.action,
        "certainty": finding.certainty,
        "object": finding.object,
        "fieldPath": finding.field_path,
        "file": place.map(|place| &place.file),
        "line": place.map(|place| place.line.number),
        "column": place.map(|place| place.line.column),
        "template": place.map(|place| &place.template),
        "places": places(located),
        "message": finding.message,
        "volumes": finding.volumes,
        "reason": finding.suppressed.as_ref().map(ToString::to_string),
        "isNew": located.is_new,
        "owner": located.owner,
        "command": located.command,
        "remedies": finding.remedies,
    });
    without_empty(json, &["file", "line", "column", "volumes", "remedies"])
}

/// All places of the finding, if there are several.
fn places(located: &Located) -> Vec<Value> {
    let Some(place) = located.place.as_ref().filter(|_| !located.also.is_empty()) else {
        return Vec::new();
    };
    std::iter::once((&located.finding.object, place))
        .chain(located.also.iter().map(|(object, other)| (object, other)))
        .map(|(object, place)| {
            let json = json!({"namespace": object.namespace, "template": place.template});
            without_empty(json, &["template"])
        })
        .collect()
}
