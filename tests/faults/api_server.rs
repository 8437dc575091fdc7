//! The API server goes away while reviews continue to arrive, for example from another API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep_until;

use crate::Played;
use crate::fault_test::{FaultTest, STRAIGHT, Said, question};
use crate::harness::{ControlPlane, GuardOptions};
use crate::load::{Came, DEADLINE, Load};

/// The number of requests before, during and after the fault.
const SOME: usize = 200;

/// The length of the absence: longer than a busy API server takes to start again.
const AWAY: Duration = Duration::from_secs(60);

/// The API server ends and is started again.
pub(crate) fn it_is_killed(test: &'static FaultTest) -> Result<Played, String> {
    let begin = |plane: &ControlPlane| {
        plane.api_server().signal("KILL");
        plane.api_server().wait(DEADLINE).map(drop)
    };
    away(test, "killed", begin, ControlPlane::start_api_server_again)
}

/// The API server keeps its connections open and does not answer.
pub(crate) fn it_hangs(test: &'static FaultTest) -> Result<Played, String> {
    let begin = |plane: &ControlPlane| {
        plane.api_server().signal("STOP");
        Ok(())
    };
    let end = |plane: &ControlPlane| {
        plane.api_server().signal("CONT");
        plane.until_api_server_ready()
    };
    away(test, "hangs", begin, end)
}

/// Asks two guards in turn, one with `--stale warn` and one with `--stale deny`. Neither may let a
/// faulty object through silently, or deny a correct one.
fn away(
    test: &'static FaultTest,
    name: &str,
    begin: impl FnOnce(&ControlPlane) -> Result<(), String>,
    end: impl FnOnce(&ControlPlane) -> Result<(), String>,
) -> Result<Played, String> {
    let plane = test.plane;
    let guards = ["warn", "deny"].map(|stale| {
        let options = GuardOptions::default().with(&[&format!("--stale={stale}")]);
        plane.guard(&format!("{name}-{stale}"), &options)
    });
    let urls: Arc<[String]> = guards.iter().map(|guard| guard.url.clone()).collect();
    let is_away = Arc::new(AtomicBool::new(false));
    let softened = Arc::new(AtomicUsize::new(0));

    let (away_now, count) = (Arc::clone(&is_away), Arc::clone(&softened));
    let load = Load::start(plane.runtime().handle(), STRAIGHT, move |number| {
        let (urls, away_now, count) =
            (Arc::clone(&urls), Arc::clone(&away_now), Arc::clone(&count));
        async move {
            let (strategy, expected) = question(number);
            let is_warned = number / 2 % 2 == 0;
            let guard = &urls[usize::from(!is_warned)];
            let was_away = away_now.load(Ordering::SeqCst);
            let said = test.review(plane.http(), guard, ("data", strategy)).await;
            let may_be_unconfirmed =
                is_warned && (was_away || away_now.load(Ordering::SeqCst)) && expected == Said::No;
            match said {
                Ok(said) if said == expected => Came::Right,
                Ok(Said::Unconfirmed) if may_be_unconfirmed => {
                    count.fetch_add(1, Ordering::SeqCst);
                    Came::Right
                }
                Ok(said) => Came::Wrong(format!("{said:?} to {strategy} from {guard}.")),
                Err(error) => Came::Failed(error),
            }
        }
    });
    load.until_more(SOME)?;
    is_away.store(true, Ordering::SeqCst);
    begin(plane)?;
    let began = Instant::now();
    let meanwhile = load.until_more(SOME);
    plane.block_on(async { sleep_until((began + AWAY).into()).await });
    // The API server is restored even after an error, because other rows need it.
    end(plane)?;
    meanwhile?;
    is_away.store(false, Ordering::SeqCst);
    load.until_more(SOME)?;
    let tally = load.end();
    let softened = softened.load(Ordering::SeqCst);
    if softened == 0 {
        return Err("No denial became a warning: nobody noticed.".to_owned());
    }
    for (guard, (result, least)) in guards.iter().zip([("warned", softened), ("denied", 1)]) {
        let series =
            format!("multi_attach_guard_view_unconfirmed_denials_total{{result=\"{result}\"}}");
        let counted = guard.count(plane, &series);
        if counted < least as u64 || !guard.program.log().contains("A denial was not confirmed.") {
            return Err(format!(
                "{least} unconfirmed denials: {result} {counted} times, or not logged."
            ));
        }
    }
    Ok(Played::answered(
        tally,
        format!("{softened} denials became warnings with `--stale warn`, none with `--stale deny`"),
    ))
}
