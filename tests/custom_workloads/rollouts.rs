//! What the controller of Argo Rollouts makes of a ReadWriteOnce volume, on a real control plane
//! with simulated nodes: whether a rollout hangs is what the engine says before it begins, and
//! every remedy that `audit` proposes for one that hangs lets it end.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

#[path = "../harness/mod.rs"]
mod harness;

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use harness::fake_nodes::ATTACHING_DRIVER;
use harness::process::Program;
use harness::{ControlPlane, FakeNodes, Needs, NodeSpec, Output, wait_until};
use serde_json::{Value, json};

/// Longer than anything here takes, also where the machine is busy.
const WITHIN: Duration = Duration::from_secs(300);

/// A Rollout of one pod, and how its first update ends.
struct Case {
    name: &'static str,
    strategy: Value,
    /// Merged into the pods' spec.
    pod: Value,
    /// Whether it has no pods when the update comes, which brings one.
    is_scaled_to_0: bool,
    /// Whether its rollouts hang where there are pods.
    hangs: bool,
}

fn cases() -> Vec<Case> {
    let case = |name, strategy, hangs| Case {
        name,
        strategy,
        pod: json!({}),
        is_scaled_to_0: false,
        hangs,
    };
    let zero = |more: Value| {
        let mut canary = json!({"maxSurge": 0, "maxUnavailable": 1});
        json_patch::merge(&mut canary, &more);
        json!({ "canary": canary })
    };
    let blue_green = json!({"blueGreen": {"activeService": "web"}});
    let routed = json!({
        "stableService": "web", "canaryService": "canary",
        "trafficRouting": {"nginx": {"stableIngress": "web"}},
    });
    let beside = json!({"affinity": {"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "labelSelector": {"matchLabels": {"app": "web"}},
            "topologyKey": "kubernetes.io/hostname",
        }],
    }}});
    vec![
        case("canary", json!({"canary": {}}), true),
        case(
            "steps",
            json!({"canary": {"steps": [{"setWeight": 50}]}}),
            true,
        ),
        case("blue-green", blue_green.clone(), true),
        case("routed", zero(routed), true),
        case("zero-surge", zero(json!({})), false),
        Case {
            pod: beside.clone(),
            ..case("canary-beside", json!({"canary": {}}), false)
        },
        Case {
            pod: beside,
            ..case("blue-green-beside", blue_green.clone(), false)
        },
        Case {
            is_scaled_to_0: true,
            ..case("scaled-to-0", blue_green, true)
        },
    ]
}

/// The control plane with the controller of Argo Rollouts.
struct World {
    plane: &'static ControlPlane,
    nodes: FakeNodes<'static>,
    controller: Program,
}

impl World {
    /// `None` where there is nothing to make it of.
    fn new() -> Option<Self> {
        let plane = harness::require_control_plane(Needs::Controllers)?;
        let folder = harness::built("build-rollouts", "the controller of Argo Rollouts")?;
        let crds = folder.join("crds").display().to_string();
        let apply = ["apply", "--server-side", "-f", &crds];
        plane.kubectl(&apply, None).success();
        let established = ["wait", "--for=condition=Established", "crd", "--all"];
        plane
            .kubectl(&[&established[..], &["--timeout=300s"]].concat(), None)
            .success();
        let kubeconfig = plane.kubeconfig().display();
        // Ports of the system's choice, which nobody asks.
        let arguments = [
            format!("--kubeconfig={kubeconfig}"),
            "--leader-elect=false".to_owned(),
            "--healthzPort=0".to_owned(),
            "--metricsPort=0".to_owned(),
        ];
        let own = plane
            .write_file("rollouts-controller", "")
            .with_extension("d");
        let program = folder.join("rollouts-controller");
        let controller =
            Program::start("rollouts-controller", &program, &arguments, &[], &own, None);
        Some(Self {
            plane,
            nodes: plane.fake_nodes(),
            controller: controller.unwrap(),
        })
    }
}

/// A case in a namespace, with two nodes of its own.
struct Stage<'w> {
    world: &'w World,
    namespace: String,
}

impl<'w> Stage<'w> {
    fn build(world: &'w World, case: &Case) -> Result<Self, String> {
        let namespace = world.plane.namespace(case.name);
        world.nodes.add(&["a", "b"].map(|letter| NodeSpec {
            name: format!("{namespace}-{letter}"),
            zone: namespace.clone(),
            cpus: 8,
            ..NodeSpec::default()
        }));
        let stage = Self { world, namespace };
        for object in stage.objects(case) {
            stage.kubectl(&["apply", "-f", "-"], Some(&object))?;
        }
        stage.until_over()?;
        if case.is_scaled_to_0 {
            stage.patch("merge", &json!({"spec": {"replicas": 0}}))?;
            wait_until("all pods to be gone", WITHIN, || {
                match stage.list("pods")?[..] {
                    [] => Ok(()),
                    _ => Err("there are some".to_owned()),
                }
            })?;
        }
        Ok(stage)
    }

    fn objects(&self, case: &Case) -> Vec<Value> {
        let namespace = &self.namespace;
        let service = |name: &str| {
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
                "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
            })
        };
        let mut pod = json!({
            "terminationGracePeriodSeconds": 3,
            "nodeSelector": {"topology.kubernetes.io/zone": namespace},
            "containers": [{
                "name": "main", "image": "example.com/app:1",
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        });
        json_patch::merge(&mut pod, &case.pod);
        vec![
            json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": namespace},
                "spec": {
                    "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                    "csi": {"driver": ATTACHING_DRIVER, "volumeHandle": namespace},
                    "claimRef": {"namespace": namespace, "name": "data"},
                },
            }),
            json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                    "volumeName": namespace, "resources": {"requests": {"storage": "1Gi"}},
                },
            }),
            service("web"),
            service("canary"),
            json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"},
                "spec": {"ingressClassName": "nginx", "rules": [{"http": {"paths": [{
                    "path": "/", "pathType": "Prefix",
                    "backend": {"service": {"name": "web", "port": {"number": 80}}},
                }]}}]},
            }),
            json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"},
                "spec": {
                    "replicas": 1,
                    // The usual ten minutes are long for a verdict.
                    "progressDeadlineSeconds": 20,
                    "strategy": case.strategy,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
                },
            }),
        ]
    }

    fn kubectl(&self, arguments: &[&str], stdin: Option<&Value>) -> Result<Output, String> {
        let arguments = [&["-n", &self.namespace], arguments].concat();
        let stdin = stdin.map(Value::to_string);
        let output = self.world.plane.kubectl(&arguments, stdin.as_deref());
        output.done().map(|()| output)
    }

    fn list(&self, kind: &str) -> Result<Vec<Value>, String> {
        let output = self.kubectl(&["get", kind, "-o=json"], None)?;
        let list: Value = serde_json::from_str(&output.stdout).map_err(|it| it.to_string())?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    fn patch(&self, how: &str, patch: &Value) -> Result<(), String> {
        let (how, patch) = (format!("--type={how}"), patch.to_string());
        self.kubectl(&["patch", "rollout", "web", &how, "-p", &patch], None)?;
        Ok(())
    }

    /// Waits until the rollout is over or hangs; whether it hangs.
    fn ended(&self) -> Result<bool, String> {
        wait_until("the rollout to end", WITHIN, || {
            let rollout = self.list("rollouts")?.pop().unwrap_or_default();
            let status = &rollout["status"];
            let generation = rollout["metadata"]["generation"].to_string();
            let is_seen = status["observedGeneration"].as_str() == Some(&*generation);
            let events = self.list("events")?;
            let multi_attach = events.iter().any(|event| {
                let message = event["message"].as_str().unwrap_or_default();
                message.contains("Multi-Attach error") || message.contains("Waiting for detach")
            });
            let pods = self.list("pods")?;
            let is_ready = |pod: &&Value| {
                let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
                conditions
                    .into_iter()
                    .any(|it| it["type"] == "Ready" && it["status"] == "True")
            };
            let ready = pods.iter().filter(is_ready).count();
            let is_leaving = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
            let leaves = pods.iter().any(is_leaving);
            let is_over = status["phase"] == "Healthy"
                && status["stableRS"] == status["currentPodHash"]
                && pods.len() == ready
                && !leaves;
            // The old pod serves on while the new one waits for its volume.
            let hangs = status["phase"] == "Degraded"
                && status["message"]
                    .as_str()
                    .is_some_and(|it| it.contains("ProgressDeadlineExceeded"))
                && multi_attach
                && !leaves
                && (pods.len(), ready) == (2, 1);
            match (is_seen, is_over, hangs) {
                (true, true, _) => Ok(false),
                (true, _, true) => Ok(true),
                _ => Err(format!(
                    "{status}, Multi-Attach {multi_attach}, {ready} of {} pods",
                    pods.len()
                )),
            }
        })
        .map_err(|error| format!("{error}\n{}", self.world.controller.log_tail()))
    }

    fn until_over(&self) -> Result<(), String> {
        match self.ended()? {
            false => Ok(()),
            true => Err("it hangs too early".to_owned()),
        }
    }

    /// Ships an image. Without affinity the new pod has to go to the other node.
    fn update(&self) -> Result<bool, String> {
        let rollout = self.list("rollouts")?.pop().unwrap_or_default();
        let moves = rollout["spec"]["template"]["spec"]["affinity"].is_null();
        for pod in self.list("pods")?.iter().filter(|_| moves) {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            self.kubectl(&["cordon", node], None)?;
        }
        self.patch(
            "json",
            &json!([
                {"op": "replace", "path": "/spec/replicas", "value": 1},
                {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "example.com/app:2"},
            ]),
        )?;
        self.ended()
    }

    /// What `audit` finds in the Rollout as it is.
    fn audit(&self) -> Result<Vec<Value>, String> {
        let run = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"))
            .args([
                "audit",
                "--exit-zero",
                "--format=json",
                "--namespace",
                &self.namespace,
            ])
            .env("KUBECONFIG", self.world.plane.kubeconfig())
            .stdin(Stdio::null())
            .output()
            .map_err(|it| it.to_string())?;
        let report: Value = serde_json::from_slice(&run.stdout)
            .map_err(|it| format!("{it}: {}", String::from_utf8_lossy(&run.stderr)))?;
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        let is_it = |it: &Value| it["object"]["kind"] == "Rollout";
        Ok(findings.into_iter().filter(is_it).collect())
    }
}

fn foresees_a_deadlock(findings: &[Value]) -> bool {
    findings.iter().any(|it| it["outcome"] == "deadlock")
}

fn play(world: &World, case: &Case) -> Result<Vec<String>, String> {
    let stage = Stage::build(world, case)?;
    let findings = stage.audit()?;
    let hangs = stage.update()?;
    let says = foresees_a_deadlock(&findings);
    if (hangs, says) != (case.hangs && !case.is_scaled_to_0, case.hangs) {
        return Err(format!(
            "hangs: {hangs}, the engine says so: {says}: {findings:#?}"
        ));
    }
    let mut tried = Vec::new();
    if case.is_scaled_to_0 {
        return Ok(tried);
    }
    let remedies = findings.iter().filter(|it| it["outcome"] == "deadlock");
    for remedy in remedies.flat_map(|it| it["remedies"].as_array().into_iter().flatten()) {
        let name = remedy["name"].as_str().unwrap_or_default().to_owned();
        let stage = Stage::build(world, case)?;
        stage.patch("json", &remedy["patch"])?;
        stage.until_over()?;
        let findings = stage.audit()?;
        if foresees_a_deadlock(&findings) {
            return Err(format!("after {name}: {findings:#?}"));
        }
        if stage.update()? {
            return Err(format!("it hangs after {name}"));
        }
        tried.push(name);
    }
    Ok(tried)
}

#[test]
fn rollouts_end_as_the_engine_says() {
    let Some(world) = World::new() else { return };
    let cases = cases();
    let played: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (cases.iter())
            .map(|case| scope.spawn(|| play(&world, case)))
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let tried = |name: &str| {
        let at = cases.iter().position(|case| case.name == name).unwrap();
        played[at].clone().unwrap_or_default()
    };
    let failed: Vec<String> = (cases.iter().zip(&played))
        .filter_map(|(case, played)| Some(format!("{}: {}", case.name, played.as_ref().err()?)))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // A Rollout that keeps all its old pods is helped by one node alone.
    assert_eq!(tried("canary"), ["zero-surge", "colocate"]);
    assert_eq!(tried("blue-green"), ["colocate"]);
    assert_eq!(tried("routed"), ["colocate"]);
}
