//! Lists the violations in the cluster: one Report object a namespace.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

use engine::model::Text;
use engine::snapshot::View;
use engine::verdict::{EffectivePolicy, Finding};
use jiff::Timestamp;
use serde_json::Value;
use source::informer::Informer;
use tokio::task::yield_now;

use super::kept_objects::{KeptObjects, Kind, Writer};
use crate::cli::audit::members::{Live, Members};
use report::{Severity, openreports};

pub(super) const KIND: Kind = Kind {
    group: "openreports.io",
    kind: "Report",
    plural: "reports",
    name: openreports::NAME,
    fields: &["configuration", "results", "source", "summary"],
    condition: "reports",
    ready: "The Report objects list the violations in the cluster.",
    guide: "docs/operations.md says what --reports needs.",
};

/// Objects judged before others get their turns: the snapshot does not change meanwhile.
const AT_ONCE: usize = 64;

/// Writes until the program ends; without a writer there is nothing to do.
pub(super) async fn follow(writer: Option<Writer>) -> Infallible {
    let live = writer.as_ref().and_then(|it| Some((it, it.view.live()?)));
    let Some((writer, live)) = live else {
        return std::future::pending().await;
    };
    let metrics = writer.metrics.reports.clone();
    let objects = KeptObjects::new(&KIND, writer.client.clone(), metrics);
    objects
        .keep(live, &writer.health, || wanted(writer, live))
        .await
}

/// The objects that the cluster should have, by namespace.
async fn wanted(writer: &Writer, live: &Informer) -> HashMap<String, Value> {
    let effective = writer.effective.load_full();
    let now = Live {
        document: None,
        now: Timestamp::now(),
    };
    let members = live.look(|view| Members::of(view.cluster()));
    let mut found: BTreeMap<Text, Vec<Finding>> = BTreeMap::new();
    let mut first = 0;
    while first < members.len() {
        let numbers = first..members.len().min(first + AT_ONCE);
        live.look(|view| {
            for number in numbers.clone() {
                let violations = violations(&members, number, &now, view, &effective);
                if let Some(namespace) = &members[number].reference.namespace
                    && !violations.is_empty()
                {
                    let of_namespace = found.entry(namespace.clone()).or_default();
                    of_namespace.extend(violations);
                }
            }
        });
        first = numbers.end;
        yield_now().await;
    }
    let too_large = found.values().filter(|it| it.len() > openreports::MOST);
    writer.metrics.reports.set_too_large(too_large.count());
    let objects = found.iter().map(|(namespace, findings)| {
        let findings: Vec<&Finding> = findings.iter().collect();
        let object = openreports::object(Some(namespace), &findings, None);
        (namespace.to_string(), object)
    });
    objects.collect()
}

/// What is found for the object of that number, and not ignored.
fn violations(
    members: &Members,
    number: usize,
    now: &Live<'_>,
    view: View<'_>,
    effective: &EffectivePolicy,
) -> Vec<Finding> {
    let verdict = members.verdict(number, now, view.cluster(), effective);
    let findings = verdict.findings.into_iter();
    findings
        .filter(|it| Severity::of(it.action).is_some())
        .map(|it| members[number].qualified(it))
        .collect()
}
