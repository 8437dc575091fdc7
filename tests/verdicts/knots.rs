//! An object that is too complex to judge gets a finding that says so.

#[path = "../../benches/shared/mod.rs"]
mod shared;

use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::model::workload::WorkloadKind;
use engine::policy::Action;
use engine::rules::{Outcome, codes};
use engine::snapshot::Snapshot;
use engine::verdict::{Mode, Review, Verdict, evaluate};
use jiff::Timestamp;
use serde::de::DeserializeSeed;
use serde_json::{Value, json};
use webhook::admission::{Decision, Endpoint, Received};

use super::{Documents, in_effect};
use shared::cluster::SMALL;
use shared::knots::{Knot, Lot};
use shared::reviews::samples;

/// Judges the knot's object as an update that changes `changed`.
fn judge(knot: &Knot, cluster: &Snapshot, changed: &str, policy: &str) -> Verdict {
    let Object::Workload(workload) = &knot.judged else { unreachable!("knots are of workloads") };
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
        document: &Documents { object: &new, old: Some(&old), requester: None, deleted_at: None },
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
        matches!(&knot.judged, Object::Workload(workload) if workload.kind == WorkloadKind::Deployment)
    })
    .find(|(knot, cluster)| judge(knot, cluster, "spec", "").too_complex)
    .expect("one of many is too much");
    for (changed, policy, action) in [
        ("spec", "", Action::Warn),
        ("spec", STRICT, Action::Deny),
        // No pods are replaced, so the update causes nothing.
        ("metadata", STRICT, Action::Warn),
    ] {
        let verdict = judge(&knot, &cluster, changed, policy);
        let [finding] = &verdict.findings[..] else { panic!("not one finding: {verdict:?}") };
        assert_eq!(finding.rule, codes::UNRESOLVED_CLAIM);
        assert_eq!(finding.outcome, Outcome::Unknown);
        assert_eq!(finding.action, action, "{changed} {policy}");
        assert!(finding.warning().contains("too much to judge"));
        assert!(finding.message.contains("takes more than"), "{}", finding.message);
    }
}

/// A cluster with additional tainted nodes, where no pods can run.
fn cluster(tainted_nodes: usize) -> Snapshot {
    let mut cluster = Snapshot::complete();
    for manifest in SMALL.manifests() {
        cluster.apply(manifest.read());
    }
    for number in 0..tainted_nodes {
        let node = json!({
            "metadata": {"name": format!("t{number}"), "labels": {"topology.kubernetes.io/zone": "eu-central-1a"}},
            "spec": {"taints": [{"key": "theirs", "effect": "NoSchedule"}]},
        });
        cluster.apply(ObjectKind::Node.deserialize(node).unwrap());
    }
    cluster
}

/// A review of a Deployment whose rollout never ends.
fn at_fault() -> Value {
    let [_, denied, ..] = samples();
    serde_json::from_str(&denied.body).unwrap()
}

/// The review as an update of `old`.
fn updating(review: &Value, old: &Value) -> Value {
    let mut updating = review.clone();
    updating["request"]["operation"] = "UPDATE".into();
    updating["request"]["oldObject"] = old.clone();
    updating
}

fn answered(review: &Value, cluster: &Snapshot, policy: &str) -> (Decision, bool, String) {
    let body = review.to_string();
    let received = Received::read(body.as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
    let verdict = received.judge(Endpoint::Validate, cluster.view(), &in_effect(policy));
    let answer = received.answer(Endpoint::Validate, &verdict);
    let said = String::from_utf8(answer.body).unwrap();
    (answer.decision, answer.too_complex, said)
}

/// `count` entries, each with its number in place of `@`.
fn many(count: usize, entry: &str) -> Value {
    let entry = |number: usize| serde_json::from_str(&entry.replace('@', &number.to_string()));
    (0..count).map(|number| -> Value { entry(number).unwrap() }).collect()
}

fn not_in(count: usize) -> Value {
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": many(count, "\"v@\"")}]},
    ]}}})
}

#[test]
fn padding_does_not_help() {
    let cluster = cluster(0);
    let pod = |field: &str| format!("/spec/template/spec/{field}");
    let meta = |field: &str| format!("/metadata/{field}");
    let cases = [
        (pod("affinity"), Value::Null),
        (pod("affinity"), not_in(2_000)),
        (pod("tolerations"), many(500, r#"{"key":"k@","operator":"Exists"}"#)),
        (pod("tolerations"), many(1_000, r#"{"operator":"Exists"}"#)),
        (pod("initContainers"), many(2_000, r#"{"name":"c@","env":[{"name":"A"}]}"#)),
        (pod("schedulingGates"), many(5_000, r#"{"name":"g@"}"#)),
        (meta("finalizers"), many(2_000, r#""f/@""#)),
        (meta("ownerReferences"), many(2_000, r#"{"kind":"K","name":"o@"}"#)),
        (meta("managedFields"), many(5_000, r#"{"manager":"m@"}"#)),
    ];
    for (field, padding) in cases {
        let mut review = at_fault();
        let (parent, name) = field.rsplit_once('/').unwrap();
        review["request"]["object"].pointer_mut(parent).unwrap()[name] = padding;
        let (decision, too_complex, said) = answered(&review, &cluster, "");
        assert_eq!(decision, Decision::Denied, "{field}: {said}");
        assert!(!too_complex, "{field}: {said}");
        assert!(said.contains(codes::ROLLING_UPDATE_OVERLAP), "{field}: {said}");
    }
}

/// The comparison of the object with 1000 equal nodes exceeds the work budget.
#[test]
fn what_is_larger_than_any_honest_object_and_too_much_to_judge_is_denied() {
    const WARN: &str = "defaults: {too-complex: warn}";
    const FORBID: &str = "defaults: {overrides: forbid}";
    let cluster = cluster(1_000);
    let mut review = at_fault();
    let object = &mut review["request"]["object"];
    object["spec"]["template"]["spec"]["affinity"] = not_in(2_000);
    let mut lenient = review.clone();
    lenient["request"]["object"]["metadata"]["annotations"] = json!({
        "multi-attach-guard.dev/action": "warn",
        "multi-attach-guard.dev/reason": "r",
    });
    let updated = |change: &dyn Fn(&mut Value)| {
        let mut old = review["request"]["object"].clone();
        change(&mut old);
        updating(&review, &old)
    };
    let relabelled = updated(&|old| old["metadata"]["labels"]["was"] = "old".into());
    let rolled_out =
        updated(&|old| old["spec"]["template"]["metadata"]["labels"]["was"] = "old".into());
    let loosened = updated(&|old| old["spec"]["strategy"] = json!({"type": "Recreate"}));
    for (judged, policy, expected) in [
        (&review, "", Decision::Denied),
        (&review, WARN, Decision::Warned),
        (&lenient, "", Decision::Warned),
        (&lenient, FORBID, Decision::Denied),
        (&rolled_out, "", Decision::Denied),
        (&loosened, "", Decision::Denied),
        (&relabelled, "", Decision::Warned),
    ] {
        let (decision, too_complex, said) = answered(judged, &cluster, policy);
        assert_eq!(decision, expected, "{policy}: {said}");
        assert!(too_complex, "{said}");
        assert!(said.contains("unresolved-claim"), "{said}");
    }
}

#[test]
fn lists_that_take_more_memory_than_is_read_are_denied() {
    let mut review = at_fault();
    let spec = &mut review["request"]["object"]["spec"]["template"]["spec"];
    spec["topologySpreadConstraints"] = many(5_000, r#"{"topologyKey":"@"}"#);
    let long = &review["request"]["object"];
    let mut was_labelled = long.clone();
    was_labelled["metadata"]["labels"]["was"] = "old".into();
    let relabelled = updating(&review, &was_labelled);
    let back = updating(&at_fault(), long);
    let mut recreated = back.clone();
    recreated["request"]["object"]["spec"]["strategy"] = json!({"type": "Recreate"});
    let cluster = cluster(0);
    for (judged, expected, is_too_long, part) in [
        (&review, Decision::Denied, true, "longer than the guard reads"),
        (&relabelled, Decision::Warned, true, "too much to judge"),
        // A repair of such an object is judged normally.
        (&back, Decision::Denied, false, codes::ROLLING_UPDATE_OVERLAP),
        (&recreated, Decision::Allowed, false, ""),
    ] {
        let (decision, too_complex, said) = answered(judged, &cluster, "");
        assert_eq!((decision, too_complex), (expected, is_too_long), "{said:.1000}");
        assert!(said.contains(part), "{said:.1000}");
    }
}
