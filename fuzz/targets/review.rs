//! The bytes of a review, answered as by `serve`.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::policy::Policy;
use engine::snapshot::Snapshot;
use engine::storage::Catalog;
use engine::verdict::{EffectivePolicy, WARNING_LENGTH};
use jiff::Timestamp;
use json_patch::Patch;
use serde_json::{Value, json};
use source::facts;
use webhook::admission::{Answer, Decision, Endpoint, Received};

/// The facts that `make run` serves, and further facts, so that every rule can fire.
const FACTS: &str = concat!(
    include_str!("../../examples/facts/cluster.yaml"),
    "---\n",
    include_str!("facts.yaml"),
);

/// A policy that repairs whatever can be repaired.
const REPAIRING: &str = "defaults:\n  outcomes: {deadlock: fix, stuck: fix, refused: fix, delay: fix}\n  certainty: {assumed: fix}\n";

static CLUSTER: LazyLock<Snapshot> = LazyLock::new(|| {
    facts::load(&["-".into()], &mut FACTS.as_bytes()).expect("the facts can be read")
});

static POLICIES: LazyLock<[EffectivePolicy; 2]> = LazyLock::new(|| {
    let catalog = Catalog::embedded().expect("the catalog can be read");
    ["", REPAIRING].map(|text| {
        let policy = Policy::parse(text, "policy.yaml").expect("the policy can be read");
        EffectivePolicy::new(policy, catalog)
    })
});

/// The cluster in which reviews are judged.
pub fn cluster() -> &'static Snapshot {
    &CLUSTER
}

/// The built-in policy, and one that repairs.
pub(super) fn policies() -> &'static [EffectivePolicy; 2] {
    &POLICIES
}

/// For any bytes, the answer is a review with a response, or a sentence. It does not depend on the
/// object's place in the JSON, and a repair helps.
pub fn run(bytes: &[u8]) {
    let [built_in, repairing] = &*POLICIES;
    answered(bytes, Endpoint::Validate, built_in);
    if let Some(ways) = both_ways(bytes) {
        // Unreadable reviews are reported with the place, which differs between the two.
        let readable = |answer: &Answer| answer.decision != Decision::Unreadable;
        let [one, other] =
            ways.map(|way| answered(&way, Endpoint::Validate, built_in).filter(readable));
        assert_eq!(one, other);
    }
    let Some(first) = answered(bytes, Endpoint::Mutate, repairing) else {
        return;
    };
    if let (Decision::Patched, Ok(review)) = (first.decision, serde_json::from_slice(bytes)) {
        repaired(&review, &first, repairing);
    }
}

/// The review as serde_json writes it, and again with the objects before their kind. `None` if there
/// is no object to move.
pub(super) fn both_ways(bytes: &[u8]) -> Option<[Vec<u8>; 2]> {
    let mut review: Value = serde_json::from_slice(bytes).ok()?;
    let first = review.to_string().into_bytes();
    let request = review.get_mut("request")?.as_object_mut()?;
    let fields = ["object", "oldObject"].map(|field| request.shift_remove_entry(field));
    if fields.iter().flatten().all(|(_, object)| object.is_null()) {
        return None;
    }
    for (field, object) in fields.into_iter().flatten() {
        request.shift_insert(0, field, object);
    }
    Some([first, review.to_string().into_bytes()])
}

/// The answer to a review, after checking its form. `None` if there can be no answer.
pub fn answered(bytes: &[u8], endpoint: Endpoint, policy: &EffectivePolicy) -> Option<Answer> {
    let received = match Received::read(bytes, Timestamp::UNIX_EPOCH) {
        Ok(received) => received,
        Err(refusal) => {
            let sentence = refusal.to_string();
            assert!(sentence.ends_with('.'), "{sentence}");
            return None;
        }
    };
    let verdict = received.judge(endpoint, cluster().view(), policy);
    let answer = received.answer(endpoint, &verdict);
    let _ = received.submitted();
    well_formed(&answer, bytes);
    Some(answer)
}

/// Checks that the answer matches the review in `bytes`, and that the API server accepts all of it.
fn well_formed(answer: &Answer, bytes: &[u8]) {
    let body: Value = serde_json::from_slice(&answer.body).expect("the answer is JSON");
    assert_eq!(body["apiVersion"], "admission.k8s.io/v1", "{body}");
    assert_eq!(body["kind"], "AdmissionReview", "{body}");
    let response = &body["response"];
    let uid = response["uid"].as_str().expect("there is a uid");
    assert!(!uid.is_empty(), "{body}");
    if let Ok(review) = serde_json::from_slice::<Value>(bytes) {
        assert_eq!(review["request"]["uid"], uid);
    }
    let denied = answer.decision == Decision::Denied;
    assert_eq!(response["allowed"], !denied, "{body}");
    if denied {
        assert_eq!(response["status"]["code"], 403, "{body}");
        let message = response["status"]["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty(), "{body}");
    }
    for warning in response["warnings"].as_array().into_iter().flatten() {
        let warning = warning.as_str().expect("a warning is text");
        // The API server drops a warning that contains a control character, and truncates a long
        // one.
        assert!(!warning.contains(char::is_control), "{warning:?}");
        assert!(warning.chars().count() <= WARNING_LENGTH, "{warning:?}");
        assert!(!warning.is_empty(), "{body}");
    }
    let has_patch = response.get("patch").is_some();
    assert_eq!(has_patch, answer.decision == Decision::Patched, "{body}");
    assert_eq!(has_patch, response.get("patchType").is_some(), "{body}");
}

/// Checks that the patch of `first` fits the object, changes nothing but the remedy, leaves nothing
/// to repair and causes no new message.
fn repaired(review: &Value, first: &Answer, policy: &EffectivePolicy) {
    let body: Value = serde_json::from_slice(&first.body).expect("the answer is JSON");
    let encoded = body["response"]["patch"].as_str().expect("there is a patch");
    let json = STANDARD.decode(encoded).expect("the patch is base64");
    let patch: Patch = serde_json::from_slice(&json).expect("the patch is a JSON patch");

    let mut after = review.clone();
    let object = &mut after["request"]["object"];
    let mut before = object.clone();
    json_patch::patch(object, &patch).expect("the patch fits");
    let mut rest = object.clone();
    for whole in [&mut before, &mut rest] {
        for (parent, field) in [("/spec", "strategy"), ("/spec/template/spec", "affinity")] {
            if let Some(Value::Object(entries)) = whole.pointer_mut(parent) {
                entries.shift_remove(field);
            }
        }
    }
    assert_eq!(before, rest, "the patch changes what no remedy is about: {patch}");

    let second = answered(after.to_string().as_bytes(), Endpoint::Mutate, policy)
        .expect("the repaired review can be read");
    assert!(
        !matches!(second.decision, Decision::Patched | Decision::Denied | Decision::Unreadable),
        "repaired, it is {:?}: {after}",
        second.decision
    );
    for (rule, action) in &second.findings {
        assert!(
            first.findings.iter().any(|(earlier, _)| earlier == rule),
            "the repair brought {rule} about, {action:?}: {after}"
        );
    }
}

/// A review of a Deployment at fault, for tests that need an object to judge.
pub fn at_fault() -> Value {
    let mut review: Value =
        serde_json::from_str(include_str!("../../examples/review.json")).expect("it is JSON");
    review["request"]["object"]["metadata"]["annotations"] = json!({"a": "b"});
    review
}
