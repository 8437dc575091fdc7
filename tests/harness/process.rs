//! Programs that a test process starts and that never outlive it.
//!
//! A `static` is never dropped, and a test process may be killed, so destructors alone would leave
//! servers behind. Each program therefore runs under `keeper.sh`, which ends it as soon as the pipe
//! from the test process closes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::wait_until;

/// A running program with its log file.
pub(crate) struct Program {
    name: String,
    folder: PathBuf,
    log: PathBuf,
    /// The command that starts it.
    command: Mutex<Command>,
    run: Mutex<Run>,
}

/// One run of a program.
struct Run {
    keeper: Child,
    orders: Option<ChildStdin>,
}

impl Program {
    /// Starts `program`, with both of its output streams in `folder/log`. `folder` belongs to the
    /// program: it is made here and removed when this value is dropped or the test process ends.
    /// Its parent folder is removed too once it is empty. Both are kept if `KEEP_LOGS` is set.
    pub(crate) fn start(
        name: &str,
        program: &Path,
        arguments: &[String],
        environment: &[(&str, &str)],
        folder: &Path,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let log = folder.join("log");
        let mut command = Command::new("sh");
        command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/harness/keeper.sh"))
            .args([folder, program])
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            // Ctrl-C and `timeout` signal the whole process group of the test; the keeper must
            // survive that.
            .process_group(0);
        let run = Run::begin(&mut command, File::create(&log)?)?;
        Ok(Self {
            name: name.to_owned(),
            folder: folder.to_owned(),
            log,
            command: Mutex::new(command),
            run: Mutex::new(run),
        })
    }

    /// Starts a program that has ended once more, with the same command. Its output is appended to
    /// the log.
    pub(crate) fn start_again(&self) -> io::Result<()> {
        let output = File::options().append(true).open(&self.log)?;
        let run = Run::begin(&mut self.command.lock().unwrap(), output)?;
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = run;
        Ok(())
    }

    /// Sends the signal with this name (`TERM`, `STOP`, …) to the program.
    pub(crate) fn signal(&self, name: &str) {
        let run = self.run.lock().unwrap();
        let mut orders = run.orders.as_ref().unwrap();
        writeln!(orders, "{name}").expect("the keeper of a running program reads its orders");
    }

    /// Kills the program if it still runs.
    pub(crate) fn end(&self) {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        run.orders = None;
        let _ = run.keeper.wait();
    }

    /// The exit status if the program has ended; a program killed by signal `n` exits with 128 +
    /// `n`.
    pub(crate) fn exited(&self) -> Option<ExitStatus> {
        self.run.lock().unwrap().keeper.try_wait().unwrap()
    }

    /// Waits until the program ends by itself or by an earlier signal.
    ///
    /// # Errors
    ///
    /// A sentence with the tail of the log if the program still runs after `within`.
    pub(crate) fn wait(&self, within: Duration) -> Result<ExitStatus, String> {
        wait_until(&format!("{} to end", self.name), within, || {
            self.exited().ok_or_else(|| self.log_tail())
        })
    }

    /// The output of the program so far, both streams together.
    pub(crate) fn log(&self) -> String {
        std::fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// The last 4 KiB of [`Self::log`], introduced by the program's name.
    pub(crate) fn log_tail(&self) -> String {
        const TAIL: u64 = 4096;
        let mut tail = Vec::new();
        if let Ok(mut file) = File::open(&self.log) {
            let length = file.metadata().map_or(0, |metadata| metadata.len());
            let _ = file.seek(SeekFrom::Start(length.saturating_sub(TAIL)));
            let _ = file.read_to_end(&mut tail);
        }
        format!("The log of {} ends with:\n{}", self.name, String::from_utf8_lossy(&tail))
    }
}

impl Run {
    fn begin(command: &mut Command, output: File) -> io::Result<Self> {
        let command = command.stdout(output.try_clone()?).stderr(output);
        let mut keeper = command.spawn()?;
        let orders = keeper.stdin.take();
        Ok(Self { keeper, orders })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
        if std::env::var_os("KEEP_LOGS").is_none() {
            // The keeper has done this already, unless the program ended by itself.
            let _ = std::fs::remove_dir_all(&self.folder);
            let _ = self.folder.parent().map(std::fs::remove_dir);
        }
    }
}

/// A loopback port on which nobody listens. Another process may take it before it is used, so every
/// start here is repeated if its port is taken.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Whether this log says that the program's port was taken.
pub(crate) fn says_port_taken(log: &str) -> bool {
    let log = log.to_lowercase();
    log.contains("address already in use") || log.contains("address in use")
}
