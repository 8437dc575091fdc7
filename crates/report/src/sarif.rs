//! Reports as SARIF 2.1.0 (OASIS standard, 27 March 2020).

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Fix, Located, Notice, Place, Report, Severity, Unread, safe, words};
use engine::rules::RULES;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let is_shown = |located: &&Located| {
        let finding = &located.finding;
        Severity::of(finding.action).is_some() || finding.suppressed.is_some()
    };
    let results = report.findings.iter().filter(is_shown).map(result);
    // Appendix I: after a notification of this level, the results cannot be assumed to be complete.
    let not_judged = words::not_judged(report)
        .into_iter()
        .map(|sentence| notification("error", &sentence, None));
    let unread: Vec<Value> = report.unread.iter().map(unread).chain(not_judged).collect();
    let is_failed = report.must_be_complete && !report.is_complete();
    let notices: Vec<Value> = report.incomplete.iter().chain(&report.notices).map(notice).collect();
    let sarif = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "multi-attach-guard",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules(),
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": report.unread.is_empty() && !is_failed,
                "toolExecutionNotifications": unread,
                "toolConfigurationNotifications": notices,
            }],
            "results": results.collect::<Vec<_>>(),
        }],
    });
    out.write_all(safe::json(&sarif)?.as_bytes())
}

/// The text without links: `[words](target)` is a link in a message (section 3.11.6).
fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains("](") {
        return text.into();
    }
    text.replace('[', "\\[").replace(']', "\\]").into()
}

fn rules() -> Vec<Value> {
    RULES
        .iter()
        .map(|rule| {
            let summary = rule.summary();
            json!({
                "id": rule.code,
                "shortDescription": {"text": summary},
                "help": {"text": summary, "markdown": rule.documentation()},
                "helpUri": super::rule_page(rule.code),
            })
        })
        .collect()
}

fn result(located: &Located) -> Value {
    let finding = &located.finding;
    let level = Severity::of(finding.action).map_or("note", Severity::name);
    let mut location = json!({
        "logicalLocations": [{
            "name": finding.object.name,
            "fullyQualifiedName": finding.object.to_string(),
            "kind": "resource",
        }],
    });
    if let Some(physical) = located.place.as_ref().and_then(physical) {
        location["physicalLocation"] = physical;
    }
    let mut result = json!({
        "ruleId": finding.rule,
        "level": level,
        "message": {"text": plain(&finding.message)},
        "locations": [location],
        // The fingerprint has no line, so a finding keeps its identity when lines move.
        "partialFingerprints": {"objectFieldRule/v1": format!("{} {} {}", finding.rule, finding.object, finding.field_path)},
        "properties": {
            "outcome": finding.outcome,
            "certainty": finding.certainty,
            "action": finding.action,
            "fieldPath": finding.field_path,
            "remedies": finding.remedies,
        },
    });
    if let Some(index) = RULES.iter().position(|rule| rule.code == finding.rule) {
        result["ruleIndex"] = index.into();
    }
    let changed = located.place.as_ref().zip(located.fix.as_ref());
    if let Some(fix) = changed.and_then(fix) {
        result["fixes"] = json!([fix]);
    }
    if let Some(is_new) = located.is_new {
        result["baselineState"] = if is_new { "new" } else { "unchanged" }.into();
    }
    if let Some(suppressed) = &finding.suppressed {
        let reason = suppressed.to_string();
        result["suppressions"] = json!([{"kind": "external", "justification": reason}]);
    }
    result
}

/// The change by the first remedy, as a replacement of whole lines.
fn fix((place, fix): (&Place, &Fix)) -> Option<Value> {
    let path = place.path.as_deref()?;
    let end = fix.line + fix.removed.len();
    Some(json!({
        "description": {"text": format!("Remedy {}", fix.remedy)},
        "artifactChanges": [{
            "artifactLocation": artifact(path),
            "replacements": [{
                "deletedRegion": {
                    "startLine": fix.line, "startColumn": 1,
                    "endLine": end, "endColumn": 1,
                },
                "insertedContent": {"text": fix.added.concat()},
            }],
        }],
    }))
}

/// The physical location. Lines of a rendered template are not those of the template file, so a
/// document from standard input refers to its template as a whole.
fn physical(place: &Place) -> Option<Value> {
    let Some(path) = &place.path else {
        let template = place.template.as_deref()?;
        return Some(json!({"artifactLocation": artifact(template)}));
    };
    Some(json!({
        "artifactLocation": artifact(path),
        "region": {
            "startLine": place.line.number,
            "startColumn": place.line.column,
            "endColumn": place.line.end_column,
            "snippet": {"text": place.line.text},
        },
    }))
}

/// A message of the program at a place.
fn notification(level: &str, text: &str, physical: Option<Value>) -> Value {
    let mut notification = json!({"level": level, "message": {"text": plain(text)}});
    if let Some(physical) = physical {
        notification["locations"] = json!([{"physicalLocation": physical}]);
    }
    notification
}

fn notice(notice: &Notice) -> Value {
    let physical = notice.place.as_ref().and_then(physical);
    notification("note", &notice.sentence(), physical)
}

fn unread(unread: &Unread) -> Value {
    let physical = unread.path.as_ref().map(|path| {
        let mut physical = json!({"artifactLocation": artifact(path)});
        if let Some((line, column)) = unread.at {
            physical["region"] = json!({"startLine": line, "startColumn": column});
        }
        physical
    });
    notification("error", &unread.message, physical)
}

fn artifact(path: &str) -> Value {
    json!({"uri": uri(path), "uriBaseId": "%SRCROOT%"})
}

/// Encodes a path as a relative URI reference (RFC 3986, section 3.3).
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}
