//! A line on a terminal about rendering that takes long.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::pending;
use std::io::{IsTerminal, stderr};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The time after which the line appears.
const SILENCE: Duration = Duration::from_secs(2);

/// The time between two changes of the line.
const PAUSE: Duration = Duration::from_millis(500);

/// Moves to the start of the line and deletes it.
const DELETE: &str = "\r\u{1b}[K";

/// The progress of a number of renderings.
pub(super) struct Progress {
    all: usize,
    done: Cell<usize>,
    is_shown: Cell<bool>,
}

impl Progress {
    pub(super) const fn of(all: usize) -> Self {
        Self { all, done: Cell::new(0), is_shown: Cell::new(false) }
    }

    /// Counts a rendering that has ended.
    pub(super) fn count(&self) {
        self.done.update(|done| done + 1);
    }

    /// Keeps the line up to date on a terminal.
    pub(super) async fn show(&self) -> Infallible {
        if !stderr().is_terminal() {
            return pending().await;
        }
        let begin = Instant::now();
        sleep(SILENCE).await;
        self.is_shown.set(true);
        loop {
            let (done, all, seconds) = (self.done.get(), self.all, begin.elapsed().as_secs());
            eprint!(
                "{DELETE}Rendered {done} of {all} in {seconds} s. Ctrl-C ends it and prints the findings."
            );
            sleep(PAUSE).await;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown.get() {
            eprint!("{DELETE}");
        }
    }
}
