//! How far a long run has come, on a terminal only.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs with fewer files are over before anybody wonders.
const LONG: usize = 500;

/// How many files go by between two signs of life.
const STEP: usize = 100;

/// Counts files as they are read.
pub(super) struct Progress {
    total: usize,
    done: AtomicUsize,
    shown: bool,
}

impl Progress {
    pub(super) fn of(total: usize) -> Self {
        Self {
            total,
            done: AtomicUsize::new(0),
            shown: total >= LONG && io::stderr().is_terminal(),
        }
    }

    pub(super) fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if self.shown && done.is_multiple_of(STEP) {
            // Nothing depends on whether this line is seen.
            let _ = write!(io::stderr(), "\rread {done} of {} files", self.total);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
