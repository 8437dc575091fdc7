//! Plays every row of `tests/ground-truth.yaml` on a real API server, controller manager and
//! scheduler, with simulated nodes and with kubelets.
//!
//! `MINOR` chooses the Kubernetes version (by default the first of `tests/control-plane/minors`),
//! and `PLAY` the rows: with `all`, every row on both kinds of node; with `once`, every row, on
//! kubelets if simulated nodes cannot play it, and S1 on both; with `rest`, those that `first` leaves
//! out. By default, every row that simulated nodes can play; with `first`, those of the first
//! section, and with `third`, a random third of them. `SEED` repeats an earlier choice.
//!
//! Scenarios mostly wait, so many run at once, each in its own namespace and on its own nodes. The
//! nodes are tainted and the pods tolerate the taint, which keeps scenarios apart for both the
//! scheduler and the guard.
//!
//! `cargo test --workspace --test scenarios -- S1` plays the scenarios whose name contains `S1`. Random
//! clusters are played too: see [`random`].

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    reason = "in a test, the panic and its message are the report"
)]

mod detaches;
mod document;
mod engine;
mod guarded;
#[path = "../harness/mod.rs"]
mod harness;
mod hurry;
mod manifests;
mod observe;
mod outcome;
mod random;
mod run;
mod scenario;
mod scenario_run;

use std::sync::OnceLock;
use std::thread;
use std::time::{Instant, UNIX_EPOCH};

use guarded::{Guarded, Mode, install_standalone, play_guarded, start_guard};
use harness::table::Table;
use harness::webhooks::Registration;
use harness::{Guard, Lent, Needs};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use outcome::Outcome;
use proptest::strategy::{Strategy, ValueTree};
use run::{Played, play};
use scenario::{Nodes, Said, Scenario, Standalone, sections};
use scenario_run::Testbed;

/// The number of scenarios that run at once by default. Each is played up to four times in
/// parallel, on two cores that other suites use as well.
const AT_ONCE: usize = 12;

/// The columns of the table of results.
const HEAD: &str = "scenario | nodes | what | without guard | Multi-Attach events | way out took | \
                    engine | deny | fix | warn | standalone policy";

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let table = Table::default();
    let document =
        Trial::test("docs/evidence/ground-truth.md has the tables of ground truth", || {
            Ok(document::check()?)
        });
    let played = drawn().into_iter().enumerate().map(|(place, (scenario, nodes))| {
        let table = table.clone();
        let with = match nodes {
            Nodes::Simulated => "",
            Nodes::Kubelets => " with kubelets",
        };
        let name = format!("{}{with} {}", scenario.id, scenario.what);
        trial(name, move || play_in_all_modes(place, scenario, nodes, &table))
    });
    let trials = std::iter::once(document).chain(played);
    let lots = random::lots()
        .into_iter()
        .map(|lot| trial(lot.name.clone(), move || Some(lot.play(&shared()?.testbed))));
    let hurried = "X12 and X12o, fifty times each in deny mode while much else happens";
    let hurry = trial(hurried.to_owned(), || {
        // In the shared testbed, volumes are never deleted early, so that other scenarios can wait
        // until a guard knows theirs.
        let (_plane, testbed) = shared().and_then(|_| own())?;
        Some(hurry::play(testbed))
    });
    let trials = trials.chain([hurry]).chain(lots);
    let started = Instant::now();
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let rows = table.print(&HEAD.split(" | ").collect::<Vec<_>>());
    println!("{rows} scenarios in {} s\n", started.elapsed().as_secs());
    random::print_tally();
    if let Some(Some(shared)) = SHARED.get() {
        detaches::judge(shared.testbed.plane, &shared.guard);
    }
    conclusion.exit();
}

/// The rows to play. The slowest come first, so that the others run in parallel with them.
fn drawn() -> Vec<(&'static Scenario, Nodes)> {
    let play = std::env::var("PLAY").unwrap_or_default();
    assert!(
        ["", "all", "once", "rest", "first", "third"].contains(&play.as_str()),
        "PLAY is {play:?}, and not all, once, rest, first or third"
    );
    let since_1970 = || Some(UNIX_EPOCH.elapsed().ok()?.as_secs());
    let seed = random::number("SEED").or_else(since_1970).unwrap_or(1);
    println!("Kubernetes {}, SEED={seed}", harness::programs::minor());
    let mut runner = random::runner(seed, u64::MAX);
    let mut one_of_three = || proptest::bool::weighted(1.0 / 3.0).new_tree(&mut runner);
    let first = &sections()[0].rows;
    let mut is_drawn = |row: &Scenario, nodes: Nodes| {
        let simulated = nodes == Nodes::Simulated;
        match play.as_str() {
            "all" => true,
            "rest" if simulated => !first.iter().any(|of_first| of_first.id == row.id),
            "once" | "rest" => simulated || !row.suits(Nodes::Simulated) || row.id == "S1",
            "third" => simulated && one_of_three().is_ok_and(|third| third.current()),
            _ => simulated,
        }
    };
    let played = if play == "first" { 1 } else { usize::MAX };
    let sections = sections().iter().take(played);
    let rows = sections.rev().flat_map(|section| &section.rows);
    let both = rows.flat_map(|row| [Nodes::Simulated, Nodes::Kubelets].map(|nodes| (row, nodes)));
    let suitable = both.filter(|(row, nodes)| row.suits(*nodes));
    suitable.filter(|(row, nodes)| is_drawn(row, *nodes)).collect()
}

/// The control plane's parts that scenarios share.
struct Shared {
    testbed: Testbed,
    guard: Guard,
    _registration: Registration<'static>,
    _detaches: Registration<'static>,
}

static SHARED: OnceLock<Option<Shared>> = OnceLock::new();

/// The testbed that scenarios share, with its guard.
fn shared() -> Option<&'static Shared> {
    let make = || {
        let plane = harness::require_control_plane(Needs::Controllers)?;
        let (guard, _registration) = start_guard(plane);
        install_standalone(plane);
        Some(Shared {
            _detaches: detaches::watch(plane, &guard),
            testbed: Testbed::new(plane),
            guard,
            _registration,
        })
    };
    SHARED.get_or_init(make).as_ref()
}

/// A testbed for a scenario that cannot share one.
fn own() -> Option<(Lent, &'static Testbed)> {
    let plane = Lent::new(harness::start_control_plane(Needs::Controllers)?);
    let testbed = Box::leak(Box::new(Testbed::new(plane.0)));
    Some((plane, testbed))
}

/// A test. `play` returns `None` if there is no control plane.
fn trial(
    name: String,
    play: impl FnOnce() -> Option<Result<(), String>> + Send + 'static,
) -> Trial {
    Trial::ignorable_test(name, move || {
        let Some(played) = play() else {
            return Ok(Completion::ignored_with("there is no control plane to play it on"));
        };
        played.map(|()| Completion::Completed).map_err(Failed::from)
    })
}

fn play_in_all_modes(
    place: usize,
    scenario: &'static Scenario,
    nodes: Nodes,
    table: &Table,
) -> Option<Result<(), String>> {
    let shared = shared()?;
    let (_plane, testbed) = if scenario.alone {
        let (plane, testbed) = own()?;
        (Some(plane), testbed)
    } else {
        (None, &shared.testbed)
    };
    let faults = match watch(testbed, shared, scenario, nodes) {
        Err(fault) => vec![fault],
        Ok((played, guarded)) => {
            let judged = judge(scenario, nodes, &played).err().into_iter();
            let under_guard = guarded
                .iter()
                .filter_map(|(mode, seen)| judge_guarded(scenario, &played, *mode, seen).err());
            let faults = judged.chain(under_guard).collect();
            let row = row(scenario, nodes, &played, &guarded);
            table.add(place, &row.iter().map(String::as_str).collect::<Vec<_>>());
            faults
        }
    };
    if faults.is_empty() {
        return Some(Ok(()));
    }
    let said = said_by_the_guard(&shared.guard, &scenario.id);
    Some(Err(format!("{}\n{said}", faults.join("\n"))))
}

/// The lines of the guard's log that name a namespace or a node of the scenario.
fn said_by_the_guard(guard: &Guard, scenario: &str) -> String {
    let scenario = scenario.to_lowercase();
    let names = Mode::GUARD.map(|mode| format!("{}-{scenario}-", mode.name()));
    let log = guard.program.log();
    let lines = log.lines().filter(|line| names.iter().any(|name| line.contains(name)));
    lines.fold("The guard's log of it:".to_owned(), |said, line| said + "\n" + line)
}

/// Plays the scenario without the guard and, in parallel, with the guard in every mode. The latter
/// only on simulated nodes, because kubelets make no difference to the guard.
fn watch(
    testbed: &Testbed,
    shared: &Shared,
    scenario: &'static Scenario,
    nodes: Nodes,
) -> Result<(Played, Vec<(Mode, Guarded)>), String> {
    let modes = Mode::of(scenario).filter(|_| nodes == Nodes::Simulated);
    let mut guarded = Vec::new();
    let played = thread::scope(|scope| {
        let beside: Vec<_> = modes
            .map(|mode| {
                let play = move || play_guarded(&shared.testbed, &shared.guard, scenario, mode);
                (mode, scope.spawn(play))
            })
            .collect();
        let played = play(testbed, scenario, nodes);
        for (mode, thread) in beside {
            let seen = thread.join().map_err(|_| format!("Under guard, {mode:?}: it panicked."))?;
            guarded.push((mode, seen.map_err(|fault| format!("Under guard, {mode:?}: {fault}"))?));
        }
        played
    })?;
    Ok((played, guarded))
}

/// Checks that ground truth allows the observed outcome, and that the engine predicts it.
fn judge(scenario: &Scenario, nodes: Nodes, played: &Played) -> Result<(), String> {
    let allowed = scenario.expected(nodes);
    let outcome = played.outcome;
    if !allowed.contains(&outcome) {
        return Err(format!(
            "Ground truth allows {allowed:?}, but {outcome:?} was observed. Waiting: {:#?}. \
             Multi-Attach events: {:#?}.",
            played.waiting, played.multi_attach
        ));
    }
    let opinion = &played.opinion;
    let (verdict, because) = match &scenario.engine {
        None => (outcome, "that was observed"),
        Some(Said { says, because }) => (*says, because.as_str()),
    };
    if opinion.outcome == verdict {
        return Ok(());
    }
    Err(format!(
        "The engine must say {verdict}, because {because}, but it says {}: {:#?}",
        opinion.outcome, opinion.messages
    ))
}

/// Checks that the guard refuses or repairs exactly the faults that the engine predicts, or warns
/// of them.
fn judge_guarded(
    scenario: &Scenario,
    played: &Played,
    mode: Mode,
    guarded: &Guarded,
) -> Result<(), String> {
    let foreseen = played.foreseen;
    // This minor drops some fields only after the mutating webhooks have seen them.
    let before_dropping = scenario.seen_on_other_minors().filter(|_| mode == Mode::Fix);
    let mut either = std::iter::once(foreseen).chain(before_dropping);
    if either.any(|outcome| answers(scenario, played, outcome, mode, guarded)) {
        return Ok(());
    }
    Err(format!("The engine foresees {foreseen}; with the guard set to {mode:?}: {guarded:#?}"))
}

/// Whether this is the guard's correct reaction to the predicted outcome.
fn answers(
    scenario: &Scenario,
    played: &Played,
    foreseen: Outcome,
    mode: Mode,
    guarded: &Guarded,
) -> bool {
    let grave = foreseen >= Outcome::Stuck;
    let refused = guarded.refusal.is_some();
    let harmless = guarded.outcome.is_none_or(|outcome| outcome == Outcome::None);
    // The outcome may be milder than ground truth allows, because no node dies here.
    let no_worse = guarded.outcome <= scenario.expected(Nodes::Simulated).iter().copied().max();
    let right = match mode {
        Mode::Deny => refused == grave,
        Mode::Fix if grave => refused || harmless,
        Mode::Fix => !refused && no_worse,
        Mode::Warn => !refused,
        Mode::Standalone => refused == (scenario.standalone == Some(Standalone::Refuses)),
    };
    let quiet = refused || guarded.warnings.is_empty();
    let warned = match mode {
        // A rolling update without surge is a delay that denials advise, so no warning names it.
        Mode::Warn if foreseen == Outcome::Delay && played.opinion.is_advised => quiet,
        Mode::Warn => quiet == (foreseen == Outcome::None),
        Mode::Deny | Mode::Fix | Mode::Standalone => foreseen > Outcome::None || quiet,
    };
    right && warned
}

/// The observations of a scenario, in the columns of [`HEAD`].
fn row(
    scenario: &Scenario,
    nodes: Nodes,
    played: &Played,
    guarded: &[(Mode, Guarded)],
) -> Vec<String> {
    let way_out = played.way_out_took.map(|time| format!("{} s", time.as_secs()));
    let mut row = vec![
        scenario.id.clone(),
        format!("{nodes:?}"),
        scenario.what.clone(),
        played.outcome.to_string(),
        played.multi_attach.len().to_string(),
        way_out.unwrap_or_default(),
        played.opinion.outcome.to_string(),
    ];
    row.extend(guarded.iter().map(|(_, guarded)| guarded.to_string()));
    // Kubelets make no difference to the guard.
    row.resize(11, String::new());
    row
}
