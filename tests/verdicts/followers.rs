//! Tests many workloads that follow one by pod affinity. The cases with few followers are in
//! `cases.yaml`.

use engine::verdict::{Mode, Verdict};
use serde_json::{Value, json};

use super::cluster::{self, Snapshot};
use super::judge;
use super::shorthand::Shorthand;

fn follower(name: &str, leader: &str) -> Value {
    json!({"kind": "CronJob", "name": name, "uses": ["data"], "beside": {"app": leader}})
}

fn leader(name: &str) -> Value {
    json!({"kind": "Deployment", "name": name, "uses": ["data"], "strategy": "Recreate"})
}

/// Judges the object beside the others, within the work budget of one judgement.
fn beside(others: &[Value], object: Value) -> Verdict {
    let once = ["ReadWriteOnce"];
    let snapshot: Snapshot = serde_json::from_value(json!({
        "claims": {"data": {"modes": once, "volume": once}}, "also": others,
    }))
    .unwrap();
    let object: Shorthand = serde_json::from_value(object).unwrap();
    let manifest = cluster::manifest(&object);
    let verdict = judge(&manifest, None, &snapshot, "", Mode::Judge);
    assert!(!verdict.too_complex, "{verdict:?}");
    verdict
}

#[test]
fn a_thousand_follow_one() {
    for count in [10, 100, 1000] {
        let mut all: Vec<Value> =
            (0..count).map(|number| follower(&format!("f{number}"), "api")).collect();
        // The last object may be the leader or another follower.
        let of_leader = beside(&all, leader("api"));
        assert!(of_leader.findings.is_empty(), "{of_leader:?}");
        all.push(leader("api"));
        let of_follower = beside(&all, follower("last", "api"));
        assert!(of_follower.findings.is_empty(), "{of_follower:?}");
        // A workload that follows none is told to follow the same workload as the others; the
        // message names few of them.
        let apart = json!({"kind": "CronJob", "name": "apart", "uses": ["data"]});
        let verdict = beside(&all, apart);
        let [finding] = &verdict.findings[..] else { panic!("{verdict:?}") };
        assert!(finding.message.contains("pods with app=api"), "{}", finding.message);
        assert!(finding.message.len() < 1200, "{}", finding.message);
    }
}
