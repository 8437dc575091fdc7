//! Runs `check`, `rules` and `capabilities` as users do, on systems whose files have links and
//! permissions and whose programs can be scripts. `.ci/wine` runs the program for Windows.

#![cfg(unix)]
// The helpers of tests are outside of the functions that clippy recognizes as tests.
#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has nothing else to say"
)]

/// The programs that a test needs. If they are missing, the test ends; the callee has printed the
/// reason.
macro_rules! or_skip {
    ($needed:expr) => {
        match $needed {
            Some(needed) => needed,
            None => return,
        }
    };
}

mod attacks;
mod bad_input;
#[path = "../harness/case_files.rs"]
mod case_files;
mod cases;
mod compare;
#[path = "../written/corpus.rs"]
mod corpus;
mod filter;
mod findings;
mod hidden;
mod others;
#[path = "../harness/output.rs"]
mod output;
mod page;
#[path = "../harness/programs.rs"]
#[allow(dead_code, unused_imports, reason = "the control plane itself is not needed here")]
mod programs;
mod quiet;
mod releases;
mod rendering;
mod repair;
mod server;
#[path = "../harness/shorthand.rs"]
#[allow(dead_code, reason = "cases write claims as any other object")]
mod shorthand;
#[path = "../written/mod.rs"]
mod written;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use output::{begins, code, err, fed, findings, has, out, program, report};
use serde_json::{Value, json};
use tempfile::TempDir;

const CLASS: &str = "\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gp3}
provisioner: ebs.csi.aws.com
";

const CLAIM: &str = "\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: gp3
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  strategy:   # we like it rolling
    type: RollingUpdate
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      volumes:
        - name: data
          persistentVolumeClaim: {claimName: data}
";

/// A repository with these files in it.
fn repository(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Writes an executable script.
fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Files with generated texts, in the form that [`repository`] takes.
fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(name, text)| (&**name, &**text)).collect()
}

fn shop() -> TempDir {
    repository(&[
        ("deploy/class.yaml", CLASS),
        ("deploy/web.yaml", DEPLOYMENT),
        ("deploy/z/claim.yaml", CLAIM),
    ])
}

/// Sets the command's folder and PATH.
fn on_path<'c>(command: &'c mut Command, folder: &Path, path: &Path) -> &'c mut Command {
    command.current_dir(folder).env_remove("KUBECONFIG").env("PATH", path)
}

/// All printed text.
fn both_streams(output: &Output) -> String {
    format!("{}{}", out(output), err(output))
}

fn run(folder: &TempDir, arguments: &[&str]) -> Output {
    run_with(folder, arguments, "")
}

fn run_with(folder: &TempDir, arguments: &[&str], input: &str) -> Output {
    // Without the machine's programs for rendering; the tests in `rendering` cover those.
    let mut command = program(arguments);
    fed(on_path(&mut command, folder.path(), Path::new("")), input)
}
