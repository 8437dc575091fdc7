//! Updates that make nothing worse are never denied.

use engine::policy::Action;
use engine::verdict::Mode;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::cluster::{self, Snapshot};
use super::{cases, judge};

/// Merge patches that change nothing a hazard depends on, and start no rollout.
fn harmless() -> Vec<Value> {
    vec![
        json!({"metadata": {"labels": {"team": "a"}}}),
        json!({"metadata": {"labels": {"team": null, "tier": "b"}}}),
        json!({"metadata": {"annotations": {"deployment.kubernetes.io/revision": "7"}}}),
        json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}}),
        json!({"metadata": {"finalizers": []}}),
        json!({"metadata": {"finalizers": ["example.com/hold"]}}),
        json!({"metadata": {"managedFields": [{"manager": "kubectl"}]}}),
        json!({"metadata": {"resourceVersion": "42"}}),
        json!({"metadata": {"ownerReferences": []}}),
        json!({"spec": {"revisionHistoryLimit": 3}}),
        json!({"spec": {"progressDeadlineSeconds": 90}}),
        json!({"spec": {"minReadySeconds": 5}}),
        json!({"spec": {"ttlSecondsAfterFinished": 5}}),
        json!({"spec": {"schedule": "0 4 * * *"}}),
        json!({"spec": {"paused": true}}),
        json!({"spec": {"suspend": true}}),
        json!({"spec": {"minReplicas": 1}}),
        json!({"status": {"replicas": 1, "conditions": [{"type": "Progressing", "status": "False"}]}}),
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    ]
}

/// The object after scaling down: these numbers only get smaller.
fn scaled_down(old: &Value, by: i64) -> Value {
    let mut new = old.clone();
    for path in ["/spec/replicas", "/spec/maxReplicas", "/spec/parallelism"] {
        if let Some(number) = new.pointer_mut(path)
            && let Some(count) = number.as_i64()
        {
            *number = json!((count - by).max(0));
        }
    }
    new
}

#[test]
fn an_update_that_leaves_the_hazards_as_they_were_is_never_denied() {
    let seeds: Vec<(String, Snapshot, String, Value)> = cases()
        .into_iter()
        .map(|case| {
            let raw = cluster::manifest(&case.judge);
            (case.name, case.cluster, case.policy, raw)
        })
        .collect();
    let mut runner =
        TestRunner::new(Config { cases: 4000, failure_persistence: None, ..Config::default() });
    let strategy = (
        0..seeds.len(),
        // A quarter of the pairs starts with another number of replicas than the case.
        prop::option::weighted(0.25, 0_i64..5),
        prop::collection::vec(select(harmless()), 0..4),
        0_i64..4,
    );
    let denied_when_new = std::cell::Cell::new(0_usize);
    let pairs = std::cell::Cell::new(0_usize);
    let result = runner.run(&strategy, |(seed, replicas, edits, down)| {
        let (name, cluster, policy, raw) = &seeds[seed];
        let mut old = raw.clone();
        if let Some(replicas) = replicas
            && old.pointer("/spec/template").is_some()
        {
            old["spec"]["replicas"] = json!(replicas);
        }
        let mut new = scaled_down(&old, down);
        for edit in &edits {
            json_patch::merge(&mut new, edit);
        }
        pairs.set(pairs.get() + 1);
        if judge(&new, None, cluster, policy, Mode::Judge).action() == Action::Deny {
            denied_when_new.set(denied_when_new.get() + 1);
        }
        for mode in [Mode::Judge, Mode::Admit] {
            let verdict = judge(&new, Some(&old), cluster, policy, mode);
            let denied: Vec<&str> =
                verdict.with(Action::Deny).map(|finding| finding.message.as_str()).collect();
            // An update that the API server refuses anyway may be denied, with a better message.
            let refused = old.pointer("/spec/strategy/type") == Some(&json!("Recreate"))
                && old
                    .pointer("/spec/strategy/rollingUpdate")
                    .is_some_and(|leftover| !leftover.is_null());
            prop_assert!(
                denied.is_empty() || refused,
                "{name}: {denied:?}\nold: {old}\nnew: {new}"
            );
            prop_assert!(verdict.patch.is_none() || refused, "{name}: patched");
        }
        Ok(())
    });
    println!("{} pairs, {} of them denied had they been new", pairs.get(), denied_when_new.get());
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(
        denied_when_new.get() * 4 > pairs.get(),
        "too few of the pairs have a hazard for the property to mean much"
    );
}
