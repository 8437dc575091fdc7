//! Where the control plane's programs are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The folder that `tests/control-plane/build` has filled.
pub(crate) struct Programs(PathBuf);

/// What became of the search for the programs.
pub(crate) enum Located {
    /// They are there.
    Found(&'static Programs),
    /// This machine has neither them nor the means to compile them.
    Missing(String),
    /// Compiling them failed.
    Failed(String),
}

/// Runs `tests/control-plane/build` once per test binary. The first run on a machine
/// compiles for minutes, and its progress goes to this process's stderr.
pub(crate) fn locate() -> Located {
    static ANSWER: OnceLock<Result<Programs, (Option<i32>, String)>> = OnceLock::new();
    let answer = ANSWER.get_or_init(|| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/control-plane/build");
        let run = Command::new(script)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| (None, format!("{script} cannot be run: {error}.")))?;
        let stdout = String::from_utf8_lossy(&run.stdout);
        match (run.status.code(), stdout.lines().last()) {
            (Some(0), Some(folder)) => Ok(Programs(PathBuf::from(folder))),
            (code, _) => Err((
                code,
                format!("{script} ended with {}; see above.", run.status),
            )),
        }
    });
    match answer {
        Ok(programs) => Located::Found(programs),
        Err((Some(3), _)) => Located::Missing(
            "There is no Go to compile a Kubernetes control plane with, and KUBEBUILDER_ASSETS \
             names no folder with etcd, kube-apiserver and kubectl."
                .to_owned(),
        ),
        Err((_, reason)) => Located::Failed(reason.clone()),
    }
}

/// The folder of a Go module that the control plane is compiled from.
///
/// # Errors
///
/// A sentence that says what is missing.
pub(crate) fn module(name: &str) -> Result<PathBuf, String> {
    let run = Command::new("go")
        .args(["mod", "download", "-json", name])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/control-plane"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("There is no Go to find the module {name} with: {error}."))?;
    let answer: Value = serde_json::from_slice(&run.stdout).unwrap_or_default();
    match answer["Dir"].as_str() {
        Some(folder) if run.status.success() => Ok(folder.into()),
        _ => Err(format!(
            "Go does not find the module {name}: {}{}",
            answer["Error"].as_str().unwrap_or_default(),
            String::from_utf8_lossy(&run.stderr)
        )),
    }
}

impl Programs {
    /// The program of this name (`etcd`, `kubectl`, …).
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Whether the two programs of the control plane that KUBEBUILDER_ASSETS may
    /// lack are there.
    ///
    /// # Errors
    ///
    /// A sentence that names the first one missing.
    pub(crate) fn controllers(&self) -> Result<(), String> {
        for name in ["kube-controller-manager", "kube-scheduler"] {
            if !self.path(name).exists() {
                return Err(format!(
                    "KUBEBUILDER_ASSETS holds no {name} and there is no Go to compile it with."
                ));
            }
        }
        Ok(())
    }
}
