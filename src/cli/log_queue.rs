//! Log lines on their way to whoever reads them.
//!
//! A reader that stops makes a write wait for ever, and with it the thread that logs. So
//! a thread of its own writes, and what it has not come to yet waits in memory, up to a
//! bound in bytes: lines name users and reasons, which may be long.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes that may wait: some 5,000 lines. Four times that are held at most: as much is being
/// written meanwhile, and a vector that grows may have twice the room that it needs.
const WAITING: usize = 2 * 1024 * 1024;

/// How long the last lines may take to be written.
const GOODBYE: Duration = Duration::from_secs(2);

/// Lines for the log, written in their order until dropped, and then those that wait.
pub(super) struct LogQueue(Arc<Shared>);

/// Where lines are put: no write to it waits or fails.
#[derive(Clone)]
pub(super) struct Lines(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Hears of each line that is lost.
    lost: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    is_ending: bool,
    has_ended: bool,
}

impl LogQueue {
    /// Begins to write to `log`. `lost` hears of each line for which there was no room, and
    /// of each that could not be written.
    pub(super) fn start(
        log: impl Write + Send + 'static,
        lost: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            lost: Box::new(lost),
        });
        let queue = Self(Arc::clone(&shared));
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || shared.write_to(log))?;
        Ok(queue)
    }

    /// Where to put lines.
    pub(super) fn lines(&self) -> Lines {
        Lines(Arc::clone(&self.0))
    }
}

impl Drop for LogQueue {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_ending = true;
        self.0.changed.notify_all();
        // Whether it is written or not: there is nobody to be told.
        let _ = (self.0.changed).wait_timeout_while(state, GOODBYE, |state| !state.has_ended);
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        if state.waiting.len() + line.len() <= WAITING {
            state.waiting.extend_from_slice(line);
            self.0.changed.notify_all();
        } else {
            (self.0.lost)();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_to(&self, mut log: impl Write) {
        while let Some(lines) = self.next() {
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                // To say so in the same log would fail too.
                if log.write_all(line).is_err() {
                    (self.lost)();
                }
            }
        }
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// The lines that wait, once there are any; `None` at the end.
    fn next(&self) -> Option<Vec<u8>> {
        let is_idle = |state: &mut State| state.waiting.is_empty() && !state.is_ending;
        let mut state = (self.changed)
            .wait_while(self.lock(), is_idle)
            .unwrap_or_else(PoisonError::into_inner);
        Some(mem::take(&mut state.waiting)).filter(|lines| !lines.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A log that takes a line once it is told to, and says what it took.
    struct Log {
        may: Receiver<io::Result<()>>,
        took: Sender<Vec<u8>>,
    }

    impl Write for Log {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.took.send(line.to_vec()).map_err(io::Error::other)?;
            self.may.recv().unwrap_or(Ok(()))?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Stage {
        queue: LogQueue,
        lost: Arc<AtomicUsize>,
        may: Sender<io::Result<()>>,
        took: Receiver<Vec<u8>>,
    }

    fn start() -> Stage {
        let ((may, told), (took, taken)) = (channel(), channel());
        let lost = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&lost);
        let count = move || {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        Stage {
            queue: LogQueue::start(Log { may: told, took }, count).unwrap(),
            lost,
            may,
            took: taken,
        }
    }

    #[test]
    fn lines_wait_for_a_log_up_to_a_bound_and_those_beyond_are_counted() {
        let Stage {
            queue,
            lost,
            may,
            took,
        } = start();
        let mut lines = queue.lines();
        lines.write_all(b"first\n").unwrap();
        // It is being written, and no more is until the log may go on.
        assert_eq!(took.recv().unwrap(), b"first\n");
        let long = [vec![b'a'; WAITING - 9], b"\n".to_vec()].concat();
        lines.write_all(&long).unwrap();
        lines.write_all(b"fits in\n").unwrap();
        assert_eq!(lost.load(Ordering::Relaxed), 0);
        lines.write_all(b"one too many\n").unwrap();
        assert_eq!(lost.load(Ordering::Relaxed), 1);
        drop(may);
        drop(queue);
        let written: Vec<_> = took.iter().collect();
        assert!(written == [long, b"fits in\n".to_vec()], "all that waited");
    }

    #[test]
    fn a_line_that_cannot_be_written_is_counted_and_the_next_one_is_tried() {
        let Stage {
            queue,
            lost,
            may,
            took,
        } = start();
        may.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        drop(may);
        for line in ["lost\n", "written\n"] {
            queue.lines().write_all(line.as_bytes()).unwrap();
        }
        drop(queue);
        assert_eq!(took.iter().count(), 2);
        assert_eq!(lost.load(Ordering::Relaxed), 1);
    }
}
