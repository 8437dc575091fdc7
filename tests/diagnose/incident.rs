//! A namespace with two nodes, a claim and its volume, and the actions of users in it.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::fake_nodes::ATTACHING_DRIVER;
use crate::harness::output::{code, program};
use crate::harness::shorthand::{Claim, merge, object};
use crate::harness::{
    self, ControlPlane, Lent, Namespace, Needs, NodeSpec, Output, seen, until, wait_until,
};
use crate::incident_cluster::{IncidentCluster, Mode};
use crate::install::UNGUARDED;
use crate::printed::{between_backticks, of_block, shape};
use crate::table::Row;

/// The time limit for one action of a controller, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// The control plane on which a state is played, and its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// The shared control plane, with a claim that has this access mode.
    Shared(&'static str),
    /// A control plane for this state alone: on a shared one, each added or removed node wakes the
    /// scheduler.
    Quiet,
    /// A control plane for this state alone, which installs the guard itself.
    Own,
}

/// The setting of most states.
pub(crate) const USUAL: Setting = Setting::Shared("ReadWriteOnce");

/// A namespace with its objects.
pub(crate) struct Incident {
    pub(crate) cluster: &'static IncidentCluster,
    /// Its own control plane, if it does not use the shared one.
    _own: Option<Lent>,
    pub(crate) mode: Mode,
    /// Commands whose effects are not shown yet.
    ran: Mutex<Vec<String>>,
    rows: Mutex<Vec<Row>>,
    /// The working directory of commands, with the folders of the repository and a reader's files.
    folder: TempDir,
    pub(crate) namespace: Namespace<'static>,
    pub(crate) nodes: Vec<String>,
    /// The volume behind claim `data`.
    pub(crate) volume: String,
}

impl Incident {
    /// `None` without a control plane.
    pub(crate) fn new(name: &str, setting: Setting, mode: Mode) -> Option<Self> {
        static SHARED: OnceLock<IncidentCluster> = OnceLock::new();
        let shared = harness::require_control_plane(Needs::Controllers)?;
        let mut own = None;
        let (cluster, access) = match setting {
            Setting::Shared(access) => {
                (SHARED.get_or_init(|| IncidentCluster::new(shared)), access)
            }
            Setting::Quiet | Setting::Own => {
                let plane = harness::start_control_plane(Needs::Controllers)?;
                let cluster = IncidentCluster::new(own.insert(Lent::new(plane)).0);
                (&*Box::leak(Box::new(cluster)), "ReadWriteOnce")
            }
        };
        let namespace = Namespace::new(cluster.plane, &format!("{}-{name}", mode.name()));
        let nodes: Vec<String> =
            ["a", "b"].iter().map(|letter| format!("{namespace}-{letter}")).collect();
        let incident = Self {
            cluster,
            _own: own,
            mode,
            volume: format!("{namespace}-data"),
            namespace,
            nodes,
            ran: Mutex::default(),
            rows: Mutex::default(),
            folder: folder(),
        };
        let specs = incident.nodes.iter().map(|node| {
            let mut spec = incident.node(node);
            if setting == Setting::Own {
                spec.taints.clear();
            }
            spec
        });
        cluster.nodes.add(&specs.collect::<Vec<_>>());
        incident.furnish(access);
        Some(incident)
    }

    /// A node for this state's pods alone.
    pub(crate) fn node(&self, name: &str) -> NodeSpec {
        NodeSpec {
            name: name.to_owned(),
            taints: vec![
                json!({"key": "stage", "value": &*self.namespace, "effect": "NoSchedule"}),
            ],
            cpus: 8,
            ..NodeSpec::default()
        }
    }

    /// The commands whose effects were shown.
    ///
    /// # Panics
    ///
    /// If a command was run without waiting for its effect.
    pub(crate) fn rows(self) -> Vec<Row> {
        self.cluster.nothing_panicked();
        let open = self.ran.into_inner().unwrap();
        assert!(open.is_empty(), "Nothing was waited for after {open:#?}");
        self.rows.into_inner().unwrap()
    }

    fn furnish(&self, access: &str) {
        let by_hand = ["by-hand", ATTACHING_DRIVER];
        for object in Claim::with_mode(access).bound_in(&self.namespace, "data", by_hand) {
            self.apply(&object);
        }
        self.until_phase("pvc/data", "Bound");
    }

    /// Applies the object past the guard, with the namespace filled in.
    pub(crate) fn apply(&self, object: &Value) {
        self.unguarded(&["apply", "-f", "-"], Some(&self.fill(object)));
    }

    /// Applies the object past the guard and waits until its pods run.
    pub(crate) fn starts(&self, object: &Value) {
        self.apply(object);
        self.until_runs(object["metadata"]["name"].as_str().unwrap());
    }

    /// Deletes the object and waits until none of its pods is left.
    pub(crate) fn delete(&self, object: &Value) {
        let name = format!(
            "{}/{}",
            object["kind"].as_str().unwrap().to_lowercase(),
            object["metadata"]["name"].as_str().unwrap()
        );
        self.kubectl(&["delete", &name, "--cascade=foreground", "--timeout=120s"]);
    }

    /// The object with the namespace filled in.
    pub(crate) fn fill(&self, object: &Value) -> String {
        object.to_string().replace("{namespace}", &self.namespace)
    }

    /// Runs kubectl in the namespace, past the guard; returns its output.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        self.unguarded(arguments, None)
    }

    /// The value of an object's field at this path.
    pub(crate) fn field(&self, object: &str, path: &str) -> String {
        self.kubectl(&["get", object, "-o", &format!("jsonpath={{{path}}}")])
    }

    /// Waits until an object is in this phase.
    pub(crate) fn until_phase(&self, object: &str, phase: &str) {
        let phase = format!("--for=jsonpath={{.status.phase}}={phase}");
        self.kubectl(&["wait", &phase, "--timeout=240s", object]);
    }

    fn unguarded(&self, arguments: &[&str], stdin: Option<&str>) -> String {
        let user = format!("--as={UNGUARDED}");
        let all = [arguments, &[&user, "--as-group=system:masters"]].concat();
        self.namespace.kubectl(&all, stdin).success().stdout
    }

    /// The answer to a user whose request the guard sees.
    pub(crate) fn user(&self, arguments: &[&str], stdin: Option<&str>) -> Output {
        self.namespace.kubectl(arguments, stdin)
    }

    /// Waits until the app has pods, and all of them run and none is terminating.
    pub(crate) fn until_runs(&self, app: &str) {
        wait_until(&format!("{app} to run"), PATIENCE, || {
            let pods = self.pods(app);
            let runs = |pod: &Value| {
                pod["status"]["phase"] == "Running"
                    && pod["metadata"]["deletionTimestamp"].is_null()
            };
            seen(!pods.is_empty() && pods.iter().all(runs), pods)
        })
        .unwrap_or_else(|reason| panic!("{reason}\n{}", self.diagnose(&[]).1));
        self.end(&format!("{app} runs"));
    }

    fn pods(&self, app: &str) -> Vec<Value> {
        let plane = self.cluster.plane;
        plane.assert_runs();
        let pods = Api::<Pod>::namespaced(plane.client(), &self.namespace);
        let of_app = ListParams::default().labels(&format!("app={app}"));
        plane
            .block_on(pods.list(&of_app))
            .unwrap()
            .items
            .into_iter()
            .map(|pod| serde_json::to_value(pod).unwrap())
            .collect()
    }

    /// The node on which a pod of that app runs.
    pub(crate) fn node_of(&self, app: &str) -> String {
        let pods = self.pods(app);
        let running = pods
            .iter()
            .find(|pod| pod["status"]["phase"] == "Running")
            .unwrap_or_else(|| panic!("No pod of {app} runs: {pods:#?}"));
        running["spec"]["nodeName"].as_str().unwrap().to_owned()
    }

    pub(crate) fn other_node(&self, node: &str) -> String {
        let mut nodes = self.nodes.iter();
        nodes.find(|other| *other != node).unwrap().clone()
    }

    pub(crate) fn uncordon(&self) {
        let nodes = self.nodes.iter().map(String::as_str);
        let uncordon: Vec<&str> = std::iter::once("uncordon").chain(nodes).collect();
        self.kubectl(&uncordon);
    }

    /// The exit code of `diagnose` in the namespace, and all that it printed.
    pub(crate) fn diagnose(&self, arguments: &[&str]) -> (i32, String) {
        self.diagnose_with(self.cluster.plane.kubeconfig().to_owned(), arguments)
    }

    /// The same with another user's rights.
    pub(crate) fn diagnose_as(&self, user: &str, arguments: &[&str]) -> (i32, String) {
        self.diagnose_with(self.cluster.plane.kubeconfig_as(user, &[]), arguments)
    }

    fn diagnose_with(&self, kubeconfig: PathBuf, arguments: &[&str]) -> (i32, String) {
        self.cluster.plane.assert_runs();
        let output = program(&["diagnose", "--all-ways", "-n", &self.namespace])
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .output()
            .unwrap();
        let both = [&output.stdout[..], &output.stderr].concat();
        (code(&output), String::from_utf8(both).unwrap())
    }

    /// Starts `diagnose --watch`, which runs until no pod waits.
    pub(crate) fn watch(&self) -> Child {
        let command = format!("multi-attach-guard diagnose --watch -n {}", self.namespace);
        self.cluster.plane.printed(&command).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Waits until `diagnose` names this cause and no other; returns the case.
    pub(crate) fn until(&self, cause: &str) -> Value {
        self.until_all(&[cause]).remove(0)
    }

    /// Like `until`, for a cause that is named after five minutes of waiting.
    pub(crate) fn until_late(&self, cause: &str) -> Value {
        self.until_all_within(2 * PATIENCE, &[cause]).remove(0)
    }

    /// Waits until `diagnose` names these causes.
    pub(crate) fn until_all(&self, causes: &[&str]) -> Vec<Value> {
        self.until_all_within(PATIENCE, causes)
    }

    fn until_all_within(&self, patience: Duration, causes: &[&str]) -> Vec<Value> {
        until(&format!("diagnose to say {causes:?}"), patience, || {
            let (status, output) = self.diagnose(&["--format", "json"]);
            let report: Value = serde_json::from_str(&output).map_err(|_| output.clone())?;
            let cases = report["cases"].as_array().ok_or_else(|| output.clone())?;
            let named = cases.iter().map(|case| &case["cause"]).eq(causes);
            seen(status == 1 && named, cases.clone())
        })
    }

    /// Waits until the only case has this cause and is as wanted; returns the case.
    pub(crate) fn until_case(
        &self,
        cause: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        until(what, PATIENCE, || {
            let case = self.until(cause);
            seen(wanted(&case), case)
        })
    }

    /// Waits until `diagnose` says that no pod waits.
    pub(crate) fn until_nothing_waits(&self) {
        until("nothing to wait any more", PATIENCE, || {
            let (status, output) = self.diagnose(&[]);
            (status == 0).then_some(()).ok_or(output)
        });
        self.end("nothing waits");
    }

    /// Makes a volume for the claim with this name and class.
    pub(crate) fn volume(&self, claim: &str, class: &str, with: &Value) {
        let made = Claim { volume_with: with.clone(), ..Claim::exclusive() };
        let [volume, _] = made.bound_in(&self.namespace, claim, [class, ATTACHING_DRIVER]);
        self.apply(&volume);
    }

    /// Runs the first way out of a case, and waits until no pod waits.
    pub(crate) fn leads_out(&self, case: &Value) {
        self.run(&ways_out(case)[0]);
        self.until_nothing_waits();
    }

    /// Runs the commands of a case that only show information.
    pub(crate) fn looks(&self, case: &Value) {
        for command in commands(case, "check") {
            self.look(&command);
        }
    }

    /// Records that the commands run so far have had this effect.
    pub(crate) fn end(&self, what: &str) {
        let ran = std::mem::take(&mut *self.ran.lock().unwrap());
        let rows = ran.iter().map(|command| (shape(command), what.to_owned()));
        self.rows.lock().unwrap().extend(rows);
    }

    /// Runs a command that only shows information.
    pub(crate) fn look(&self, command: &str) -> String {
        let output = self.run(command);
        self.end("it is shown");
        output
    }

    /// Runs a command in a shell, exactly as printed; returns its output.
    pub(crate) fn run(&self, command: &str) -> String {
        let mut commands = of_block(command);
        commands.retain(|line| line != "set -e");
        self.ran.lock().unwrap().extend(commands);
        self.shell(command)
    }

    /// The standard output of a command.
    pub(crate) fn printed(&self, command: &str) -> String {
        let output = self.cluster.plane.printed(command).output().unwrap();
        assert!(output.status.success(), "{command}\n{output:#?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command without recording it.
    pub(crate) fn shell(&self, command: &str) -> String {
        println!("{}: {command}", self.namespace);
        let mut shell = self.cluster.plane.printed(command);
        let output = shell.current_dir(self.folder.path()).output().unwrap();
        // Exit code 1 of `diagnose` means that a pod waits; it is not a failure.
        let finds =
            command.starts_with("multi-attach-guard diagnose") && output.status.code() == Some(1);
        assert!(output.status.success() || finds, "{command}\n{output:#?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["manifests", "examples"] {
        std::os::unix::fs::symlink(repository.join(name), folder.path().join(name)).unwrap();
    }
    let own = folder.path().join("manifests-of-your-own");
    std::fs::create_dir(&own).unwrap();
    let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: empty}}";
    std::fs::write(own.join("empty.yaml"), object).unwrap();
    std::fs::write(folder.path().join("policy.yaml"), "{}").unwrap();
    folder
}

/// Does the work of the namespace controller, which does not run on these control planes, for a
/// namespace that is being deleted and has objects of these kinds.
pub(crate) fn end_namespace(plane: &ControlPlane, name: &str, kinds: &str) {
    let kubectl = |arguments: &[&str]| plane.kubectl(arguments, None).success().stdout;
    let namespace = format!("namespace/{name}");
    let ends = "--for=jsonpath={.status.phase}=Terminating";
    kubectl(&["wait", ends, "--timeout=240s", &namespace]);
    kubectl(&["delete", kinds, "--all", "--namespace", name]);
    let mut object: Value =
        serde_json::from_str(&kubectl(&["get", &namespace, "-o", "json"])).unwrap();
    object["spec"]["finalizers"] = json!([]);
    let finalize = format!("/api/v1/namespaces/{name}/finalize");
    let replace = ["replace", "--raw", &finalize, "-f", "-"];
    plane.kubectl(&replace, Some(&object.to_string())).success();
}

/// The commands of a case with this purpose.
pub(crate) fn commands(case: &Value, purpose: &str) -> Vec<String> {
    let steps = case["steps"].as_array().unwrap().iter();
    steps
        .filter(|step| step["purpose"] == purpose)
        .filter_map(|step| step["command"].as_str().map(str::to_owned))
        .collect()
}

/// Asserts that the reason of a case contains these words.
#[track_caller]
pub(crate) fn says(case: &Value, words: &str) {
    let because = case["because"].as_str().unwrap();
    assert!(because.contains(words), "{because}");
}

/// The ways out of a case.
pub(crate) fn ways_out(case: &Value) -> Vec<String> {
    commands(case, "way-out")
}

/// The command with these words in a text of the case.
pub(crate) fn in_texts(case: &Value, words: &str) -> String {
    let steps = case["steps"].as_array().unwrap().iter();
    steps
        .filter_map(|step| step["text"].as_str())
        .flat_map(between_backticks)
        .find(|command| command.contains(words))
        .unwrap_or_else(|| panic!("{words:?} is missing in {case:#}"))
}

/// A Deployment with one pod that uses claim `data`, with `further` shorthand merged in.
pub(crate) fn deployment(name: &str, further: &Value) -> Value {
    workload("Deployment", name, further)
}

/// A Deployment that starts no new pod before the old one is gone.
pub(crate) fn recreated(name: &str) -> Value {
    deployment(name, &json!({"strategy": "Recreate"}))
}

/// A workload whose pods use claim `data`, run only on the nodes of its namespace, and leave lost
/// nodes soon, with `further` shorthand merged in.
pub(crate) fn workload(kind: &str, name: &str, further: &Value) -> Value {
    let leaves = |key: &str| {
        json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists",
            "effect": "NoExecute", "tolerationSeconds": 2})
    };
    let pod = json!({
        "terminationGracePeriodSeconds": 2,
        "tolerations": [
            {"key": "stage", "value": "{namespace}", "effect": "NoSchedule"},
            leaves("not-ready"),
            leaves("unreachable"),
        ],
    });
    let mut shorthand = json!({
        "kind": kind, "name": name, "uses": ["data"], "container": {"name": "app"}, "pod": pod,
    });
    match kind {
        "Deployment" => shorthand["with"] = json!({"spec": {"progressDeadlineSeconds": 60}}),
        "StatefulSet" => shorthand["with"] = json!({"spec": {"serviceName": name}}),
        _ => {}
    }
    if !matches!(kind, "DaemonSet" | "Job" | "CronJob") {
        shorthand["replicas"] = json!(1);
    }
    merge(&mut shorthand, further);
    object(shorthand)
}

/// Pods that run on the node of `web`'s pods, in shorthand.
pub(crate) fn beside_web() -> Value {
    json!({"beside": {"app": "web"}})
}

/// Pods that run on this node, in shorthand.
pub(crate) fn on(node: &str) -> Value {
    json!({"pod": {"nodeSelector": {"kubernetes.io/hostname": node}}})
}

/// A claim with this class.
pub(crate) fn claim(name: &str, class: &str) -> Value {
    let class = json!({"spec": {"storageClassName": class}});
    object(json!({"kind": "PersistentVolumeClaim", "name": name, "with": class}))
}

/// An autoscaler of `web`.
pub(crate) fn autoscaler(fewest: u32) -> Value {
    let bounds = json!({"spec": {"minReplicas": fewest, "maxReplicas": 3}});
    object(json!({"kind": "HorizontalPodAutoscaler", "with": bounds}))
}

/// The value with `further` merged in.
pub(crate) fn merged(mut value: Value, further: &Value) -> Value {
    merge(&mut value, further);
    value
}
