//! The ways of applying a manifest.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::applier_cluster::{ApplierCluster, Mode};
use crate::harness::Output;

/// A way of applying a manifest. Flux's helm-controller is covered by Helm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Apply(Options),
    Replace,
    Edit,
    Patch(&'static str),
    Helm3,
    Helm4(Options),
    /// Flux or Argo CD.
    Controller(&'static str, Options),
}

type Options = &'static [&'static str];

const SERVER_SIDE: Options = &["--server-side"];
const CLIENT_SIDE: Options = &["--server-side=false"];
const ARGO_CD_ON_THE_SERVER: Way = Way::Controller("argo-cd", SERVER_SIDE);

impl Way {
    /// All ways, with their names in the document.
    const NAMED: [(Self, &str); 13] = [
        (Self::Apply(&[]), "`kubectl apply`"),
        (Self::Apply(SERVER_SIDE), "`kubectl apply --server-side`"),
        (Self::Replace, "`kubectl replace`"),
        (Self::Edit, "`kubectl edit`"),
        (Self::Patch("strategic"), "`kubectl patch --type=strategic`"),
        (Self::Patch("merge"), "`kubectl patch --type=merge`"),
        (Self::Patch("json"), "`kubectl patch --type=json`"),
        (Self::Helm3, "Helm 3"),
        (Self::Helm4(&[]), "Helm 4"),
        (Self::Helm4(CLIENT_SIDE), "Helm 4 `--server-side=false`"),
        (Self::Controller("flux", &[]), "Flux"),
        (Self::Controller("argo-cd", &[]), "Argo CD"),
        (ARGO_CD_ON_THE_SERVER, "Argo CD `ServerSideApply=true`"),
    ];

    pub(crate) fn all() -> [Self; 13] {
        Self::NAMED.map(|(way, _)| way)
    }

    /// The ways in which a tool applies a whole manifest again and again, and remembers what it
    /// applied before.
    pub(crate) fn declarative() -> Vec<Self> {
        Self::all().into_iter().filter(|way| way.is_declarative()).collect()
    }

    pub(crate) fn name(self) -> String {
        let mut named = Self::NAMED.into_iter();
        let (_, name) = named.find(|(way, _)| *way == self).unwrap();
        name.to_owned()
    }

    const fn is_declarative(self) -> bool {
        !matches!(self, Self::Replace | Self::Edit | Self::Patch(_))
    }

    /// Whether the manifest is not kept in a file.
    pub(crate) const fn is_by_hand(self) -> bool {
        matches!(self, Self::Edit | Self::Patch(_))
    }
}

/// The API server's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted,
    /// 422: `rollingUpdate` is not allowed with Recreate.
    Unprocessable,
    Denied,
}

impl Answer {
    /// Reads the answer from a program's output.
    pub(crate) fn of(output: &Output) -> Result<Self, String> {
        let says = |words: &str| output.stderr.contains(words);
        match output.status {
            0 => Ok(Self::Accepted),
            _ if says("denied the request") => Ok(Self::Denied),
            _ if says("may not be specified when strategy `type` is 'Recreate'") => {
                Ok(Self::Unprocessable)
            }
            _ => Err(format!("{output:#?}")),
        }
    }
}

/// A user with a namespace and a way of applying.
pub(crate) struct Applier<'a> {
    pub(crate) cluster: &'a ApplierCluster,
    pub(crate) way: Way,
    pub(crate) namespace: String,
    folder: PathBuf,
}

impl<'a> Applier<'a> {
    /// Makes a user with a new namespace for this mode.
    pub(crate) fn new(cluster: &'a ApplierCluster, way: Way, mode: Mode) -> Result<Self, String> {
        let namespace = cluster.namespace(mode)?;
        Ok(Self { folder: cluster.folder(&namespace), cluster, way, namespace })
    }

    /// Applies the manifest for the first time, past the guard.
    pub(crate) fn create(&self, manifest: &Value) -> Result<(), String> {
        let kubeconfig = &self.cluster.unguarded;
        let made = if self.way.is_declarative() {
            self.declare(kubeconfig, manifest)
        } else {
            self.kubectl(kubeconfig, &["create", "-f", &self.file(manifest)])
        };
        made.done()
    }

    /// Makes the live Deployment equal to the manifest. `replace` and `edit` are repeated if a
    /// controller has written in between.
    pub(crate) fn apply(&self, manifest: &Value) -> Result<Output, String> {
        let mut output = self.apply_once(manifest)?;
        for _ in 0..20 {
            if !output.stderr.contains("the object has been modified") {
                break;
            }
            output = self.apply_once(manifest)?;
        }
        Ok(output)
    }

    fn apply_once(&self, manifest: &Value) -> Result<Output, String> {
        let kubeconfig = self.cluster.plane.kubeconfig();
        Ok(match self.way {
            Way::Replace => self.kubectl(kubeconfig, &["replace", "-f", &self.file(manifest)]),
            Way::Edit => self.edit(manifest)?,
            Way::Patch("json") => self.patch(&operations(manifest)),
            Way::Patch(_) => self.patch(&changes(manifest)),
            _ => self.declare(kubeconfig, manifest),
        })
    }

    /// Applies a patch in this way's format to the live Deployment.
    pub(crate) fn patch(&self, patch: &Value) -> Output {
        let Way::Patch(kind) = self.way else { unreachable!("only a patch is patched") };
        let (with, text) = (format!("--type={kind}"), patch.to_string());
        let arguments = ["patch", "deployment", "web", &with, "-p", &text];
        self.kubectl(self.cluster.plane.kubeconfig(), &arguments)
    }

    fn declare(&self, kubeconfig: &Path, manifest: &Value) -> Output {
        match self.way {
            Way::Helm3 => self.helm(kubeconfig, manifest, self.program("helm3"), &[]),
            Way::Helm4(options) => self.helm(kubeconfig, manifest, self.plane("helm"), options),
            Way::Controller(name, options) => {
                let mut command = self.command(self.program("appliers"), kubeconfig);
                command.arg(name).args(options).arg(&self.namespace);
                command.stdin(File::open(self.file(manifest)).unwrap());
                ran(command)
            }
            Way::Apply(options) => {
                let file = self.file(manifest);
                let apply = ["apply", "-f", &file];
                self.kubectl(kubeconfig, &[&apply[..], options].concat())
            }
            Way::Replace | Way::Edit | Way::Patch(_) => unreachable!("nothing is declared"),
        }
    }

    /// Runs `kubectl edit` with an editor that writes the manifest's fields into the live object.
    fn edit(&self, manifest: &Value) -> Result<Output, String> {
        let live = self.cluster.read(&self.namespace)?;
        let mut edited = serde_json::to_value(live).map_err(|error| error.to_string())?;
        edited["apiVersion"] = json!("apps/v1");
        edited["kind"] = json!("Deployment");
        for (field, value) in manifest["spec"].as_object().into_iter().flatten() {
            edited["spec"][field] = value.clone();
        }
        let editor = format!("cp {}", self.file(&edited));
        let mut command = self.command(self.plane("kubectl"), self.cluster.plane.kubeconfig());
        command.env("KUBE_EDITOR", editor);
        command.args(["edit", "deployment", "web", "--namespace", &self.namespace]);
        Ok(ran(command))
    }

    pub(crate) fn kubectl(&self, kubeconfig: &Path, arguments: &[&str]) -> Output {
        let mut command = self.command(self.plane("kubectl"), kubeconfig);
        command.args(arguments).args(["--namespace", &self.namespace]);
        ran(command)
    }

    fn helm(&self, kubeconfig: &Path, manifest: &Value, helm: PathBuf, further: &[&str]) -> Output {
        let chart = self.folder.join("chart");
        std::fs::create_dir_all(chart.join("templates")).unwrap();
        let about = "apiVersion: v2\nname: web\nversion: 0.0.1\n";
        std::fs::write(chart.join("Chart.yaml"), about).unwrap();
        std::fs::write(chart.join("templates/web.yaml"), manifest.to_string()).unwrap();
        let mut command = self.command(helm, kubeconfig);
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(variable, &self.folder);
        }
        command.args(["upgrade", "--install", "web"]).arg(chart);
        command.args(["--namespace", &self.namespace]).args(further);
        ran(command)
    }

    /// Runs the guard's command line.
    pub(crate) fn guard(&self, arguments: &[&str]) -> Output {
        let binary = env!("CARGO_BIN_EXE_multi-attach-guard").into();
        let mut command = self.command(binary, self.cluster.plane.kubeconfig());
        command.args(arguments);
        ran(command)
    }

    fn command(&self, program: PathBuf, kubeconfig: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", &self.folder)
            .env("KUBERC", "off")
            .env("KUBECACHEDIR", self.folder.with_file_name("kubectl-cache"))
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    fn plane(&self, name: &str) -> PathBuf {
        self.cluster.plane.program(name)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.cluster.programs.join(name)
    }

    /// Writes the manifest into a file and returns its path.
    pub(crate) fn file(&self, manifest: &Value) -> String {
        let file = self.folder.join("web.yaml");
        std::fs::write(&file, manifest.to_string()).unwrap();
        file.display().to_string()
    }
}

pub(crate) fn ran(mut command: Command) -> Output {
    let output = command.output().unwrap();
    Output {
        command: format!("{command:?}"),
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The manifest's values of all fields that a step can change, as a strategic or merge patch.
fn changes(manifest: &Value) -> Value {
    let pod = &manifest["spec"]["template"]["spec"];
    let changed = json!({ "containers": pod["containers"], "affinity": pod["affinity"] });
    let mut patch = json!({ "spec": { "template": { "spec": changed } } });
    if let Some(strategy) = manifest["spec"].get("strategy") {
        patch["spec"]["strategy"] = strategy.clone();
    }
    patch
}

/// The same values as a JSON patch.
fn operations(manifest: &Value) -> Value {
    let paths =
        ["/spec/strategy", "/spec/template/spec/containers", "/spec/template/spec/affinity"];
    let add =
        |path: &str| Some(json!({ "op": "add", "path": path, "value": manifest.pointer(path)? }));
    paths.into_iter().filter_map(add).collect()
}
