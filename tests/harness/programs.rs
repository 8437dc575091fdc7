//! The search for the programs of the control plane.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The folder that `tests/control-plane/build` has filled.
pub(crate) struct Programs(PathBuf);

/// The result of the search for the programs.
pub(crate) enum Located {
    /// The programs exist.
    Found(Programs),
    /// This machine has neither them nor the means to compile them.
    Missing(String),
    /// Compiling them failed.
    Failed(String),
}

/// The Kubernetes minors that can be tested: the lines of `tests/control-plane/minors`.
pub(crate) fn minors() -> Vec<&'static str> {
    let releases = include_str!("../control-plane/minors").lines();
    let minors = releases.map(|release| {
        let number = release.trim_start_matches('v');
        number.rsplit_once('.').map_or(number, |(minor, _)| minor)
    });
    minors.collect()
}

/// The minor that this process tests: `MINOR`, or the first in the list.
pub(crate) fn minor() -> String {
    std::env::var("MINOR").unwrap_or_else(|_| minors()[0].to_owned())
}

/// Whether this process plays scenarios on nodes with kubelets, which take minutes more to compile:
/// `PLAY` is `all` or `once`.
pub(crate) fn with_kubelets() -> bool {
    std::env::var("PLAY").is_ok_and(|play| play == "all" || play == "once")
}

/// Whether this is `make test`, which skips programs and tests that need much time; `make test-all`
/// has them.
pub(crate) fn quick() -> bool {
    std::env::var_os("QUICK").is_some()
}

/// Runs `tests/control-plane/build` once per test binary. The first run on a machine compiles for
/// minutes and writes its progress to this process's stderr.
pub(crate) fn locate() -> &'static Located {
    static ANSWER: OnceLock<Located> = OnceLock::new();
    ANSWER.get_or_init(|| {
        let minor = minor();
        let kubelets = with_kubelets().then_some("kubelets");
        let renderers = (!quick()).then_some("renderers");
        let arguments: Vec<&str> =
            [Some(&*minor), kubelets, renderers].into_iter().flatten().collect();
        match filled("build", &arguments) {
            Ok(Some(folder)) => Located::Found(Programs(folder)),
            Ok(None) => Located::Missing(
                "There is no Go to compile a Kubernetes control plane with, and KUBEBUILDER_ASSETS \
                 names no folder with etcd, kube-apiserver and kubectl."
                    .to_owned(),
            ),
            Err(reason) => Located::Failed(reason),
        }
    })
}

/// The folder that a script of `tests/control-plane` has filled; `None` without Go.
///
/// # Errors
///
/// A sentence if the script fails.
pub(crate) fn filled(script: &str, arguments: &[&str]) -> Result<Option<PathBuf>, String> {
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/control-plane");
    let run = Command::new(Path::new(scripts).join(script))
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{script} cannot be run: {error}."))?;
    let printed = String::from_utf8_lossy(&run.stdout);
    match (run.status.code(), printed.lines().last()) {
        (Some(0), Some(folder)) => Ok(Some(folder.into())),
        (Some(3), _) => Ok(None),
        _ => Err(format!("{script} ended with {}; see above.", run.status)),
    }
}

/// The folder of a Go module from which the control plane of a minor is compiled, or of another
/// module with its version, as in `example.com/module@v1.2.3`.
///
/// # Errors
///
/// A sentence about the missing part.
pub(crate) fn module(minor: &str, name: &str) -> Result<PathBuf, String> {
    let release = include_str!("../control-plane/minors")
        .lines()
        .find(|release| release.starts_with(&format!("v{minor}.")))
        .ok_or_else(|| format!("tests/control-plane/minors has no Kubernetes {minor}."))?;
    let version = match name {
        "k8s.io/kubernetes" => release.to_owned(),
        _ => release.replacen("v1.", "v0.", 1),
    };
    let module = if name.contains('@') { name.to_owned() } else { format!("{name}@{version}") };
    let run = Command::new("go")
        .args(["mod", "download", "-json", &module])
        .current_dir(std::env::temp_dir())
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
    /// The path of the program with this name (`etcd`, `kubectl`, …).
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Checks that the programs with these names exist; KUBEBUILDER_ASSETS may lack some.
    ///
    /// # Errors
    ///
    /// A sentence that names the first missing program.
    pub(crate) fn have(&self, names: &[&str]) -> Result<(), String> {
        match names.iter().find(|name| !self.path(name).exists()) {
            None => Ok(()),
            Some(name) => Err(format!(
                "KUBEBUILDER_ASSETS holds no {name} and there is no Go to compile it with."
            )),
        }
    }
}
