//! Programs and their child processes, which are stopped together.
//!
//! The command `helm` may be a script that starts the real program, and stopping only the script
//! would leave the real one running. Therefore each program leads its own process group. A terminal
//! interrupts only the foreground group, so this program must pass the signal on.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::process::{Child, Command};

/// Whether the user has interrupted the run.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether the user has interrupted the run. Nothing is rendered then, and the exit code says so.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The leaders of the groups that are running.
static LEADERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn leaders() -> MutexGuard<'static, BTreeSet<i32>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A group that is stopped when this is dropped.
pub(super) struct Group {
    leader: i32,
}

impl Group {
    /// Makes the process of `command` the leader of a group. If this program is interrupted, all
    /// groups are stopped. It reports its findings then, unless it is interrupted again.
    pub(super) fn lead(command: &mut Command) {
        #[cfg(unix)]
        {
            static WATCH: std::sync::Once = std::sync::Once::new();
            WATCH.call_once(|| {
                std::thread::spawn(interrupts::wait);
            });
            command.process_group(0);
        }
        #[cfg(not(unix))]
        let _ = command;
    }

    /// The group that `child` leads; `None` if the child has ended.
    pub(super) fn of(child: &Child) -> Option<Self> {
        let leader = i32::try_from(child.id()?).ok()?;
        leaders().insert(leader);
        // It may have started while the others were stopped.
        if is_interrupted() {
            stop(leader);
        }
        Some(Self { leader })
    }

    /// Forgets the group: its leader has ended, and another process may soon get its number.
    pub(super) fn ended(self) {
        leaders().remove(&self.leader);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let is_running = leaders().remove(&self.leader);
        if is_running {
            stop(self.leader);
        }
    }
}

#[cfg(unix)]
fn stop(leader: i32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(leader) = Pid::from_raw(leader) {
        // The group may already have ended.
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

/// On other systems, only the program itself is stopped, with its [`Child`].
#[cfg(not(unix))]
fn stop(_leader: i32) {}

#[cfg(unix)]
mod interrupts {
    use tokio::runtime::Builder;
    use tokio::signal::unix::{SignalKind, signal};

    use super::{INTERRUPTED, Ordering, leaders, stop};

    /// Waits for signals. All of them stop all groups; the first interrupt does no more, and all
    /// others end this program.
    pub(super) fn wait() {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
            return;
        };
        let number = runtime.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt()).ok()?;
            let mut terminate = signal(SignalKind::terminate()).ok()?;
            for is_first in [true, false] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => return Some(SignalKind::terminate().as_raw_value()),
                }
                if is_first {
                    INTERRUPTED.store(true, Ordering::Relaxed);
                    leaders().iter().copied().for_each(stop);
                }
            }
            Some(SignalKind::interrupt().as_raw_value())
        });
        let Some(number) = number else { return };
        // The lock is kept until the exit, so that no group is added.
        let leaders = leaders();
        leaders.iter().copied().for_each(stop);
        // A shell reports a program that was ended by a signal in the same way.
        std::process::exit(128 + number);
    }
}
