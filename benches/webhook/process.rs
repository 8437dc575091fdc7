//! Servers as separate processes, and their CPU time.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::shared::cluster::Size;
use crate::stand_in::StandIn;

/// The servers have this core for themselves; the client uses the other one.
const SERVER_CORE: &str = "0";
const CLIENT_CORE: &str = "1";

/// A running server. Dropping it kills it.
pub(crate) struct ServerProcess {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    pub(crate) ca: PathBuf,
    /// The time from the start of the process to its log line that it listens.
    pub(crate) started_in: Duration,
    process: Child,
}

impl ServerProcess {
    pub(crate) fn stand_in(stand_in: StandIn, folder: &Path) -> Result<Self, Box<dyn Error>> {
        let ca = folder.join(format!("{}.pem", stand_in.name()));
        let program = std::env::current_exe()?;
        Self::start(stand_in.name(), &program, &stand_in.arguments(&ca), ca)
    }

    /// The real program with the facts of a cluster of this size.
    pub(crate) fn guard(
        name: &'static str,
        size: Size,
        folder: &Path,
    ) -> Result<Self, Box<dyn Error>> {
        let facts = folder.join(name);
        write_facts(size, &facts)?;
        let ca = folder.join(format!("{name}.pem"));
        let arguments = [
            "serve",
            "--listen=127.0.0.1:0",
            "--admin=127.0.0.1:0",
            "--log-format=json",
            "--self-signed",
            &format!("--write-ca={}", ca.display()),
            &format!("--facts={}", facts.display()),
        ];
        let program = Path::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
        Self::start(name, program, &arguments.map(str::to_owned), ca)
    }

    fn start(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        ca: PathBuf,
    ) -> Result<Self, Box<dyn Error>> {
        let started = Instant::now();
        let mut process = Command::new("taskset")
            .args(["--cpu-list", SERVER_CORE])
            .arg(program)
            .args(arguments)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut log = BufReader::new(process.stderr.take().ok_or("no log")?);
        let mut said = String::new();
        let address = loop {
            let before = said.len();
            if log.read_line(&mut said)? == 0 {
                return Err(format!("{name} did not start, and said:\n{said}").into());
            }
            let event: Value = serde_json::from_str(&said[before..]).unwrap_or_default();
            if event["message"] == "listening" {
                break event["webhook"].as_str().unwrap_or_default().parse()?;
            }
        };
        // If nobody read the pipe, the server would block when it is full.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Ok(Self { name, address, ca, started_in: started.elapsed(), process })
    }

    /// The CPU time of all threads so far: `schedstat` counts nanoseconds (kernel documentation,
    /// "sched-stats").
    pub(crate) fn cpu_time(&self) -> Result<Duration, Box<dyn Error>> {
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            let stat = fs::read_to_string(task?.path().join("schedstat"))?;
            sum += stat.split(' ').next().unwrap_or_default().parse::<u64>()?;
        }
        Ok(Duration::from_nanos(sum))
    }

    /// The resident memory (`VmRSS` of `proc_pid_status(5)`).
    pub(crate) fn resident_mib(&self) -> Result<f64, Box<dyn Error>> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let kib = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"))
            .ok_or("no VmRSS")?;
        Ok(kib.parse::<f64>()? / 1024.0)
    }
}

/// Writes a cluster's objects as several files, because a file may have at most 64 MiB.
fn write_facts(size: Size, folder: &Path) -> Result<(), Box<dyn Error>> {
    const PER_FILE: usize = 20_000;
    fs::create_dir(folder)?;
    let mut manifests = size.manifests().peekable();
    let mut number = 0;
    while manifests.peek().is_some() {
        let mut file = BufWriter::new(File::create(folder.join(format!("{number}.yaml")))?);
        for manifest in manifests.by_ref().take(PER_FILE) {
            writeln!(file, "---\n{}", manifest.json)?;
        }
        file.into_inner()?.sync_all()?;
        number += 1;
    }
    Ok(())
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Keeps the client off the servers' core.
pub(crate) fn pin_this_process() {
    let pinned = Command::new("taskset")
        .args(["--all-tasks", "--cpu-list", "--pid", CLIENT_CORE])
        .arg(std::process::id().to_string())
        .stdout(Stdio::null())
        .status();
    if !pinned.is_ok_and(|status| status.success()) {
        println!("The client could not be kept off the servers' core: figures are less steady.");
    }
}
