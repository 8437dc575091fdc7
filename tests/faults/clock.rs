//! The clock of the guard's machine is set forward and back.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::Played;
use crate::fault_test::{self, FaultTest};
use crate::harness::clock::Clock;
use crate::harness::{self, Guard, wait_until};
use crate::load::DEADLINE;

/// The number of requests at each time.
const SOME: usize = 200;

pub(crate) fn can_be_set() -> Option<()> {
    harness::clock::library().map(drop)
}

pub(crate) fn it_is_set(test: &'static FaultTest) -> Result<Played, String> {
    let plane = test.plane;
    let clock = Clock::new(plane, "guard").ok_or("libfaketime is not installed any more.")?;
    let guard = plane.guard("clock", &clock.faked(fault_test::sure().with(&["--log-format=json"])));
    let load = test.load(&guard);
    for (text, hours) in [("+0", 0), ("+10h", 10), ("-10h", -10), ("+0", 0)] {
        clock.set(text);
        until_logged_at(&guard, hours)?;
        load.until_more(SOME)?;
    }
    Ok(Played::answered(load.end(), "10 hours forward, 20 back"))
}

/// Waits until the guard's clock is off by about `hours`, by its log, which has every denial.
fn until_logged_at(guard: &Guard, hours: i64) -> Result<(), String> {
    const ABOUT: SignedDuration = SignedDuration::from_hours(1);
    wait_until("the guard's clock to be set", DEADLINE, || {
        let log = guard.program.log();
        let last = log
            .lines()
            .rev()
            .find_map(|line| {
                let event: Value = serde_json::from_str(line).ok()?;
                event["timestamp"].as_str()?.parse::<Timestamp>().ok()
            })
            .ok_or("nothing was logged")?;
        let off = last.duration_since(Timestamp::now()) - SignedDuration::from_hours(hours);
        if off.abs() < ABOUT { Ok(()) } else { Err(format!("{last}")) }
    })
}
