//! A model of the controllers that decide about a volume's rollouts, explored exhaustively.
//!
//! It is written from what a real control plane was seen to do and from the Kubernetes source, and shares nothing with
//! the engine's rules, so that each can be held against the other.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic, outside of its test functions too"
)]

#[path = "model/configuration.rs"]
mod configuration;
#[path = "model/controllers.rs"]
mod controllers;
#[path = "model/explore.rs"]
mod explore;
#[path = "model/grid.rs"]
mod grid;
#[path = "model/ground_truth.rs"]
mod ground_truth;
#[path = "model/machine.rs"]
mod machine;
#[path = "model/remedies.rs"]
mod remedies;
#[path = "model/scheduler.rs"]
mod scheduler;
#[path = "model/state.rs"]
mod state;
#[path = "model/survey.rs"]
mod survey;

use std::collections::HashSet;
use std::time::Instant;

use configuration::{Access, Configuration, Kind};
use explore::{Outcome, Start, Worst, change, explore};
use remedies::REMEDIES;
use survey::Survey;

#[test]
fn the_model_agrees_with_the_scenarios_seen_on_a_real_control_plane() {
    let (mut states, mut wrong) = (0, Vec::new());
    let rows = ground_truth::rows();
    for (name, configuration, expected) in &rows {
        let worst = explore(configuration);
        println!("{name:44} {:9} {} states", worst.outcome(), worst.states);
        states += worst.states;
        if worst.outcome() != *expected {
            wrong.push(format!(
                "{name}: expected {expected}, the model says {worst:?}"
            ));
        }
    }
    println!("{} scenarios, {states} states", rows.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_model_agrees_with_the_changes_seen_on_a_real_control_plane() {
    for (name, before, after, start, expected) in ground_truth::changes() {
        assert_eq!(change(&before, &after, start), expected, "{name}");
    }
}

#[test]
fn what_must_hold_of_every_configuration_holds_in_the_model() {
    let began = Instant::now();
    let (alone, pairs) = (Survey::of(grid::alone()), Survey::of(grid::pairs()));
    println!(
        "{} configurations, {} distinct, {} states, {:?}",
        alone.asked + pairs.asked,
        alone.iter().count() + pairs.iter().count(),
        alone.states() + pairs.states(),
        began.elapsed()
    );
    let wrong: Vec<String> = (alone.iter().chain(pairs.iter()))
        .filter_map(|(configuration, worst)| {
            Some(format!(
                "{}: {configuration:?}: {worst:?}",
                broken(configuration, worst)?
            ))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of them:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

#[test]
fn every_remedy_keeps_its_promise_in_every_configuration() {
    let distinct: HashSet<Configuration> = grid::alone()
        .filter(|configuration| configuration.volume.access != Access::Shared)
        .map(|configuration| configuration.normal())
        .collect();
    let (mut judged, mut wrong) = (0, Vec::new());
    for (configuration, remedy) in distinct
        .iter()
        .flat_map(|each| REMEDIES.map(|remedy| (each, remedy)))
    {
        if !remedy.applies(configuration) {
            continue;
        }
        let (remedied, promise) = (remedy.applied(configuration), remedy.promise(configuration));
        let mut outcomes = vec![("afterwards", explore(&remedied).outcome(), promise)];
        outcomes.push((
            "while it is put in place",
            change(configuration, &remedied, Start::Well),
            promise,
        ));
        if remedy.keeps_template() && explore(configuration).outcome() == Outcome::Deadlock {
            outcomes.push((
                "put into a hanging rollout",
                change(configuration, &remedied, Start::Trapped),
                Outcome::Delay,
            ));
        }
        judged += outcomes.len();
        for (when, outcome, promise) in outcomes {
            if outcome > promise {
                wrong.push(format!(
                    "{remedy:?} {when}: {outcome} instead of {promise} for {configuration:?}"
                ));
            }
        }
    }
    println!("{judged} promises");
    assert!(
        judged > 0 && wrong.is_empty(),
        "{} of them:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

/// A law that the outcome breaks, if any. Each follows from how the controllers work, whatever the size.
fn broken(configuration: &Configuration, worst: &Worst) -> Option<&'static str> {
    let alone = configuration.workloads.len() == 1;
    let workload = &configuration.workloads[0];
    let all_at_once = match workload.kind {
        Kind::Deployment(strategy) => strategy
            .resolve(workload.replicas)
            .is_none_or(|(_, down)| down == workload.replicas),
        _ => false,
    };
    if !configuration.volume.contended() && worst.wait.is_some() {
        Some("nothing waits for a volume that is never refused")
    } else if alone && all_at_once && worst.outcome() == Outcome::Deadlock {
        Some("a rollout that may take down every old pod ends")
    } else if alone
        && workload.replicas == 1
        && workload.kind == Kind::StatefulSet
        && worst.outcome() > Outcome::None
    {
        Some("a StatefulSet of one deletes its pod before it creates the next")
    } else {
        None
    }
}
