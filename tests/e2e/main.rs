//! Tests the answers of the real API server with the real guard, as the real kubectl prints them:
//! every kind of object, every operation, every verdict.
//!
//! The cases are data, in `cases/*.yaml` (see [`case`]); cases that do not fit that form are
//! functions. All share one control plane and one guard. Each has its own namespace, whose name
//! chooses the policy (see [`guarded_cluster`]).
//!
//! `cargo test --workspace --test e2e -- StatefulSet` runs the cases with that word in their name.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

mod always_there;
mod case;
#[macro_use]
mod controllers;
mod case_run;
mod guarded_cluster;
#[path = "../harness/mod.rs"]
mod harness;
mod install;
mod month;
mod objects;
#[path = "../printed/mod.rs"]
mod printed;
mod said;
mod stored;
mod ways_out;

use std::sync::Arc;
use std::time::Instant;

use case::{Case, Step};
use engine::rules::{RULES, codes};
use guarded_cluster::{GuardedCluster, Shared};
use harness::Needs;
use harness::table::Table;
use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// The number of cases that run at once by default. They share the CPU, so more would only make
/// each of them slower.
const AT_ONCE: usize = 6;

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let table = Table::default();
    // This test waits for the guard most of the time, so it starts first.
    let mut trials = vec![Trial::test(
        "every case | with policies in the API server | guard there and away",
        always_there::play,
    )];
    let cases = case::all();
    every_rule_is_met(&cases);
    trials.push(Trial::test("docs/evidence/month.md has the tables", || {
        month::is_current(&case::all())
    }));
    let without_controllers = Arc::new(Shared::on(Needs::ApiServer));
    for case in cases {
        let shared = Arc::clone(&without_controllers);
        let [kind, operation] = [&case.kind, &case.operation].map(Clone::clone);
        let verdict = case.verdict();
        let name = [kind, operation, verdict];
        trials.push(trial(&table, trials.len(), name, move || {
            let cluster = shared.cluster()?;
            Some(played(cluster, |_| case_run::play(cluster, &case)))
        }));
    }
    drop(without_controllers);
    let with_controllers = Arc::new(Shared::on(Needs::Controllers));
    for (row, play) in controllers::ROWS.into_iter().chain(ways_out::ROWS) {
        let parts: Vec<String> = row.split(" | ").map(str::to_owned).collect();
        let name = parts.try_into().unwrap();
        let shared = Arc::clone(&with_controllers);
        trials
            .push(trial(&table, trials.len(), name, move || Some(played(shared.cluster()?, play))));
    }
    drop(with_controllers);
    let started = Instant::now();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let count = table.print(&["kind", "operation", "verdict", "result"]);
    println!("{count} cases in {} s\n", started.elapsed().as_secs());
    conclusion.exit();
}

/// Checks that at least one case meets each rule, so that every rule is tested with a real cluster.
fn every_rule_is_met(cases: &[Case]) {
    // The API server refuses these objects before it calls the webhook.
    let refused = [codes::UNSUPPORTED_STRATEGY, codes::IMPOSSIBLE_NAME];
    for rule in RULES.iter().filter(|rule| !refused.contains(&rule.code)) {
        let mentions = |step: &Step| step.expect.mentions(rule.code);
        assert!(
            cases.iter().any(|case| case.steps().any(mentions)),
            "no case meets the rule {}",
            rule.code
        );
    }
}

/// Runs a case, and checks that the guard did not panic.
fn played(
    cluster: &GuardedCluster,
    play: impl FnOnce(&GuardedCluster) -> Result<(), String>,
) -> Result<(), String> {
    let played = play(cluster);
    cluster.guard.nothing_panicked();
    played
}

/// A case as a test. `play` returns `None` if there is no control plane.
fn trial(
    table: &Table,
    place: usize,
    name: [String; 3],
    play: impl FnOnce() -> Option<Result<(), String>> + Send + 'static,
) -> Trial {
    let table = table.clone();
    Trial::ignorable_test(name.join(" | "), move || {
        let Some(played) = play() else {
            return Ok(Completion::ignored_with("there is no control plane to play it on"));
        };
        let result = if played.is_ok() { "ok" } else { "FAILED" };
        let [kind, operation, verdict] = &name;
        table.add(place, &[kind, operation, verdict, result]);
        played.map(|()| Completion::Completed).map_err(Failed::from)
    })
}
