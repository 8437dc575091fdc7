//! Log lines on their way to their reader.
//!
//! If a reader stops, a write waits forever, and with it the thread that logs. So the thread of
//! tracing-appender writes, and unwritten lines wait in memory, up to a bound in bytes: lines name
//! users and reasons, which may be long.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

/// The number of bytes that may wait.
const WAITING: usize = 2 * 1024 * 1024;

/// The number of lines that may wait.
const LINES: usize = 8 * 1024;

/// The input of the queue. Its lines are written in their order, and no write to it waits or fails.
#[derive(Clone)]
pub(super) struct Lines {
    queue: NonBlocking,
    shared: Arc<Shared>,
}

struct Shared {
    /// The room of the lines that are not written yet.
    waiting: AtomicUsize,
    /// Called for each line that is lost.
    lost: Box<dyn Fn() + Send + Sync>,
}

/// The log itself, on the thread that writes.
struct Log<W> {
    log: W,
    shared: Arc<Shared>,
}

/// The room that a line takes. At the smallest room per line, [`LINES`] lines fill the queue.
fn room(line: &[u8]) -> usize {
    line.len().max(WAITING / LINES)
}

/// Begins to write to `log`. Calls `lost` for each line for which there is no room, and for
/// each that cannot be written. When the guard is dropped, the lines that still wait are written,
/// for a second at most.
pub(super) fn start(
    log: impl Write + Send + 'static,
    lost: impl Fn() + Send + Sync + 'static,
) -> (Lines, WorkerGuard) {
    let shared = Arc::new(Shared { waiting: AtomicUsize::new(0), lost: Box::new(lost) });
    let log = Log { log, shared: Arc::clone(&shared) };
    let (queue, writer) = NonBlockingBuilder::default()
        .thread_name("log")
        // One more line ends the queue.
        .buffered_lines_limit(LINES + 1)
        .finish(log);
    (Lines { queue, shared }, writer)
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let with_line = |waiting| Some(waiting + room(line)).filter(|all| *all <= WAITING);
        let waiting = &self.shared.waiting;
        match waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_line) {
            Ok(_) => self.queue.write(line),
            Err(_) => {
                (self.shared.lost)();
                Ok(line.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> Write for Log<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // A message about it in the same log would fail, too.
        if self.log.write_all(line).is_err() {
            (self.shared.lost)();
        }
        self.shared.waiting.fetch_sub(room(line), Ordering::Relaxed);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.log.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that is full for one write.
    struct Disk(bool);

    impl Write for Disk {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, false) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_cannot_be_written_is_counted_and_the_next_one_is_tried() {
        let lost = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&lost);
        let (mut lines, writer) = start(Disk(true), move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        for line in ["lost\n", "written\n"] {
            lines.write_all(line.as_bytes()).unwrap();
        }
        drop(writer);
        assert_eq!(lost.load(Ordering::Relaxed), 1);
    }
}
