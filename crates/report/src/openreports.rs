//! Findings as `Report` objects of openreports.io/v1alpha1, one per namespace, for `kubectl apply`
//! and for programs that read such objects.
//!
//! They contain only violations, and only as many as etcd accepts in one object.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Report, Severity, safe};
use engine::rules::Outcome;
use engine::verdict::Finding;

/// The name of the object in each namespace, and of the source of its results.
const NAME: &str = "multi-attach-guard";

/// The most results of one object. With long names and messages they are about 1 MB; etcd takes
/// 1.5 MiB.
const MOST: usize = 500;

/// The most characters in a message.
const LONGEST: usize = 1000;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut namespaces: BTreeMap<Option<&str>, Vec<(Severity, &Finding)>> = BTreeMap::new();
    for (severity, located) in report.reported() {
        let namespace = located.finding.object.namespace.as_deref();
        namespaces.entry(namespace).or_default().push((severity, &located.finding));
    }
    let at = report.origin.as_ref().map(|origin| origin.at);
    let items: Vec<Value> =
        namespaces.iter().map(|(namespace, findings)| object(*namespace, findings, at)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    out.write_all(safe::json(&list)?.as_bytes())
}

/// The object for the findings of a namespace.
fn object(
    namespace: Option<&str>,
    findings: &[(Severity, &Finding)],
    at: Option<Timestamp>,
) -> Value {
    let mut metadata = json!({"name": NAME, "labels": {"app.kubernetes.io/managed-by": NAME}});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    let fail = findings.iter().filter(|(severity, _)| *severity == Severity::Error).count();
    let results: Vec<Value> =
        findings.iter().take(MOST).map(|finding| result(*finding, at)).collect();
    json!({
        "apiVersion": "openreports.io/v1alpha1",
        "kind": "Report",
        "metadata": metadata,
        "source": NAME,
        "configuration": {"limits": {"maxResults": MOST, "statusFilter": ["fail", "warn"]}},
        "summary": {"pass": 0, "fail": fail, "warn": findings.len() - fail, "error": 0, "skip": 0},
        "results": results,
    })
}

fn result((severity, finding): (Severity, &Finding), at: Option<Timestamp>) -> Value {
    let remedies: Vec<&str> =
        finding.remedies.iter().map(|proposal| proposal.remedy.name).collect();
    let mut result = json!({
        "source": NAME,
        "policy": finding.rule,
        "category": "Storage",
        "severity": match finding.outcome {
            Outcome::DataLoss => "critical",
            Outcome::Deadlock | Outcome::Stuck | Outcome::Refused => "high",
            Outcome::Delay => "medium",
            Outcome::Unknown => "low",
        },
        "result": match severity { Severity::Error => "fail", Severity::Warning => "warn" },
        "scored": true,
        "resources": [finding.object],
        "message": finding.message.chars().take(LONGEST).collect::<String>(),
        "properties": {
            "outcome": finding.outcome,
            "certainty": finding.certainty,
            "fieldPath": finding.field_path,
            "volumes": finding.volumes.join(", "),
            "remedies": remedies.join(", "),
        },
    });
    if let Some(at) = at {
        result["timestamp"] = json!({"seconds": at.as_second(), "nanos": 0});
    }
    result
}
