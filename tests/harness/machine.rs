//! The present speed of this machine.
//!
//! Time limits were chosen on two idle cores. On a slower or a busy machine the same work takes
//! longer, so each limit is multiplied by the measured duration of a known piece of work.

use std::hint::black_box;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The repetitions of the work in one measurement, on each of as many threads as there are cores.
const ROUNDS: u32 = 6_000_000;

/// The duration of one measurement on two idle cores of 2026.
const IDLE: Duration = Duration::from_millis(45);

/// The interval between measurements.
const EVERY: Duration = Duration::from_secs(10);

/// The upper limit of the measured slowness, in percent. Without it, one moment in which the
/// machine hangs would stretch every limit, and a test that waits in vain must fail before the
/// pipeline gives up.
const SLOWEST: u32 = 400;

/// `limit`, multiplied by the slowness of this machine. It grows during a wait if the machine
/// becomes slower.
pub(crate) fn patient(limit: Duration) -> Duration {
    limit * slowness() / 100
}

/// `pause`, multiplied by the present slowness, but at most doubled. Only failures reach a limit; a
/// pause is always waited for in full.
#[allow(dead_code, reason = "some test programs wait for nothing in full")]
pub(crate) fn unhurried(pause: Duration) -> Duration {
    slowness();
    pause * NOW.load(Ordering::Relaxed).clamp(100, 200) / 100
}

/// The slowness of the machine at the last measurement, in percent of an idle one.
static NOW: AtomicU32 = AtomicU32::new(100);

/// The greatest slowness since the process began, in percent of an idle machine.
fn slowness() -> u32 {
    static SEEN: AtomicU32 = AtomicU32::new(100);
    static BEGUN: Once = Once::new();
    fn look() {
        let percent = u32::try_from(measure().as_millis() * 100 / IDLE.as_millis())
            .unwrap_or(SLOWEST)
            .min(SLOWEST);
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

/// The duration of the piece of work on all cores at once.
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
