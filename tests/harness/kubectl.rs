//! The real kubectl, as a user would run it.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::asking::{FIRST_PAUSE, LONGEST_PAUSE};
use super::control_plane::ControlPlane;
use super::machine::patient;
use super::output::fed;

/// The result of one run of a command.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// The command line, for messages.
    pub(crate) command: String,
    /// Its exit code; -1 when a signal ended it.
    pub(crate) status: i32,
    /// Its standard output.
    pub(crate) stdout: String,
    /// Its standard error: kubectl prints warnings and rejections here.
    pub(crate) stderr: String,
}

/// The time during which a failed command is repeated.
const REPEATED_FOR: Duration = Duration::from_secs(60);

/// Messages of kubectl if the API server was too busy to answer.
const BUSY: [&str; 12] = [
    "Unable to connect to the server",
    " was refused - did you specify the right host or port?",
    "connection reset by peer",
    "TLS handshake timeout",
    "http2: client connection lost",
    "unexpected EOF",
    // The schemas of the API server, which kubectl reads first, did not come in time.
    "unexpected error when reading response body",
    "did not complete within requested timeout",
    "the server is currently unable to handle the request",
    "etcdserver: request timed out",
    "etcdserver: leader changed",
    // `kubectl wait` fails if an object that was just created has no status yet.
    ".status.conditions accessor error: <nil>",
];

impl Output {
    /// Whether a busy API server may answer the next attempt. A webhook's message is an answer.
    fn is_of_a_busy_server(&self) -> bool {
        let busy = BUSY.iter().any(|sign| self.stderr.contains(sign));
        self.status != 0 && busy && !self.stderr.contains("webhook")
    }

    /// Asserts exit code 0 and returns the output.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        assert_eq!(self.status, 0, "{self:#?}");
        self
    }

    /// An error with the whole output if the exit code is not 0.
    pub(crate) fn done(&self) -> Result<(), String> {
        if self.status == 0 { Ok(()) } else { Err(format!("{self:#?}")) }
    }

    /// Asserts an exit code other than 0 and returns the output.
    #[track_caller]
    pub(crate) fn failure(self) -> Self {
        assert_ne!(self.status, 0, "{self:#?}");
        self
    }
}

/// The time limit of a command on an idle machine; the longest command takes a minute there.
const LONGEST_RUN: Duration = Duration::from_secs(300);

/// A command that, after the time limit, is ended with all processes that it has started.
fn limited(program: impl AsRef<OsStr>) -> Command {
    let mut limited = Command::new("timeout");
    let seconds = patient(LONGEST_RUN).as_secs().to_string();
    limited.args(["--kill-after=10", &seconds]).arg(program);
    limited
}

impl ControlPlane {
    /// A kubeconfig with the administrator's credentials that impersonates another user.
    pub(crate) fn kubeconfig_as(&self, user: &str, groups: &[&str]) -> PathBuf {
        let text = std::fs::read(self.kubeconfig()).unwrap();
        let mut config: Value = serde_json::from_slice(&text).unwrap();
        let account = &mut config["users"][0]["user"];
        account["as"] = json!(user);
        if !groups.is_empty() {
            account["as-groups"] = json!(groups);
        }
        let name = format!("{}.kubeconfig", user.replace(':', "-"));
        self.write_file(&name, &config.to_string())
    }

    /// A printed command, for a shell that finds this kubectl and this guard. Some printed commands
    /// wait for hours or for ever: after [`LONGEST_RUN`] a command is ended, with code 124.
    pub(crate) fn printed(&self, command: &str) -> Command {
        let kubectl = self.programs.path("kubectl");
        let guard = Path::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
        let path = std::env::var("PATH").unwrap_or_default();
        let [kubectl, guard] = [&kubectl, guard].map(|program| program.parent().unwrap().display());
        let mut shell = limited("sh");
        shell
            .args(["-c", command])
            .env("PATH", format!("{kubectl}:{guard}:{path}"))
            .env("KUBECONFIG", &self.kubeconfig);
        shell
    }

    /// The result of `kubectl get` with these arguments; asserts that it succeeds.
    #[track_caller]
    pub(crate) fn get(&self, arguments: &[&str]) -> Value {
        let get = [&["get", "-o=json"], arguments].concat();
        serde_json::from_str(&self.kubectl(&get, None).success().stdout).unwrap()
    }

    /// Defines a custom kind by `definition.yaml`.
    pub(crate) fn define(&self, group: &str, version: &str, kind: &str) {
        let singular = kind.to_lowercase();
        let definition = include_str!("definition.yaml")
            .replace("GROUP", group)
            .replace("VERSION", version)
            .replace("SINGULAR", &singular)
            .replace("KIND", kind);
        self.kubectl(&["apply", "-f", "-"], Some(&definition)).success();
        let crd = format!("crd/{singular}s.{group}");
        self.run(&format!("wait --for=condition=Established {crd} --timeout=120s"));
    }

    /// Runs kubectl with `arguments`, as the administrator of this cluster, and with `stdin` on its
    /// standard input (`-f -`). It repeats the command if a busy API server did not answer. A
    /// `--timeout` is longer on a slow machine.
    pub(crate) fn kubectl(&self, arguments: &[&str], stdin: Option<&str>) -> Output {
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut output = self.kubectl_once(arguments, stdin);
        while output.is_of_a_busy_server() && began.elapsed() < patient(REPEATED_FOR) {
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            output = self.kubectl_once(arguments, stdin);
            // The error shows that the earlier attempt succeeded.
            let done = match arguments.first() {
                Some(&"create") => "(AlreadyExists)",
                Some(&"delete") => "(NotFound)",
                _ => continue,
            };
            let mut errors = output.stderr.lines().filter(|line| line.starts_with("Error"));
            if output.status != 0 && errors.all(|line| line.contains(done)) {
                output.status = 0;
            }
        }
        output
    }

    fn kubectl_once(&self, arguments: &[&str], stdin: Option<&str>) -> Output {
        let patiently = arguments.iter().map(|argument| {
            let seconds = argument
                .strip_prefix("--timeout=")
                .and_then(|limit| limit.strip_suffix('s')?.parse().ok());
            match seconds.map(Duration::from_secs).map(patient) {
                Some(limit) => format!("--timeout={}s", limit.as_secs()),
                None => (*argument).to_owned(),
            }
        });
        let mut command = limited(self.programs.path("kubectl"));
        command
            .args(patiently)
            .env("KUBECONFIG", &self.kubeconfig)
            // Without the preferences and the cache of the user who runs the tests.
            .env("HOME", &self.folder)
            .env("KUBERC", "off")
            // kubectl ends before a garbage collection would pay.
            .env("GOGC", "off")
            .env("KUBECACHEDIR", self.folder.join("kube-apiserver/kubectl-cache"));
        let output = fed(&mut command, stdin.unwrap_or_default());
        Output {
            command: format!("kubectl {}", arguments.join(" ")),
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs kubectl with the words of this line; asserts that it succeeds.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> Output {
        let words: Vec<&str> = line.split(' ').collect();
        self.kubectl(&words, None).success()
    }

    /// Runs `kubectl apply --namespace NAMESPACE -f -` with these documents; asserts that it
    /// succeeds.
    #[track_caller]
    pub(crate) fn apply(&self, namespace: &str, documents: &str) -> Output {
        self.kubectl(&["apply", "--namespace", namespace, "-f", "-"], Some(documents)).success()
    }
}

/// A kubeconfig without credentials, for a server without TLS.
pub(crate) fn kubeconfig_of(server: SocketAddr) -> String {
    kubeconfig(&json!({ "server": format!("http://{server}") }), &json!({}))
}

/// A kubeconfig. It is JSON, which is YAML and needs no quoting rules.
pub(super) fn kubeconfig(cluster: &Value, credentials: &Value) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "user" } }],
        "clusters": [{ "name": "test", "cluster": cluster }],
        "users": [{ "name": "user", "user": credentials }],
    });
    config.to_string()
}

/// The sum of all series with this name and these labels.
pub(crate) fn sum(exposition: &str, name: &str, labels: &[&str]) -> u64 {
    let series = exposition.lines().filter_map(|line| {
        let (found, value) = line.strip_prefix(name)?.strip_prefix('{')?.rsplit_once("} ")?;
        let is_it = labels.iter().all(|label| found.contains(label));
        // Counts may be written as 1e+06.
        is_it.then(|| value.parse::<f64>().unwrap() as u64)
    });
    series.sum()
}
