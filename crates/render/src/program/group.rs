//! Programs and all that they start, which are stopped together.
//!
//! What is called `helm` may be a script that starts the real one, and stopping the
//! script alone would leave the other running. So each program leads a process group
//! of its own. A terminal interrupts only the group in front of it, and passing that on
//! is for us to do.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::process::{Child, Command};

/// The process groups that run now.
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
    /// All groups of this program. When somebody interrupts it, they are stopped first.
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

    /// Makes what `command` starts the leader of a group.
    pub(super) fn lead(command: &mut Command) {
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(not(unix))]
        let _ = command;
    }

    /// The group that `child` leads; `None` where it has ended.
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
    /// The leader has ended, and its number may be somebody else's soon.
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
        // It may have ended by itself.
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

/// There, the program itself is stopped with its [`Child`].
#[cfg(not(unix))]
fn stop(_leader: i32) {}

#[cfg(unix)]
mod interrupts {
    use std::sync::PoisonError;

    use tokio::runtime::Builder;
    use tokio::signal::unix::{SignalKind, signal};

    use super::{Groups, stop};

    /// Waits until this program is to end, and ends it and all groups.
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
        // As a shell reports a program that a signal ended.
        std::process::exit(128 + number);
    }
}
