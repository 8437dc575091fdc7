//! Faults around the guard, and the requests during each: how many were sent, how many failed, and
//! how many got a wrong answer.
//!
//! The faults are played in sequence on one control plane, and their table is printed at the end. A
//! row fails if a request got a wrong answer, or failed although a guard could have answered it.
//!
//! `cargo test --workspace --test faults -- SIGKILL` plays the faults with that word in their names.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

mod api_server;
mod clock;
mod fault_test;
#[path = "../harness/mod.rs"]
mod harness;
mod load;
mod proxy;
mod replicas;
mod service;
mod strangers;
mod watches;

use fault_test::FaultTest;
use harness::table::Table;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use load::Tally;

/// A fault.
#[derive(Clone, Copy)]
struct Fault {
    name: &'static str,
    /// Whether this machine can play the fault; prints the reason if it cannot.
    can_be_played: fn() -> Option<()>,
    play: fn(&'static FaultTest) -> Result<Played, String>,
}

/// The faults, in the order of the table.
const FAULTS: [Fault; 9] = [
    fault("SIGTERM of one of two replicas", |test| replicas::one_of_two(test, "TERM", "Fail")),
    fault("SIGKILL of one of two replicas", |test| replicas::one_of_two(test, "KILL", "Fail")),
    fault("SIGTERM of one of two, failurePolicy: Ignore", |test| {
        replicas::one_of_two(test, "TERM", "Ignore")
    }),
    fault("SIGKILL of one of two, failurePolicy: Ignore", |test| {
        replicas::one_of_two(test, "KILL", "Ignore")
    }),
    fault("API server killed and started again", api_server::it_is_killed),
    fault("API server hangs and goes on", api_server::it_hangs),
    fault("each watch in turn frozen", watches::each_is_frozen),
    fault("unknown clients flood a guard whose API server is slow", strangers::flood),
    Fault {
        can_be_played: clock::can_be_set,
        ..fault("clock set forward and back", clock::it_is_set)
    },
];

const fn fault(
    name: &'static str,
    play: fn(&'static FaultTest) -> Result<Played, String>,
) -> Fault {
    Fault { name, can_be_played: || Some(()), play }
}

/// The result of a fault.
pub(crate) struct Played {
    /// The results of all requests.
    pub(crate) tally: Tally,
    /// The number of failed requests that no guard could have answered.
    pub(crate) unanswerable: usize,
    /// A remark that the numbers do not show.
    pub(crate) remark: String,
}

impl Played {
    /// The result of a fault during which every request could be answered.
    pub(crate) fn answered(tally: Tally, remark: impl Into<String>) -> Self {
        Self { tally, unanswerable: 0, remark: remark.into() }
    }
}

fn main() {
    let mut arguments = Arguments::from_args();
    // One fault at a time: its effects on another row would be counted there.
    arguments.test_threads = Some(1);
    let table = Table::default();
    let trials =
        FAULTS.into_iter().enumerate().map(|(place, fault)| trial(&table, place, fault)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    table.print(&["fault", "requests sent", "failed", "wrong", ""]);
    conclusion.exit();
}

/// A fault as a test.
fn trial(table: &Table, place: usize, fault: Fault) -> Trial {
    let table = table.clone();
    let Fault { name, can_be_played, play } = fault;
    Trial::ignorable_test(name, move || {
        let Some(test) = can_be_played().and_then(|()| fault_test::shared()) else {
            return Ok(Completion::ignored_with("this machine lacks what it takes to play it"));
        };
        let Played { tally, unanswerable, remark } = play(test)?;
        let (sent, failed, wrong) = (tally.sent, tally.failed.len(), tally.wrong.len());
        let [all, no, lies] = [sent, failed, wrong].map(|count| count.to_string());
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
