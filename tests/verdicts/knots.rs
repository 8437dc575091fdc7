//! What is too much to judge is said to be so, in place of a verdict.

#[path = "../../benches/shared/mod.rs"]
mod shared;

use engine::model::object::{Object, ObjectRef};
use engine::model::workload::WorkloadKind;
use engine::policy::Action;
use engine::rules::{Outcome, codes};
use engine::snapshot::Snapshot;
use engine::verdict::{Mode, Review, Verdict, evaluate};
use serde_json::json;

use super::{Documents, in_effect};
use shared::knots::{Knot, Lot};

/// Judges the knot's object as an update that changes `changed`.
fn judge(knot: &Knot, cluster: &Snapshot, changed: &str, policy: &str) -> Verdict {
    let Object::Workload(workload) = &knot.judged else {
        unreachable!("knots are of workloads")
    };
    let reference = ObjectRef {
        api_version: "apps/v1".into(),
        kind: workload.kind.name().into(),
        namespace: Some("shop".into()),
        name: workload.metadata.name.clone(),
    };
    let old = json!({});
    let new = json!({ changed: {"template": "another"} });
    let review = Review {
        object: &knot.judged,
        old: Some(&knot.judged),
        reference: &reference,
        scaled: None,
        document: &Documents {
            object: &new,
            old: Some(&old),
            requester: None,
            deleted_at: None,
        },
        mode: Mode::Judge,
    };
    evaluate(&review, cluster.view(), &in_effect(policy))
}

#[test]
fn what_is_too_much_to_judge_is_unknown_and_said_to_be_so() {
    const STRICT: &str = "defaults: {outcomes: {unknown: deny}}";
    let mut lot = Lot::new(7);
    let (knot, cluster) = std::iter::repeat_with(|| {
        let mut knot = Knot::draw(&mut lot, &[500]);
        let mut cluster = Snapshot::complete();
        for object in knot.objects.drain(..) {
            cluster.apply(object);
        }
        (knot, cluster)
    })
    .take(50)
    .filter(|(knot, _)| {
        matches!(&knot.judged, Object::Workload(it) if it.kind == WorkloadKind::Deployment)
    })
    .find(|(knot, cluster)| judge(knot, cluster, "spec", "").too_complex)
    .expect("one of many is too much");
    for (changed, policy, action) in [
        ("spec", "", Action::Warn),
        ("spec", STRICT, Action::Deny),
        // No pods are replaced, so it brings nothing about.
        ("metadata", STRICT, Action::Warn),
    ] {
        let verdict = judge(&knot, &cluster, changed, policy);
        let [finding] = &verdict.findings[..] else {
            panic!("not one finding: {verdict:?}")
        };
        assert_eq!(finding.rule, codes::UNRESOLVED_CLAIM);
        assert_eq!(finding.outcome, Outcome::Unknown);
        assert_eq!(finding.action, action, "{changed} {policy}");
        assert!(finding.warning().contains("too much to judge"));
        assert!(
            finding.message.contains("takes more than"),
            "{}",
            finding.message
        );
    }
}
