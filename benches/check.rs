//! The cost of `check`, compared with only reading and parsing the same files with the same parser:
//! 10,000 files, each a Deployment and its claim, 4.2 KB. Prints ratios of processor time and the
//! peak memory, next to the goals.

#![allow(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

#[path = "shared/processors.rs"]
mod processors;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use manifest::find::{Exclude, find};
use manifest::read::read;
use processors::children;

/// The number of files, each with a Deployment and a claim.
const FILES: usize = 10_000;

/// The number of runs of each program. The best one counts, because other work on the machine can
/// only make it slower.
const RUNS: usize = 5;

/// Set when this program starts itself in order to read and parse a directory, and nothing else.
const PARSE: &str = "MULTI_ATTACH_GUARD_BENCH_PARSE";

const CLASS: &str = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: gp3}\nprovisioner: ebs.csi.aws.com\n";

const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], storageClassName: gp3}\n";

fn main() {
    if let Some(directory) = env::var_os(PARSE) {
        parse(Path::new(&directory));
        return;
    }
    for (what, every, goal) in [
        ("no file at fault", None, 1.3),
        ("one file in ten at fault", Some(10), 1.4),
        ("every file at fault", Some(1), 2.0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let bytes = generate(folder.path(), every);
        println!("{FILES} files, {:.1} MB, {what}:", megabytes(bytes));
        let parsing = best(|| {
            let mut command = Command::new(env::current_exe().unwrap());
            command.env(PARSE, folder.path());
            command
        });
        let checking = best(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
            command.args(["check", "--format", "json"]).arg(folder.path());
            command
        });
        println!("  reading and parsing:  {}", parsing.shown());
        println!("  check:                {}", checking.shown());
        println!(
            "  check beside parsing: {:.2} (goal: {goal:.2} at most)",
            checking.processors.as_secs_f64() / parsing.processors.as_secs_f64()
        );
        println!(
            "  memory of check:      {:.0} MB (goal: 150 at most)",
            megabytes(checking.memory)
        );
    }
    crowds();
}

/// Many workloads on one claim, in one file or in one file each.
fn crowds() {
    for files in [1, FILES] {
        println!("{FILES} workloads on one claim, in {files} files (goal: 2 s at most):");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("class.yaml"), CLASS).unwrap();
        fs::write(folder.path().join("claim.yaml"), CLAIM).unwrap();
        let mut texts = vec![String::new(); files];
        for number in 0..FILES {
            texts[number % files] += &format!(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: app-{number}}}\nspec:\n  selector: {{matchLabels: {{app: a}}}}\n  template:\n    metadata: {{labels: {{app: a}}}}\n    spec:\n      volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]\n---\n"
            );
        }
        for (number, text) in texts.iter().enumerate() {
            fs::write(folder.path().join(format!("{number:05}.yaml")), text).unwrap();
        }
        let checking = best(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
            command.args(["check", "--format", "json"]).arg(folder.path());
            command
        });
        println!("  check:                {}", checking.shown());
    }
}

fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1_000_000.0
}

/// Reads and parses everything under `directory`, and discards the result.
fn parse(directory: &Path) {
    let found = find(&[directory.to_owned()], &Exclude::nothing(), &mut std::io::empty());
    let reading = read(&found.sources, |_, manifest| {
        black_box(manifest.tree);
    });
    assert!(reading.errors.is_empty());
}

/// Writes the files; one in `every` has a strategy that is at fault. Returns the number of bytes.
fn generate(directory: &Path, every: Option<usize>) -> usize {
    fs::write(directory.join("class.yaml"), CLASS).unwrap();
    let mut bytes = CLASS.len();
    for number in 0..FILES {
        let at_fault = every.is_some_and(|every| number % every == 0);
        let text = manifest(number, at_fault);
        bytes += text.len();
        fs::write(directory.join(format!("app-{number:05}.yaml")), text).unwrap();
    }
    bytes
}

fn manifest(number: usize, at_fault: bool) -> String {
    let strategy = if at_fault { "" } else { "  strategy:\n    type: Recreate\n" };
    let namespace = number % 50;
    let mut env = String::new();
    for variable in 0..27 {
        let _ = write!(
            env,
            "            - name: SETTING_{variable:02}\n              value: \"value-{variable}-of-{number}\"\n"
        );
    }
    let mut volumes = String::new();
    for config in 0..6 {
        let _ = write!(
            volumes,
            "        - name: config-{config}\n          configMap:\n            name: app-{number}-{config}\n            defaultMode: 0440\n"
        );
    }
    format!(
        "\
# Application {number}, kept by team {namespace}.
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data-{number}
  namespace: team-{namespace}
  labels:
    app.kubernetes.io/name: app-{number}
spec:
  accessModes:
    - ReadWriteOnce
  storageClassName: gp3
  resources:
    requests:
      storage: 10Gi
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-{number}
  namespace: team-{namespace}
  labels:
    app.kubernetes.io/name: app-{number}
    app.kubernetes.io/part-of: platform
spec:
  replicas: 1
{strategy}  selector:
    matchLabels:
      app.kubernetes.io/name: app-{number}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: app-{number}
      annotations:
        prometheus.io/scrape: \"true\"
        prometheus.io/port: \"8080\"
        checksum/config: 01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b
    spec:
      securityContext:
        runAsNonRoot: true
        fsGroup: 1000
      containers:
        - name: app
          image: registry.example.com/team-{namespace}/app-{number}:1.2.3
          ports:
            - name: http
              containerPort: 8080
          env:
{env}          resources:
            requests:
              cpu: 100m
              memory: 128Mi
            limits:
              memory: 256Mi
          readinessProbe:
            httpGet:
              path: /healthz
              port: http
            periodSeconds: 10
          livenessProbe:
            httpGet:
              path: /healthz
              port: http
            initialDelaySeconds: 30
          volumeMounts:
            - name: data
              mountPath: /var/lib/app
      volumes:
        - name: data
          persistentVolumeClaim:
            claimName: data-{number}
{volumes}"
    )
}

/// The cost of one run of a program.
struct Cost {
    wall: Duration,
    /// The time on all processors together.
    processors: Duration,
    /// The peak memory, in bytes.
    memory: usize,
}

impl Cost {
    fn shown(&self) -> String {
        format!(
            "{:.2} s, with {:.2} s on {:.1} of {} processors",
            self.wall.as_secs_f64(),
            self.processors.as_secs_f64(),
            self.processors.as_secs_f64() / self.wall.as_secs_f64(),
            available_parallelism().unwrap(),
        )
    }
}

/// The run with the least processor time.
fn best(command: impl Fn() -> Command) -> Cost {
    (0..RUNS).map(|_| cost(command())).min_by_key(|cost| cost.processors).unwrap()
}

fn cost(mut command: Command) -> Cost {
    let before = children();
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut memory = 0;
    // The kernel forgets the peak when the process ends, so it is read repeatedly.
    loop {
        memory = memory.max(peak(child.id()).unwrap_or_default());
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Cost { wall: start.elapsed(), processors: children() - before, memory }
}

/// `VmHWM` of `proc_pid_status(5)`, in bytes.
fn peak(process: u32) -> Option<usize> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
