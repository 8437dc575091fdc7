//! What breaks around the guard, and what becomes of the requests that are under way
//! meanwhile: how many were sent, how many failed, and how many got a wrong answer.
//!
//! The faults are played one after another on one control plane, and the table of them
//! is printed at the end. A wrong answer fails its row, and so does a request that
//! failed although there was somebody left to answer it.
//!
//! `cargo test --test faults -- SIGKILL` plays those with that word in their name.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

mod api_server;
mod clock;
#[path = "../harness/mod.rs"]
mod harness;
mod load;
mod proxy;
mod replicas;
mod service;
mod watches;
mod world;

use harness::table::Table;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use load::Tally;
use world::World;

/// A fault.
#[derive(Clone, Copy)]
struct Fault {
    name: &'static str,
    /// Whether this machine has what it takes; says so where it has not.
    can_be_played: fn() -> Option<()>,
    play: fn(&'static World) -> Result<Played, String>,
}

/// The faults, in the order of the table.
const FAULTS: [Fault; 8] = [
    fault("SIGTERM of one of two replicas", |world| {
        replicas::one_of_two(world, "TERM", "Fail")
    }),
    fault("SIGKILL of one of two replicas", |world| {
        replicas::one_of_two(world, "KILL", "Fail")
    }),
    fault("SIGTERM of one of two, failurePolicy: Ignore", |world| {
        replicas::one_of_two(world, "TERM", "Ignore")
    }),
    fault("SIGKILL of one of two, failurePolicy: Ignore", |world| {
        replicas::one_of_two(world, "KILL", "Ignore")
    }),
    fault(
        "API server killed and started again",
        api_server::it_is_killed,
    ),
    fault("API server hangs and goes on", api_server::it_hangs),
    fault("each watch in turn frozen", watches::each_is_frozen),
    Fault {
        can_be_played: clock::can_be_set,
        ..fault("clock set forward and back", clock::it_is_set)
    },
];

const fn fault(name: &'static str, play: fn(&'static World) -> Result<Played, String>) -> Fault {
    Fault {
        name,
        can_be_played: || Some(()),
        play,
    }
}

/// What came of a fault.
pub(crate) struct Played {
    /// All that was asked.
    pub(crate) tally: Tally,
    /// Of what failed, how many nobody could have answered.
    pub(crate) unanswerable: usize,
    /// What the numbers do not say.
    pub(crate) remark: String,
}

impl Played {
    /// What came of one in which all could be answered.
    pub(crate) fn answered(tally: Tally, remark: impl Into<String>) -> Self {
        Self {
            tally,
            unanswerable: 0,
            remark: remark.into(),
        }
    }
}

fn main() {
    let mut arguments = Arguments::from_args();
    // One fault at a time: what it does to others would be counted with them.
    arguments.test_threads = Some(1);
    let table = Table::default();
    let trials = FAULTS.into_iter().enumerate();
    let trials = trials.map(|(place, fault)| trial(&table, place, fault));
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    table.print(&["fault", "requests sent", "failed", "wrong", ""]);
    conclusion.exit();
}

/// A fault as a test.
fn trial(table: &Table, place: usize, fault: Fault) -> Trial {
    let table = table.clone();
    let Fault {
        name,
        can_be_played,
        play,
    } = fault;
    Trial::ignorable_test(name, move || {
        let Some(world) = can_be_played().and_then(|()| world::shared()) else {
            return Ok(Completion::ignored_with(
                "this machine lacks what it takes to play it",
            ));
        };
        let Played {
            tally,
            unanswerable,
            remark,
        } = play(world)?;
        let (sent, failed, wrong) = (tally.sent, tally.failed.len(), tally.wrong.len());
        let [all, no, lies] = [sent, failed, wrong].map(|it| it.to_string());
        table.add(place, &[name, &all, &no, &lies, &remark]);
        if let Some(first) = tally.wrong.first() {
            return Err(Failed::from(format!(
                "{wrong} of {sent} answers are wrong, the first: {}",
                first.said
            )));
        }
        match tally.failed.last() {
            Some(last) if failed > unanswerable => Err(Failed::from(format!(
                "{failed} of {sent} requests failed; {unanswerable} could not be \
                 answered; the last: {}",
                last.said
            ))),
            _ => Ok(Completion::Completed),
        }
    })
}
