//! The clock of the guard's machine is set forward and back.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::Played;
use crate::fault_test::{self, FaultTest};
use crate::harness::{self, Guard, wait_until};
use crate::load::DEADLINE;

/// The number of requests at each time.
const SOME: usize = 200;

pub(crate) fn can_be_set() -> Option<()> {
    match library() {
        Some(_) => Some(()),
        None => harness::skip("The package libfaketime is not installed."),
    }
}

/// The library that changes a program's clock, at the path that Debian uses.
fn library() -> Option<String> {
    std::fs::read_dir("/usr/lib").ok()?.find_map(|folder| {
        let file = folder.ok()?.path().join("faketime/libfaketimeMT.so.1");
        file.exists().then(|| file.display().to_string())
    })
}

pub(crate) fn it_is_set(test: &'static FaultTest) -> Result<Played, String> {
    let library = library().ok_or("The package libfaketime is not installed any more.")?;
    let plane = test.plane;
    let offset = plane.write_file("clock", "+0");
    let environment = [
        ("LD_PRELOAD", library.as_str()),
        ("FAKETIME_TIMESTAMP_FILE", offset.to_str().unwrap()),
        ("FAKETIME_NO_CACHE", "1"),
        // The uptime of a machine cannot be set.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    let mut options = fault_test::sure();
    options.arguments.push("--log-format=json".to_owned());
    options.environment =
        environment.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let guard = plane.guard("clock", &options);
    let load = test.load(&guard);
    for (text, hours) in [("+0", 0), ("+10h", 10), ("-10h", -10), ("+0", 0)] {
        std::fs::write(&offset, text).unwrap();
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
