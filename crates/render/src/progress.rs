//! What a run says meanwhile: how far a long one has come, on a terminal only, and sentences.

use std::io::{self, IsTerminal, Stderr, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Tells the user a sentence.
pub(crate) type Say = fn(&str);

/// Runs with fewer files are over before anybody wonders.
const LONG: usize = 500;

/// How many files go by between two signs of life.
const STEP: usize = 100;

/// Counts files as they are read, and clears its line when it is dropped.
pub(super) struct Progress<W: Write> {
    total: usize,
    done: AtomicUsize,
    terminal: Option<Mutex<W>>,
}

impl Progress<Stderr> {
    /// For `total` files, on standard error if that is a terminal.
    pub(super) fn of(total: usize) -> Self {
        let stderr = io::stderr();
        Self::on(Some(stderr).filter(Stderr::is_terminal), total)
    }
}

impl<W: Write> Progress<W> {
    fn on(terminal: Option<W>, total: usize) -> Self {
        Self {
            total,
            done: AtomicUsize::new(0),
            terminal: terminal.filter(|_| total >= LONG).map(Mutex::new),
        }
    }

    pub(super) fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(STEP) {
            self.write(&format!("\rread {done} of {} files", self.total));
        }
    }

    fn write(&self, text: &str) {
        if let Some(terminal) = &self.terminal {
            let mut terminal = terminal.lock().unwrap_or_else(PoisonError::into_inner);
            // Nothing depends on whether this line is seen.
            let _ = terminal.write_all(text.as_bytes());
        }
    }
}

impl<W: Write> Drop for Progress<W> {
    fn drop(&mut self) {
        self.write("\r\x1b[K");
    }
}

#[cfg(test)]
mod tests {
    use super::{LONG, Progress};

    fn seen(total: usize) -> String {
        let mut terminal = Vec::new();
        let progress = Progress::on(Some(&mut terminal), total);
        for _ in 0..total {
            progress.step();
        }
        drop(progress);
        String::from_utf8(terminal).unwrap()
    }

    #[test]
    fn a_long_run_shows_signs_of_life_and_leaves_nothing_behind() {
        let text = seen(LONG);
        assert!(text.starts_with("\rread 100 of 500 files\r"), "{text:?}");
        assert!(
            text.ends_with("\rread 500 of 500 files\r\x1b[K"),
            "{text:?}"
        );
    }

    #[test]
    fn a_short_run_shows_nothing() {
        assert_eq!(seen(LONG - 1), "");
    }
}
