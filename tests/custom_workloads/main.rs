//! Controllers that are not part of Kubernetes, on a real control plane with simulated nodes: their
//! behaviour with a ReadWriteOnce volume matches the engine's forecast.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

#[path = "../harness/mod.rs"]
mod harness;
mod keda;
mod rollouts;

use std::sync::OnceLock;
use std::time::Duration;

use harness::fake_nodes::ATTACHING_DRIVER;
use harness::output::{fed, program};
use harness::process::Program;
use harness::shorthand::{bound_claim, merge, object};
use harness::{ControlPlane, FakeNodes, Namespace, Needs, NodeSpec, at_once, seen, wait_until};
use serde_json::{Value, json};

/// The time limit for waits, generous even on a busy machine.
const WITHIN: Duration = Duration::from_secs(300);

/// The control plane with a controller of custom workloads.
struct OperatorCluster {
    plane: &'static ControlPlane,
    nodes: &'static FakeNodes<'static>,
    controller: Program,
}

impl OperatorCluster {
    /// Starts the controller that `build-controller` compiles by this name. `None` if it or the
    /// control plane cannot be made on this machine.
    fn new(name: &str, flags: &[String], environment: &[(&str, &str)]) -> Option<Self> {
        static NODES: OnceLock<FakeNodes<'static>> = OnceLock::new();
        let plane = harness::require_control_plane(Needs::Controllers)?;
        let folder = harness::built(&["build-controller", name], name)?;
        let crds = folder.join("crds").display().to_string();
        plane.run(&format!("apply --server-side -f {crds}"));
        let established = "wait --for=condition=Established --timeout=300s";
        plane.run(&format!("{established} -f {crds}"));
        let kubeconfig = format!("--kubeconfig={}", plane.kubeconfig().display());
        let flags = [&[kubeconfig], flags].concat();
        let own = plane.write_file(name, "").with_extension("d");
        let program = folder.join("controller");
        let controller = Program::start(name, &program, &flags, environment, &own);
        Some(Self {
            plane,
            nodes: NODES.get_or_init(|| plane.fake_nodes()),
            controller: controller.unwrap(),
        })
    }
}

/// A namespace with a ReadWriteOnce claim `data` and its own two nodes.
struct OperatorTest<'c> {
    cluster: &'c OperatorCluster,
    namespace: Namespace<'static>,
}

impl<'c> OperatorTest<'c> {
    fn build(cluster: &'c OperatorCluster, name: &str) -> Result<Self, String> {
        let namespace = Namespace::new(cluster.plane, name);
        cluster.nodes.add(&["a", "b"].map(|letter| NodeSpec {
            name: format!("{namespace}-{letter}"),
            zone: namespace.to_string(),
            cpus: 8,
            ..NodeSpec::default()
        }));
        for object in bound_claim(&namespace, "data", ATTACHING_DRIVER) {
            namespace.apply(&object)?;
        }
        Ok(Self { cluster, namespace })
    }

    /// A workload `web` whose pods mount the claim.
    fn workload(&self, mut shorthand: Value) -> Value {
        let usual = json!({"uses": ["data"], "pod": {
            "terminationGracePeriodSeconds": 3,
            "nodeSelector": {"topology.kubernetes.io/zone": &*self.namespace},
        }});
        merge(&mut shorthand, &usual);
        object(shorthand)
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<(), String> {
        self.namespace.kubectl(arguments, None).done()
    }

    fn patch(&self, object: &str, how: &str, patch: &Value) -> Result<(), String> {
        let (how, patch) = (format!("--type={how}"), patch.to_string());
        self.kubectl(&["patch", object, &how, "-p", &patch])
    }

    /// Waits until `all` pods with the claim exist that have not succeeded, `ready` of them are
    /// ready, and none is terminating.
    fn until_pods(&self, all: usize, ready: usize) -> Result<(), String> {
        let what = format!("{all} pods, {ready} of them ready");
        self.until(&what, || {
            let mut pods = self.namespace.list("pods")?;
            pods.retain(|pod| !pod["spec"]["volumes"][0]["persistentVolumeClaim"].is_null());
            pods.retain(|pod| pod["status"]["phase"] != "Succeeded");
            let leaves = pods.iter().any(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
            let found = (pods.len(), pods.iter().filter(|pod| is_ready(pod)).count());
            seen(found == (all, ready) && !leaves, found).map(drop)
        })
    }

    fn until<T>(
        &self,
        what: &str,
        mut ask: impl FnMut() -> Result<T, String>,
    ) -> Result<T, String> {
        let controller = &self.cluster.controller;
        wait_until(what, WITHIN, || match controller.exited() {
            Some(status) => Ok(Err(format!("the controller has ended: {status}"))),
            None => ask().map(Ok),
        })
        .flatten()
        .map_err(|error| format!("{error}\n{}", controller.log_tail()))
    }

    /// The JSON report of the guard's program about the namespace.
    fn report(&self, arguments: &[&str]) -> Result<Value, String> {
        let mut guard = program(arguments);
        guard.args(["--format=json", "--namespace", &self.namespace]);
        let run = fed(guard.env("KUBECONFIG", self.cluster.plane.kubeconfig()), "");
        serde_json::from_slice(&run.stdout).map_err(|error| format!("{error}: {run:?}"))
    }

    /// The findings of `audit` about the current objects of these kinds.
    fn audit(&self, kinds: &[&str]) -> Result<Vec<Value>, String> {
        let report = self.report(&["audit", "--exit-zero"])?;
        let mut findings = report["findings"].as_array().cloned().unwrap_or_default();
        findings.retain(|finding| kinds.iter().any(|kind| finding["object"]["kind"] == *kind));
        Ok(findings)
    }
}

/// Plays all cases at once.
///
/// # Panics
///
/// If a case fails, with all failures.
fn play_all<C: Sync>(cases: &[C], play: impl Fn(&C) -> Result<(), String> + Sync) {
    let played = at_once(cases.len(), cases, |_, case| play(case));
    let failed: Vec<String> = played.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Whether a pod waits for a volume that is attached to another node.
fn multi_attach(events: &[Value]) -> bool {
    events.iter().any(|event| {
        let message = event["message"].as_str().unwrap_or_default();
        message.contains("Multi-Attach error") || message.contains("Waiting for detach")
    })
}
