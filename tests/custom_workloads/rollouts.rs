//! What the controller of Argo Rollouts makes of a ReadWriteOnce volume: whether a rollout hangs is
//! what the engine says before it begins, and every remedy that `audit` proposes for one that
//! hangs lets it end.

use serde_json::{Value, json};

use crate::harness::shorthand::object;
use crate::harness::webhooks::review;
use crate::harness::{GuardOptions, at_once, seen};
use crate::{Stage, World, multi_attach};

/// A Rollout of one pod, and how its first update ends.
struct Case {
    name: &'static str,
    strategy: Value,
    /// Whether its pods must be on one node.
    is_beside: bool,
    /// Whether it has no pods when the update comes, and gets one afterwards.
    is_scaled_to_0: bool,
    /// Whether its rollouts hang where there are pods.
    hangs: bool,
}

fn cases() -> Vec<Case> {
    let case = |name, strategy, hangs| Case {
        name,
        strategy,
        is_beside: false,
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
            is_beside: true,
            ..case("canary-beside", json!({"canary": {}}), false)
        },
        Case {
            is_beside: true,
            ..case("blue-green-beside", blue_green.clone(), false)
        },
        Case {
            is_scaled_to_0: true,
            ..case("scaled-to-0", blue_green, true)
        },
    ]
}

/// Where the rollout of the last change stands.
enum State {
    Over,
    Hangs,
    /// With what is seen of it.
    Goes(String),
}

struct Rollout<'w>(Stage<'w>);

impl<'w> Rollout<'w> {
    fn build(world: &'w World, case: &Case) -> Result<Self, String> {
        let rollout = Self(Stage::build(world, case.name)?);
        for object in rollout.objects(case) {
            rollout.0.apply(&object)?;
        }
        rollout.until_over()?;
        if case.is_scaled_to_0 {
            rollout.patch("merge", &json!({"spec": {"replicas": 0}}))?;
            rollout.0.until_pods(0, 0)?;
        }
        Ok(rollout)
    }

    fn objects(&self, case: &Case) -> Vec<Value> {
        let to_web = json!({"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
        let service = |name: &str| object(json!({"kind": "Service", "name": name, "with": to_web}));
        vec![
            service("web"),
            service("canary"),
            json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"},
                "spec": {"ingressClassName": "nginx", "rules": [{"http": {"paths": [{
                    "path": "/", "pathType": "Prefix",
                    "backend": {"service": {"name": "web", "port": {"number": 80}}},
                }]}}]},
            }),
            self.0.workload(json!({
                "kind": "Rollout",
                "replicas": 1,
                "strategy": case.strategy,
                "beside": case.is_beside.then(|| json!({"app": "web"})),
                // The usual ten minutes are long for a verdict.
                "with": {"spec": {"progressDeadlineSeconds": 20}},
            })),
        ]
    }

    fn patch(&self, how: &str, patch: &Value) -> Result<(), String> {
        let (how, patch) = (format!("--type={how}"), patch.to_string());
        self.0
            .kubectl(&["patch", "rollout", "web", &how, "-p", &patch])?;
        Ok(())
    }

    /// Waits until the rollout is over or hangs; whether it hangs.
    fn ended(&self) -> Result<bool, String> {
        self.0.until("the rollout to end", || match self.state()? {
            State::Over => Ok(false),
            State::Hangs => Ok(true),
            State::Goes(how) => Err(how),
        })
    }

    /// Waits until the rollout is over. One that has hung says so still when its controller has
    /// seen the change that helps.
    fn until_over(&self) -> Result<(), String> {
        self.0
            .until("the rollout to be over", || match self.state()? {
                State::Over => Ok(()),
                State::Hangs => Err("it hangs".to_owned()),
                State::Goes(how) => Err(how),
            })
    }

    fn state(&self) -> Result<State, String> {
        let rollout = self.0.list("rollouts")?.pop().unwrap_or_default();
        let status = &rollout["status"];
        let generation = rollout["metadata"]["generation"].to_string();
        let is_seen = status["observedGeneration"].as_str() == Some(&*generation);
        let multi_attach = multi_attach(&self.0.list("events")?);
        let pods = self.0.list("pods")?;
        let ready = pods.iter().filter(|pod| crate::is_ready(pod)).count();
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
        Ok(match (is_seen, is_over, hangs) {
            (true, true, _) => State::Over,
            (true, _, true) => State::Hangs,
            _ => State::Goes(format!(
                "{status}, Multi-Attach {multi_attach}, {ready} of {} pods",
                pods.len()
            )),
        })
    }

    fn ship(&self, image: &str) -> Result<(), String> {
        let path = "/spec/template/spec/containers/0/image";
        let image = json!([{"op": "replace", "path": path, "value": image}]);
        self.patch("json", &image)
    }

    /// Ships an image. Without affinity the new pod has to go to the other node.
    fn update(&self) -> Result<bool, String> {
        let rollout = self.0.list("rollouts")?.pop().unwrap_or_default();
        let moves = rollout["spec"]["template"]["spec"]["affinity"].is_null();
        for pod in self.0.list("pods")?.iter().filter(|_| moves) {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            self.0.kubectl(&["cordon", node])?;
        }
        self.ship("example.com/app:2")?;
        let hangs = self.ended()?;
        if rollout["spec"]["replicas"] != 0 {
            return Ok(hangs);
        }
        // Only now: a controller that sees both at once starts a pod of each template
        // (`reconcileBlueGreenReplicaSets`), and which of them gets the volume is luck.
        self.patch("merge", &json!({"spec": {"replicas": 1}}))?;
        self.0.until_pods(1, 1)?;
        self.ended()
    }
}

impl Rollout<'_> {
    /// Goes back to the stable template, which the guard lets pass and the controller needs no pod
    /// for: the node of the pod that is there takes no other.
    fn goes_back(&self) -> Result<(), String> {
        let options = GuardOptions::default().with(&["--custom-workloads"]);
        let plane = self.0.world.plane;
        let guard = plane.guard(&self.0.namespace, &options);
        let said = |image: &str| -> Result<Value, String> {
            let old = self.0.list("rollouts")?.pop().unwrap_or_default();
            let mut new = old.clone();
            new["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
            let review = review(&new, Some(&old));
            let request = plane.http().post(format!("{}/validate", guard.url));
            let answer = plane.block_on(async {
                let answer = request.json(&review).send().await?;
                answer.json::<Value>().await
            });
            answer
                .map(|it| it["response"].clone())
                .map_err(|it| it.to_string())
        };
        self.0.until("the guard to refuse a third image", || {
            let answer = said("example.com/app:3")?;
            seen(answer["allowed"] == false, answer)
        })?;
        let answer = said("example.com/app:1")?;
        let warnings = answer["warnings"].to_string();
        seen(
            warnings.contains("This is a rollback to ReplicaSet web-"),
            answer,
        )?;
        self.ship("example.com/app:1")?;
        self.until_over()
    }
}

fn foresees_a_deadlock(findings: &[Value]) -> bool {
    findings.iter().any(|it| it["outcome"] == "deadlock")
}

fn play(world: &World, case: &Case) -> Result<Vec<String>, String> {
    let rollout = Rollout::build(world, case)?;
    let findings = rollout.0.audit(&["Rollout"])?;
    let hangs = rollout.update()?;
    let says = foresees_a_deadlock(&findings);
    let expected = (case.hangs && !case.is_scaled_to_0, case.hangs);
    // Whether it hangs, and whether the engine says so.
    seen((hangs, says) == expected, (hangs, says, &findings))?;
    let mut tried = Vec::new();
    if case.is_scaled_to_0 {
        return Ok(tried);
    }
    if hangs {
        rollout.goes_back()?;
    }
    let remedies = findings.iter().filter(|it| it["outcome"] == "deadlock");
    for remedy in remedies.flat_map(|it| it["remedies"].as_array().into_iter().flatten()) {
        let name = remedy["name"].as_str().unwrap_or_default().to_owned();
        let rollout = Rollout::build(world, case)?;
        rollout.patch("json", &remedy["patch"])?;
        rollout.until_over()?;
        let findings = rollout.0.audit(&["Rollout"])?;
        seen(!foresees_a_deadlock(&findings), (&name, findings))?;
        seen(!rollout.update()?, "it hangs after the remedy")?;
        tried.push(name);
    }
    Ok(tried)
}

#[test]
fn rollouts_end_as_the_engine_says() {
    // Ports of the system's choice, which nobody asks.
    let flags = ["--leader-elect=false", "--healthzPort=0", "--metricsPort=0"].map(str::to_owned);
    let world = crate::harness::or_skip!(World::new("rollouts", &flags, &[]));
    let cases = cases();
    let played = at_once(cases.len(), &cases, |_, case| play(&world, case));
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
