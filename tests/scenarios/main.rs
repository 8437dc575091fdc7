//! Every row of the table of ground truth, played on a real API server, controller
//! manager and scheduler with simulated nodes.
//!
//! Scenarios mostly wait, so many run at once, each in a namespace and on nodes of
//! its own. The nodes are tainted and the pods tolerate the taint, which keeps
//! scenarios apart for the scheduler and for the guard alike.
//!
//! `cargo test --test scenarios -- S1` plays those whose name contains `S1`.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    reason = "in a test, the panic and its message are the report"
)]

mod engine;
#[path = "../harness/mod.rs"]
mod harness;
mod manifests;
mod observe;
mod outcome;
mod run;
mod scenario;
mod table;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use harness::Needs;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use run::{Played, World, play};
use scenario::{Engine, Scenario};

/// Scenarios at once, when the command line does not say.
const AT_ONCE: usize = 24;

/// What was seen, by the scenario's place in the table.
type Results = Arc<Mutex<BTreeMap<usize, (Scenario, Played)>>>;

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let results = Results::default();
    let trials = table::all()
        .into_iter()
        .enumerate()
        .map(|(place, scenario)| {
            let results = Arc::clone(&results);
            let name = format!("{} {}", scenario.name, scenario.title);
            Trial::ignorable_test(name, move || unguarded(place, scenario, &results))
        });
    let started = Instant::now();
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    print_table(&results, started);
    conclusion.exit();
}

/// The world that scenarios share, or one for a scenario that must be alone.
fn world(alone: bool) -> Option<&'static World> {
    static WORLD: OnceLock<Option<World>> = OnceLock::new();
    if alone {
        let plane = harness::start_control_plane(Needs::Controllers)?;
        return Some(Box::leak(Box::new(World::new(Box::leak(Box::new(plane))))));
    }
    let make = || harness::require_control_plane(Needs::Controllers).map(World::new);
    WORLD.get_or_init(make).as_ref()
}

fn unguarded(place: usize, scenario: Scenario, results: &Results) -> Result<Completion, Failed> {
    let Some(world) = world(scenario.alone) else {
        return Ok(Completion::ignored_with(
            "there is no control plane to play it on",
        ));
    };
    let played = play(world, &scenario).map_err(Failed::from)?;
    let verdict = judge(&scenario, &played);
    results.lock().unwrap().insert(place, (scenario, played));
    verdict
        .map(|()| Completion::Completed)
        .map_err(Failed::from)
}

/// What was seen is what ground truth says, and what the engine says is what was seen.
fn judge(scenario: &Scenario, played: &Played) -> Result<(), String> {
    let Played {
        outcome,
        multi_attach,
        waiting,
        opinion,
        ..
    } = played;
    let allowed = scenario.expected;
    if !allowed.contains(outcome) {
        return Err(format!(
            "Ground truth allows {allowed:?}, but {outcome:?} was observed. Waiting: {waiting:#?}. \
             Multi-Attach events: {multi_attach:#?}."
        ));
    }
    let (verdict, because) = match scenario.engine {
        Engine::Observation => (*outcome, "that was observed"),
        Engine::Not { verdict, because } => (verdict, because),
    };
    if opinion.outcome == verdict {
        return Ok(());
    }
    Err(format!(
        "The engine must say {verdict}, because {because}, but it says {}: {:#?}",
        opinion.outcome, opinion.messages
    ))
}

fn print_table(results: &Results, started: Instant) {
    let results = results.lock().unwrap();
    if results.is_empty() {
        return;
    }
    println!("| scenario | what | without guard | Multi-Attach events | engine | way out took |");
    println!("|---|---|---|---|---|---|");
    for (scenario, played) in results.values() {
        let Scenario { name, title, .. } = scenario;
        let Played {
            outcome,
            multi_attach,
            opinion,
            way_out_took,
            ..
        } = played;
        let way_out = way_out_took.map_or_else(String::new, |it| format!("{} s", it.as_secs()));
        println!(
            "| {name} | {title} | {outcome} | {} | {} | {way_out} |",
            multi_attach.len(),
            opinion.outcome,
        );
    }
    println!(
        "\n{} scenarios in {} s\n",
        results.len(),
        started.elapsed().as_secs()
    );
}
