//! Programs and their child processes, which are stopped together.
//!
//! The command `helm` may be a script that starts the real program, and stopping only the script
//! would leave the real one running. Therefore each program leads its own process group. A terminal
//! interrupts only the foreground group, so this program must pass the signal on.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::process::{Child, Command};

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
    /// groups are stopped first.
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

    use super::{leaders, stop};

    /// Waits for a signal that ends this program, then stops all groups and exits.
    pub(super) fn wait() {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
            return;
        };
        let number = runtime.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt()).ok()?;
            let mut terminate = signal(SignalKind::terminate()).ok()?;
            Some(tokio::select! {
                _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
                _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
            })
        });
        let Some(number) = number else { return };
        // The lock is kept until the exit, so that no group is added.
        let leaders = leaders();
        for leader in leaders.iter() {
            stop(*leader);
        }
        // A shell reports a program that was ended by a signal in the same way.
        std::process::exit(128 + number);
    }
}
