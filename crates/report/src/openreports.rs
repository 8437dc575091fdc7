//! Findings as `Report` objects of openreports.io/v1alpha1, one per namespace, for `kubectl apply`
//! and for programs that read such objects.
//!
//! They contain only violations and everything that was not judged, and only as many results as
//! etcd accepts in one object.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Report, Severity, safe, words};
use engine::rules::Outcome;
use engine::verdict::Finding;

/// The name of the object in each namespace, and of the source of its results.
const NAME: &str = "multi-attach-guard";

/// The category of all results.
const CATEGORY: &str = "Storage";

/// The statuses of results; nothing that passed is written.
const STATUSES: [&str; 4] = ["fail", "warn", "error", "skip"];

/// The most results of one object. With long names and messages they are about 1 MB; etcd takes
/// 1.5 MiB.
const MOST: usize = 500;

/// The most characters in a message.
const LONGEST: usize = 1000;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let at = report.origin.as_ref().map(|origin| origin.at);
    let mut namespaces: BTreeMap<Option<&str>, Vec<Value>> = BTreeMap::new();
    for (severity, located) in report.reported() {
        let namespace = located.finding.object.namespace.as_deref();
        let result = result((severity, &located.finding), at);
        namespaces.entry(namespace).or_default().push(result);
    }
    let status = if report.must_be_complete { "error" } else { "skip" };
    for sentence in words::not_judged(report) {
        let message: String = sentence.chars().take(LONGEST).collect();
        let result = json!({
            "source": NAME,
            "policy": "not-judged",
            "category": CATEGORY,
            "result": status,
            "message": message,
        });
        namespaces.entry(None).or_default().push(result);
    }
    let items: Vec<Value> =
        namespaces.into_iter().map(|(namespace, results)| object(namespace, results)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    out.write_all(safe::json(&list)?.as_bytes())
}

/// The object for the results of a namespace.
fn object(namespace: Option<&str>, mut results: Vec<Value>) -> Value {
    let mut metadata = json!({"name": NAME, "labels": {"app.kubernetes.io/managed-by": NAME}});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    let mut summary = json!({"pass": 0});
    for status in STATUSES {
        summary[status] = results.iter().filter(|result| result["result"] == status).count().into();
    }
    results.truncate(MOST);
    json!({
        "apiVersion": "openreports.io/v1alpha1",
        "kind": "Report",
        "metadata": metadata,
        "source": NAME,
        "configuration": {"limits": {"maxResults": MOST, "statusFilter": STATUSES}},
        "summary": summary,
        "results": results,
    })
}

fn result((severity, finding): (Severity, &Finding), at: Option<Timestamp>) -> Value {
    let remedies: Vec<&str> =
        finding.remedies.iter().map(|proposal| proposal.remedy.name).collect();
    let mut result = json!({
        "source": NAME,
        "policy": finding.rule,
        "category": CATEGORY,
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
