//! A model of the controllers that decide about a volume's rollouts, explored exhaustively, and
//! compared with the engine.
//!
//! It is written from observations on a real control plane and from the Kubernetes source. It
//! shares nothing with the engine's rules, so that model and engine can check each other.
//! `agreement` defines when they agree.
#![allow(clippy::unwrap_used, reason = "a test may panic, outside of its test functions too")]

mod agreement;
mod configuration;
mod controllers;
mod engine;
mod explore;
mod grid;
mod machine;
mod manifests;
mod model;
mod reading;
mod remedies;
mod scheduler;
mod state;
mod survey;

use std::env;
use std::io::Write;
use std::sync::LazyLock;
use std::time::UNIX_EPOCH;

use ::engine::verdict::Mode;
use agreement::{Comparison, said};
use configuration::{Configuration, Kind};
use engine::Engine;
use explore::{Outcome, Start, Worst, change, explore};
use model::Case;
use remedies::Trial;
use survey::{Survey, in_parallel};

/// Every configuration of the grids.
static ASKED: LazyLock<Vec<Configuration>> = LazyLock::new(|| drawn(grid::asked()));

/// The result of exploring them. Each is explored once for all tests.
static SURVEY: LazyLock<Survey> = LazyLock::new(|| Survey::of(&ASKED, agreement::needed));

/// All items or, if `QUICK` is set, a random tenth. `SEED` repeats an earlier choice.
fn drawn<T>(mut all: Vec<T>) -> Vec<T> {
    if env::var_os("QUICK").is_none() {
        return all;
    }
    let given = env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs()));
    log(&format!("A tenth of {}, SEED={seed}", all.len()));
    let mut state = seed;
    all.retain(|_| {
        // The multiplier and increment are Knuth's, for 64 bits.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33).is_multiple_of(10)
    });
    all
}

/// The configurations in which a second node or pod can be refused. In all others the engine is
/// silent.
fn guarded() -> Vec<Configuration> {
    let guarded = ASKED.iter().filter(|configuration| configuration.volume.is_guarded());
    guarded.cloned().collect()
}

/// One in this many configurations is explored both as it is and in its normal form.
const NORMAL_FORMS_TRIED: usize = 401;

#[test]
fn the_model_agrees_with_the_scenarios_seen_on_a_real_control_plane() {
    let (mut states, mut wrong) = (0, Vec::new());
    let cases = model::cases();
    for case in &cases {
        let found = match &case.change {
            None => {
                let worst = explore(&case.configuration);
                states += worst.states;
                Some(worst.outcome())
            }
            Some((after, start)) => change(&case.configuration, after, *start),
        };
        if found.is_none_or(|outcome| !case.seen.contains(&outcome)) {
            let Case { name, seen, .. } = case;
            wrong.push(format!("{name}: seen {seen:?}, the model says {found:?}"));
        }
    }
    log(&format!(
        "{} cases of the ground truth, {} of them wrong, {states} states; the model has no words for {} rows",
        cases.len(),
        wrong.len(),
        model::beyond(),
    ));
    assert!(cases.len() > model::beyond());
    expect_none(&wrong);
}

#[test]
fn what_must_hold_of_every_configuration_holds_in_the_model() {
    log(&format!(
        "{} configurations asked; with those they are compared by {} are distinct, {} states",
        ASKED.len(),
        SURVEY.known.len(),
        SURVEY.known.values().map(|worst| worst.states).sum::<usize>(),
    ));
    let wrong = SURVEY.known.iter().filter_map(|(configuration, worst)| {
        let law = broken(configuration, worst)?;
        Some(format!("{law}: {configuration:?}: {worst:?}"))
    });
    expect_none(&wrong.collect::<Vec<_>>());
}

/// The law that the outcome breaks, if any. Each law follows from how the controllers work, for any
/// size.
fn broken(configuration: &Configuration, worst: &Worst) -> Option<&'static str> {
    let alone = configuration.workloads.len() == 1;
    let workload = &configuration.workloads[0];
    let all_at_once = match workload.kind {
        Kind::Deployment(strategy) => {
            strategy.resolve(workload.replicas).is_none_or(|(_, down)| down == workload.replicas)
        }
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

#[test]
fn the_engine_says_what_the_model_finds_in_every_configuration() {
    let all: Vec<Configuration> = model::cases()
        .into_iter()
        .filter_map(|case| case.change.is_none().then_some(case.configuration))
        // The engine does not know the capacity of nodes.
        .filter(|scenario| scenario.capacity.is_none() && scenario.volume.is_guarded())
        .chain(guarded())
        .collect();
    let compared: Vec<_> = in_parallel(&all, |some| {
        let mut engine = Engine::default();
        some.iter()
            .map(|configuration| {
                let documents = engine.documents(configuration);
                let verdicts = engine.judge(configuration, &documents, Mode::Judge);
                let said: Vec<_> = verdicts.iter().map(said).collect();
                let comparison = agreement::compare(configuration, &said, &SURVEY);
                let wrong = (comparison == Comparison::Differs).then(|| {
                    let worst = SURVEY.worst(configuration);
                    format!("{configuration:?}\nThe model finds {worst:?}; the engine {said:?}")
                });
                (comparison, wrong)
            })
            .collect::<Vec<_>>()
    })
    .into_iter()
    .flatten()
    .collect();
    let count = |wanted| compared.iter().filter(|(comparison, _)| *comparison == wanted).count();
    log(&format!(
        "{} compared with the engine, {} disagreements; {} of them silent on purpose, {} in part, as pods have no place in them even without the volume",
        compared.len(),
        count(Comparison::Differs),
        count(Comparison::Excepted),
        count(Comparison::Unplaceable),
    ));
    assert!(count(Comparison::Agrees) > 0);
    let wrong = compared.iter().filter_map(|(_, wrong)| wrong.clone());
    expect_none(&wrong.collect::<Vec<_>>());
}

#[test]
fn the_engine_says_of_every_update_what_the_model_finds() {
    let moves = drawn(grid::moves());
    let seen = in_parallel(&moves, |some| {
        let mut engine = Engine::default();
        let compared = some.iter().filter_map(|(before, after)| {
            let from_well = change(before, after, Start::Well)?;
            // A new affinity leads pods to waiting pods too.
            let is_led = before.workloads[0].affinity != after.workloads[0].affinity;
            let scattered = is_led
                .then(|| change(before, after, Start::Scattered))
                .flatten();
            let change = match scattered {
                Some(Outcome::Deadlock) => Outcome::Deadlock,
                // Waiting pods wait a little longer, which is no new outcome.
                _ => from_well,
            };
            let (worst, said) = (explore(after), said(&engine.judge_update(before, after)));
            let agrees = agreement::agrees_about_update(&worst, change, &said);
            Some((!agrees).then(|| {
                format!("{before:?}\nbecomes {after:?}\nThe model finds {change:?}, {worst:?}; the engine {said:?}")
            }))
        });
        compared.collect::<Vec<_>>()
    });
    let seen: Vec<Option<String>> = seen.into_iter().flatten().collect();
    let wrong: Vec<String> = seen.iter().flatten().cloned().collect();
    log(&format!(
        "{} updates asked, {} compared with the engine, {} disagreements",
        moves.len(),
        seen.len(),
        wrong.len()
    ));
    expect_none(&wrong);
}

#[test]
fn every_remedy_the_engine_proposes_keeps_its_promise() {
    let trials = in_parallel(&grid::chosen(&guarded()), |some| {
        let (mut engine, mut trial) = (Engine::default(), Trial::default());
        for configuration in some {
            trial.of(&mut engine, configuration, &SURVEY);
        }
        trial
    });
    let mut trial = Trial::default();
    trials.into_iter().for_each(|some| trial.add(some));
    let tried = trial.tried.iter().map(|(name, count)| format!("{count} {name}"));
    log(&format!(
        "remedies proposed and checked: {}; {} broken promises",
        tried.collect::<Vec<_>>().join(", "),
        trial.broken.len()
    ));
    for name in ["recreate", "zero-surge", "colocate", remedies::AUTO] {
        assert!(trial.tried.contains_key(name), "{name} is never proposed");
    }
    expect_none(&trial.broken);
}

#[test]
fn a_configuration_and_its_normal_form_are_the_same_to_the_model() {
    let some: Vec<&Configuration> = ASKED.iter().step_by(NORMAL_FORMS_TRIED).collect();
    let wrong: Vec<String> = some
        .iter()
        .filter_map(|configuration| {
            let (own, normal) = (explore(configuration), SURVEY.worst(configuration));
            let same = (own.first, &own.rollouts, own.wait)
                == (normal.first, &normal.rollouts, normal.wait);
            (!same).then(|| format!("{configuration:?}: {own:?}, its normal form: {normal:?}"))
        })
        .collect();
    log(&format!("{} normal forms tried", some.len()));
    expect_none(&wrong);
}

/// Writes a line that is shown even if the test passes.
fn log(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
}

fn expect_none(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{} of them:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}
