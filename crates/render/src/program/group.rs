//! Programs and their child processes, which are stopped together.
//!
//! The command `helm` may be a script that starts the real program, and stopping only the script
//! would leave the real one running. Therefore each program leads its own process group. A terminal
//! interrupts only the foreground group, so this program must pass the signal on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::process::{Child, Command};

/// The process groups that are running.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    leaders: Arc<Mutex<BTreeSet<i32>>>,
}

/// A group that is stopped when this is dropped.
pub(super) struct Group {
    groups: Groups,
    leader: i32,
}

impl Groups {
    /// All groups of this program. If this program is interrupted, the groups are stopped first.
    pub(crate) fn watched() -> Self {
        static ALL: OnceLock<Groups> = OnceLock::new();
        let start = || {
            let groups = Self::default();
            #[cfg(unix)]
            {
                let groups = groups.clone();
                std::thread::spawn(move || interrupts::wait(&groups));
            }
            groups
        };
        ALL.get_or_init(start).clone()
    }

    /// Makes the process of `command` the leader of a group.
    pub(super) fn lead(command: &mut Command) {
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(not(unix))]
        let _ = command;
    }

    /// The group that `child` leads; `None` if the child has ended.
    pub(super) fn of(&self, child: &Child) -> Option<Group> {
        let leader = i32::try_from(child.id()?).ok()?;
        let mut leaders = self.leaders.lock().unwrap_or_else(PoisonError::into_inner);
        leaders.insert(leader);
        Some(Group {
            groups: self.clone(),
            leader,
        })
    }

    fn remove(&self, leader: i32) -> bool {
        let mut leaders = self.leaders.lock().unwrap_or_else(PoisonError::into_inner);
        leaders.remove(&leader)
    }
}

impl Group {
    /// Forgets the group: its leader has ended, and another process may soon get its number.
    pub(super) fn ended(self) {
        self.groups.remove(self.leader);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.groups.remove(self.leader) {
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
    use std::sync::PoisonError;

    use tokio::runtime::Builder;
    use tokio::signal::unix::{SignalKind, signal};

    use super::{Groups, stop};

    /// Waits for a signal that ends this program, then stops all groups and exits.
    pub(super) fn wait(groups: &Groups) {
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
        let leaders = groups.leaders.lock();
        for leader in leaders.unwrap_or_else(PoisonError::into_inner).iter() {
            stop(*leader);
        }
        // A shell reports a program that was ended by a signal in the same way.
        std::process::exit(128 + number);
    }
}
