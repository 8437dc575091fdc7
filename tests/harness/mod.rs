//! The shared parts of the integration tests: a real control plane on this machine, the real
//! kubectl, simulated nodes, and the project's own server.
//!
//! A test file says `mod harness;` and begins each test that needs a cluster with
//!
//! ```text
//! let Some(plane) = harness::require_control_plane(Needs::ApiServer) else { return };
//! ```
//!
//! One control plane serves a whole test binary; every test works in its own namespaces
//! ([`ControlPlane::namespace`]). Nothing here outlives the test process, however that process
//! ends: see [`process`].

#![allow(dead_code, reason = "each test binary uses only a part of what is shared")]
#![allow(
    unused_imports,
    unused_macros,
    reason = "each test binary uses only a part of what is shared"
)]
#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

pub(crate) mod asking;
pub(crate) mod clock;
pub(crate) mod control_plane;
pub(crate) mod fake_nodes;
pub(crate) mod guard;
pub(crate) mod hollow_nodes;
pub(crate) mod kubectl;
pub(crate) mod machine;
pub(crate) mod namespace;
pub(crate) mod output;
pub(crate) mod padding;
pub(crate) mod pki;
pub(crate) mod places;
pub(crate) mod process;
pub(crate) mod programs;
pub(crate) mod shorthand;
pub(crate) mod table;
pub(crate) mod uncertain;
pub(crate) mod webhooks;

use std::fmt::Display;
use std::io::Write;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use control_plane::{ControlPlane, Lent, Options};
pub(crate) use fake_nodes::{FakeNodes, NodeSpec};
pub(crate) use guard::{Guard, GuardOptions};
pub(crate) use hollow_nodes::HollowNodes;
pub(crate) use kubectl::{Output, sum};
pub(crate) use machine::{patient, unhurried};
pub(crate) use namespace::Namespace;
pub(crate) use webhooks::WebhookOptions;

/// The parts of a control plane that a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// etcd, kube-apiserver and kubectl.
    ApiServer,
    /// Those programs with kube-controller-manager and kube-scheduler.
    Controllers,
}

/// The control plane that the tests of this binary share; the first test that asks starts it.
///
/// If this machine has neither the programs nor the means to compile them, stderr names the calling
/// test as skipped, with the reason, and the test gets `None`. With `CI` set the test fails
/// instead, because a skipped proof must not look like a proof there.
///
/// # Panics
///
/// If the programs cannot be compiled or do not start, with the tail of the log.
#[track_caller]
pub(crate) fn require_control_plane(needs: Needs) -> Option<&'static ControlPlane> {
    static WITHOUT_CONTROLLERS: OnceLock<Result<ControlPlane, String>> = OnceLock::new();
    static WITH_CONTROLLERS: OnceLock<Result<ControlPlane, String>> = OnceLock::new();

    let programs = require_programs(needs)?;
    let shared = match needs {
        Needs::ApiServer => &WITHOUT_CONTROLLERS,
        Needs::Controllers => &WITH_CONTROLLERS,
    }
    .get_or_init(|| ControlPlane::start(programs, &Options::of(needs)));
    Some(started(shared.as_ref()))
}

#[track_caller]
fn started<P>(plane: Result<P, impl Display>) -> P {
    plane.unwrap_or_else(|reason| panic!("The control plane did not start. {reason}"))
}

/// A control plane for the caller alone; otherwise like [`require_control_plane`].
#[track_caller]
pub(crate) fn start_control_plane(needs: Needs) -> Option<ControlPlane> {
    start_control_plane_with(needs, &Options::of(needs))
}

/// Starts a control plane for the caller alone, with these options.
#[track_caller]
pub(crate) fn start_control_plane_with(needs: Needs, options: &Options) -> Option<ControlPlane> {
    let programs = require_programs(needs)?;
    Some(started(ControlPlane::start(programs, options)))
}

/// The programs, for tests that start none of them as a server.
#[track_caller]
pub(crate) fn require_programs(needs: Needs) -> Option<&'static programs::Programs> {
    let programs = match programs::locate() {
        programs::Located::Found(programs) => programs,
        programs::Located::Missing(reason) => return skip(reason),
        programs::Located::Failed(reason) => panic!("{reason}"),
    };
    let more: &[&str] = match needs {
        Needs::ApiServer => &[],
        Needs::Controllers => &["kube-controller-manager", "kube-scheduler"],
    };
    match programs.have(more) {
        Ok(()) => Some(programs),
        Err(reason) => skip(&reason),
    }
}

/// The folder of a Go module from which the control plane of a minor is compiled; tests read its
/// sources. Without Go the calling test is skipped.
#[track_caller]
pub(crate) fn require_module(minor: &str, name: &str) -> Option<PathBuf> {
    programs::module(minor, name).map_or_else(|reason| skip(&reason), Some)
}

/// The folder that another script of `tests/control-plane` has filled. Without Go the test is
/// skipped with a message that names `what` the script compiles.
///
/// # Panics
///
/// If compiling fails.
#[track_caller]
pub(crate) fn built(command: &[&str], what: &str) -> Option<PathBuf> {
    let (script, arguments) = command.split_first().unwrap();
    match programs::filled(script, arguments) {
        Ok(Some(folder)) => Some(folder),
        Ok(None) => skip(&format!("There is no Go to compile {what} with.")),
        Err(reason) => panic!("{reason}"),
    }
}

/// The value that a test needs, or the end of the test: the function that returned `None` has given
/// the reason.
macro_rules! or_skip {
    ($needed:expr) => {
        match $needed {
            Some(needed) => needed,
            None => return,
        }
    };
}
pub(crate) use or_skip;

/// Reports the current test as skipped, or fails it if `CI` is set.
#[track_caller]
pub(crate) fn skip<T>(reason: &str) -> Option<T> {
    let caller = Location::caller();
    let current = thread::current();
    let test = current.name().unwrap_or("a test");
    assert!(
        std::env::var_os("CI").is_none(),
        "{test} cannot run, and with CI set nothing is skipped. {reason}"
    );
    // Written to the stream itself, because the test runner hides `eprintln!` of a test that
    // passes.
    let _ = writeln!(
        std::io::stderr().lock(),
        "SKIPPED {test} ({}:{}): {reason}",
        caller.file(),
        caller.line()
    );
    None
}

/// A program that this machine may lack, from the PATH or the folder into which `.ci/run` unpacks
/// programs.
#[track_caller]
pub(crate) fn require_tool(name: &str) -> Option<PathBuf> {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([cache.join("multi-attach-guard/bin")]);
    let found = folders.map(|folder| folder.join(name)).find(|file| file.is_file());
    found.or_else(|| skip(&format!("There is no {name}; `.ci/run` installs it.")))
}

/// Calls `one` with each cell and its index, on this number of threads; returns the results in
/// order.
pub(crate) fn at_once<C: Sync, R: Send>(
    threads: usize,
    cells: &[C],
    one: impl Fn(usize, &C) -> R + Sync,
) -> Vec<R> {
    let queue = Mutex::new(cells.iter().enumerate());
    let next = || queue.lock().unwrap().next();
    let work = || -> Vec<(usize, R)> {
        std::iter::from_fn(next).map(|(at, cell)| (at, one(at, cell))).collect()
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Like [`wait_until`], for callers that cannot handle an error.
///
/// # Panics
///
/// With the error of [`wait_until`].
#[track_caller]
pub(crate) fn until<T>(
    what: &str,
    within: Duration,
    question: impl FnMut() -> Result<T, String>,
) -> T {
    wait_until(what, within, question).unwrap_or_else(|reason| panic!("{reason}"))
}

/// `Ok` with the observation if it is as expected; otherwise an error that shows it, as the reason
/// to ask again.
pub(crate) fn seen<T: std::fmt::Debug>(is_so: bool, what: T) -> Result<T, String> {
    if is_so { Ok(what) } else { Err(format!("{what:#?}")) }
}

/// Asks `question` again and again until it has an answer or `within` has passed, which is longer
/// on a slow machine (see [`machine`]).
///
/// Use it only for conditions without an event to wait for, such as a readiness endpoint. The pause
/// between two questions is four times as long as the last question took, up to two seconds: an
/// expensive question, such as a whole process, must not slow down the work that it waits for.
///
/// # Errors
///
/// A sentence that names `what` was awaited and the last reason from `question`.
pub(crate) fn wait_until<T>(
    what: &str,
    within: Duration,
    mut question: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    const SHORTEST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(2);
    let began = Instant::now();
    loop {
        let asked = Instant::now();
        match question() {
            Ok(answer) => return Ok(answer),
            Err(last) if began.elapsed() >= patient(within) => {
                return Err(format!(
                    "Waited {} s for {what}; last seen: {last}",
                    began.elapsed().as_secs()
                ));
            }
            Err(_) => {
                let took = asked.elapsed();
                thread::sleep((took * 4).clamp(SHORTEST, LONGEST).max(took));
            }
        }
    }
}
