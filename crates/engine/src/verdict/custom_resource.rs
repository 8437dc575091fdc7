//! What an operator made, judged for whoever applies its custom resource.
//!
//! An operator writes its objects with its own account, so a warning on them reaches a log. Whoever
//! applies the custom resource reads it, and can change the field that the object is made from.

use jiff::Timestamp;
use serde_json::Value;

use super::complexity_limit::WORK_BUDGET;
use super::operators::Operator;
use super::{Document, EffectivePolicy, Finding, Mode, Review, Verdict, evaluate, finding};
use crate::model::object::{Object, ObjectKind};
use crate::model::workload::Workload;
use crate::policy::Action;
use crate::snapshot::{View, WorkBudget};

/// Objects of one custom resource that are judged.
const MOST_OBJECTS: usize = 16;

/// A custom resource of a known operator that is about to be stored.
#[derive(Clone, Copy)]
pub struct CustomResource<'a> {
    /// Its API group.
    pub group: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Whether the request changes the field at a path like `spec.nodeSets[].count`.
    pub changes: &'a dyn Fn(&str) -> bool,
    /// When it is judged.
    pub moment: Option<Timestamp>,
}

/// Judges the objects that the operator made from the custom resource before. A finding is a warning
/// if a field of the custom resource changes what it is about, and the request does not change that
/// field: the operator's own write is judged anyway.
///
/// Objects are recognized by their owner's name. Its uid is not compared, so that what a replaced custom
/// resource left behind speaks for what the operator makes again.
#[must_use]
pub fn evaluate_custom_resource(
    resource: &CustomResource<'_>,
    view: View<'_>,
    effective: &EffectivePolicy,
) -> Verdict {
    let steps = WorkBudget::new(WORK_BUDGET);
    let bounded = view.within(&steps);
    let objects = bounded.workloads_of(resource.namespace, |owner| {
        owner.kind == resource.kind && owner.group == resource.group && owner.name == resource.name
    });
    let mut verdict = Verdict::default();
    for workload in objects.take(MOST_OBJECTS) {
        let Some(operator) = Operator::of(resource.group, resource.kind, workload.kind) else {
            continue;
        };
        if operator.volumes.as_deref().is_some_and(resource.changes) {
            continue;
        }
        for mut finding in judged(workload, resource, view, effective) {
            let field = operator.field(&finding.field_path);
            let Some(field) = field.filter(|field| !(resource.changes)(field)) else {
                continue;
            };
            finding.action = Action::Warn;
            finding.denial = String::new();
            finding.brief = format!(
                "{} {}: {}",
                workload.kind, finding.object.name, finding.brief
            );
            verdict.findings.push(finding);
            let notice = finding::shortened(format!(
                "Set {field} of {} {}, from which its operator makes {} {}.",
                resource.kind, resource.name, workload.kind, workload.metadata.name,
            ));
            if !verdict.notices.contains(&notice) {
                verdict.notices.push(notice);
            }
        }
    }
    verdict
}

/// The findings on an object as it is now that the policy reports.
fn judged(
    workload: &Workload,
    resource: &CustomResource<'_>,
    view: View<'_>,
    effective: &EffectivePolicy,
) -> impl Iterator<Item = Finding> {
    let kind = ObjectKind::Workload(workload.kind);
    let review = Review {
        object: &Object::Workload(workload.clone()),
        old: None,
        reference: &kind.reference(resource.namespace, &workload.metadata.name),
        scaled: None,
        document: &Stored(resource.moment),
        mode: Mode::Judge,
    };
    let findings = evaluate(&review, view, effective).findings.into_iter();
    findings.filter(|finding| finding.action != Action::Ignore)
}

/// An object as the guard knows it, which nobody submits.
struct Stored(Option<Timestamp>);

impl Document for Stored {
    fn object(&self) -> Option<&Value> {
        None
    }

    fn changes_template(&self) -> bool {
        false
    }

    fn moment(&self) -> Option<Timestamp> {
        self.0
    }
}
