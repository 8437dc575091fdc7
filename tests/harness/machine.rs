//! How slow this machine is now.
//!
//! Whoever wrote a limit of time chose it on two idle cores. Elsewhere, or beside others, the
//! same work takes longer, so a limit is multiplied by what a known piece of work takes here.

use std::hint::black_box;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often the work is repeated in one measurement, by as many threads as there are cores.
const ROUNDS: u32 = 6_000_000;

/// What one measurement takes on two idle cores of 2026.
const IDLE: Duration = Duration::from_millis(45);

/// How often the machine is measured.
const EVERY: Duration = Duration::from_secs(10);

/// A machine that is slower than that is taken for one that hangs. One moment in which it did
/// stretches each limit, and what never comes has to be reported before the pipeline gives up.
const SLOWEST: u32 = 400;

/// `limit`, as often as this machine is slower than the one on which it was chosen. It grows
/// while a test waits beside others that begin.
pub(crate) fn patient(limit: Duration) -> Duration {
    limit * slowness() / 100
}

/// `pause`, as often as this machine is slower now, but at most twice. A limit is reached only
/// by what fails; a pause is waited for in full each time.
#[allow(dead_code, reason = "some test programs wait for nothing in full")]
pub(crate) fn unhurried(pause: Duration) -> Duration {
    slowness();
    pause * NOW.load(Ordering::Relaxed).clamp(100, 200) / 100
}

/// How slow the machine was when it was last measured, in percent of an idle one.
static NOW: AtomicU32 = AtomicU32::new(100);

/// The slowest that this machine has been since the process began, in percent of an idle one.
fn slowness() -> u32 {
    static SEEN: AtomicU32 = AtomicU32::new(100);
    static BEGUN: Once = Once::new();
    fn look() {
        let percent = measure().as_millis() * 100 / IDLE.as_millis();
        let percent = u32::try_from(percent).unwrap_or(SLOWEST).min(SLOWEST);
        SEEN.fetch_max(percent, Ordering::Relaxed);
        NOW.store(percent, Ordering::Relaxed);
    }
    BEGUN.call_once(|| {
        look();
        thread::spawn(|| {
            loop {
                thread::sleep(EVERY);
                look();
            }
        });
    });
    SEEN.load(Ordering::Relaxed)
}

/// How long the piece of work takes on all cores at once.
fn measure() -> Duration {
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..cores() {
            scope.spawn(|| {
                let mut state = 1_u64;
                for round in 0..ROUNDS {
                    state = black_box(state.rotate_left(5) ^ u64::from(round));
                }
            });
        }
    });
    began.elapsed()
}

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
