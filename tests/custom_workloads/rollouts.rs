//! The controller of Argo Rollouts with a ReadWriteOnce volume: the engine says before a rollout
//! whether it will hang, and every remedy that `audit` proposes for a hanging rollout lets it end.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::shorthand::Shorthand;
use crate::harness::webhooks::review;
use crate::harness::{GuardOptions, or_skip, seen};
use crate::{OperatorCluster, OperatorTest, is_ready, multi_attach, play_all};

/// A Rollout with one pod, in `rollouts.yaml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Case {
    name: String,
    strategy: Value,
    beside: bool,
    scaled_to_0: bool,
    hangs: bool,
    remedies: Option<Vec<String>>,
}

const ROLLOUT: &str = "rollout/web";

fn build<'c>(cluster: &'c OperatorCluster, case: &Case) -> Result<OperatorTest<'c>, String> {
    let rollout = OperatorTest::build(cluster, &case.name)?;
    let services: Vec<Shorthand> = serde_saphyr::from_str(include_str!("services.yaml")).unwrap();
    for service in services {
        rollout.namespace.apply(&service.manifest())?;
    }
    rollout.namespace.apply(&rollout.workload(json!({
        "kind": "Rollout",
        "replicas": 1,
        "strategy": case.strategy,
        "beside": case.beside.then(|| json!({"app": "web"})),
        // The usual ten minutes are too long for a test.
        "with": {"spec": {"progressDeadlineSeconds": 20}},
    })))?;
    rollout.until_over()?;
    if case.scaled_to_0 {
        rollout.patch(ROLLOUT, "merge", &json!({"spec": {"replicas": 0}}))?;
        rollout.until_pods(0, 0)?;
    }
    Ok(rollout)
}

impl OperatorTest<'_> {
    /// Waits until the rollout is over or hangs; returns whether it hangs.
    fn ended(&self) -> Result<bool, String> {
        self.until("the rollout to end", || self.hangs())
    }

    /// Waits until the rollout is over. A rollout that hung may still be reported as hanging after
    /// its controller has observed the change that helps.
    fn until_over(&self) -> Result<(), String> {
        self.until("the rollout to be over", || {
            let hangs = self.hangs()?;
            seen(!hangs, "it hangs").map(drop)
        })
    }

    /// Whether the rollout of the last change hangs, if it has reached an end; otherwise its state
    /// as an error.
    fn hangs(&self) -> Result<bool, String> {
        let rollout = self.namespace.list("rollouts")?.pop().unwrap_or_default();
        let status = &rollout["status"];
        let generation = rollout["metadata"]["generation"].to_string();
        let is_seen = status["observedGeneration"].as_str() == Some(&*generation);
        let multi_attach = multi_attach(&self.namespace.list("events")?);
        let pods = self.namespace.list("pods")?;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        let leaves = pods.iter().any(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
        let is_over = status["phase"] == "Healthy"
            && status["stableRS"] == status["currentPodHash"]
            && pods.len() == ready
            && !leaves;
        // The old pod continues to serve while the new one waits for its volume.
        let hangs = status["phase"] == "Degraded"
            && status["message"].to_string().contains("ProgressDeadlineExceeded")
            && multi_attach
            && !leaves
            && (pods.len(), ready) == (2, 1);
        if is_seen && (is_over || hangs) {
            return Ok(hangs);
        }
        let all = pods.len();
        Err(format!("{status}, Multi-Attach {multi_attach}, {ready} of {all} pods"))
    }

    fn ship(&self, image: &str) -> Result<(), String> {
        let path = "/spec/template/spec/containers/0/image";
        self.patch(ROLLOUT, "json", &json!([{"op": "replace", "path": path, "value": image}]))
    }

    /// Ships an image. Without affinity the new pod must go to the other node, because the first is
    /// cordoned.
    fn update(&self) -> Result<bool, String> {
        let rollout = self.namespace.list("rollouts")?.pop().unwrap_or_default();
        let moves = rollout["spec"]["template"]["spec"]["affinity"].is_null();
        for pod in self.namespace.list("pods")?.iter().filter(|_| moves) {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            self.kubectl(&["cordon", node])?;
        }
        self.ship("example.com/app:2")?;
        let hangs = self.ended()?;
        if rollout["spec"]["replicas"] != 0 {
            return Ok(hangs);
        }
        // Not earlier: a controller that sees both changes at once starts a pod of each template
        // (`reconcileBlueGreenReplicaSets`), and either may get the volume.
        self.patch(ROLLOUT, "merge", &json!({"spec": {"replicas": 1}}))?;
        self.until_pods(1, 1)?;
        self.ended()
    }

    /// Goes back to the stable template. The guard must allow it with an annotation, and the
    /// controller must need no new pod, because the node of the existing pod is cordoned.
    fn goes_back(&self) -> Result<(), String> {
        let options = GuardOptions::default().with(&["--custom-workloads"]);
        let plane = self.cluster.plane;
        let guard = plane.guard(&self.namespace, &options);
        let said = |annotations: &Value| -> Result<Value, String> {
            let old = self.namespace.list("rollouts")?.pop().unwrap_or_default();
            let mut new = old.clone();
            new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("example.com/app:1");
            new["metadata"]["annotations"] = annotations.clone();
            guard.validate(plane, &review(&new, Some(&old)))
        };
        self.until("the guard to refuse it without an annotation", || {
            let answer = said(&json!({}))?;
            seen(answer["allowed"] == false, answer)
        })?;
        let back = json!({"multi-attach-guard.dev/action": "warn",
            "multi-attach-guard.dev/reason": "back to the stable template"});
        let answer = said(&back)?;
        seen(answer["allowed"] == true, answer)?;
        self.ship("example.com/app:1")?;
        self.until_over()
    }
}

fn foresees_a_deadlock(findings: &[Value]) -> bool {
    findings.iter().any(|finding| finding["outcome"] == "deadlock")
}

fn play(cluster: &OperatorCluster, case: &Case) -> Result<(), String> {
    let rollout = build(cluster, case)?;
    let findings = rollout.audit(&["Rollout"])?;
    let hangs = rollout.update()?;
    let says = foresees_a_deadlock(&findings);
    let expected = (case.hangs && !case.scaled_to_0, case.hangs);
    // The forecast and the observation must both match the case.
    seen((hangs, says) == expected, (hangs, says, &findings))?;
    if case.scaled_to_0 {
        return Ok(());
    }
    if hangs {
        rollout.goes_back()?;
    }
    let mut tried = Vec::new();
    let deadlocks = findings.iter().filter(|finding| finding["outcome"] == "deadlock");
    for remedy in deadlocks.flat_map(|finding| finding["remedies"].as_array().into_iter().flatten())
    {
        let name = remedy["name"].as_str().unwrap_or_default().to_owned();
        let repaired = build(cluster, case)?;
        repaired.patch(ROLLOUT, "json", &remedy["patch"])?;
        repaired.until_over()?;
        let left = repaired.audit(&["Rollout"])?;
        seen(!foresees_a_deadlock(&left), (&name, left))?;
        seen(!repaired.update()?, "it hangs after the remedy")?;
        tried.push(name);
    }
    let as_expected = case.remedies.as_ref().is_none_or(|remedies| *remedies == tried);
    seen(as_expected, tried).map(drop)
}

#[test]
fn rollouts_end_as_the_engine_says() {
    // Ports are chosen by the system, because nobody calls them.
    let flags = ["--leader-elect=false", "--healthzPort=0", "--metricsPort=0"].map(str::to_owned);
    let cluster = or_skip!(OperatorCluster::new("rollouts", &flags, &[]));
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("rollouts.yaml")).unwrap();
    play_all(&cases, |case| {
        play(&cluster, case).map_err(|error| format!("{}: {error}", case.name))
    });
}
