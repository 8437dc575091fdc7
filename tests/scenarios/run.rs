//! Plays one scenario in a namespace and on nodes of its own.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::engine::{Opinion, opinion};
use crate::harness::{ControlPlane, FakeNodes, NodeSpec};
use crate::observe::{NotYet, Observer};
use crate::outcome::{Outcome, Rest, healed, rest};
use crate::scenario::{Action, Scenario};

/// What all scenarios share.
pub(crate) struct World {
    /// The control plane.
    pub(crate) plane: &'static ControlPlane,
    /// Its nodes.
    pub(crate) nodes: FakeNodes<'static>,
    /// Its watcher.
    pub(crate) observer: Observer,
}

impl World {
    /// Starts the simulation and the watcher on this control plane.
    pub(crate) fn new(plane: &'static ControlPlane) -> Self {
        Self {
            plane,
            nodes: plane.fake_nodes(),
            observer: Observer::start(plane),
        }
    }
}

/// What came of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    /// The worst outcome of its actions.
    pub(crate) outcome: Outcome,
    /// All Multi-Attach events, the recovery's included.
    pub(crate) multi_attach: Vec<String>,
    /// What waited for good.
    pub(crate) waiting: Vec<String>,
    /// What the engine says of the objects as they were before the way out.
    pub(crate) opinion: Opinion,
    /// How long the way out took until everything ran.
    pub(crate) way_out_took: Option<Duration>,
}

/// Plays the scenario as it stands, with nobody guarding the cluster.
///
/// # Errors
///
/// A sentence when an action cannot be done, or the way out does not lead out.
pub(crate) fn play(world: &World, scenario: &Scenario) -> Result<Played, String> {
    let mut stage = Stage::build(world, scenario)?;
    let played = stage.play(scenario);
    stage.strike();
    played
}

/// A scenario's namespace and nodes.
struct Stage<'a> {
    world: &'a World,
    run: String,
    nodes: Vec<String>,
    found: Option<Found>,
    dead: BTreeSet<String>,
}

struct Found {
    pod: String,
    node: String,
}

impl<'a> Stage<'a> {
    fn build(world: &'a World, scenario: &Scenario) -> Result<Self, String> {
        let run = world.plane.namespace(&scenario.name.to_lowercase());
        let node = |letter: char, zone: &str, owner: &str| NodeSpec {
            name: format!("{run}-{letter}"),
            zone: zone.to_owned(),
            taints: vec![json!({ "key": "scenario", "value": owner, "effect": "NoSchedule" })],
            cpus: 8,
        };
        let own = scenario.zones.iter().map(|zone| (zone, run.as_str()));
        let foreign = scenario.foreign_zones.iter().map(|zone| (zone, "another"));
        let specs: Vec<NodeSpec> = ('a'..)
            .zip(own.chain(foreign))
            .map(|(letter, (zone, owner))| node(letter, zone, owner))
            .collect();
        world.nodes.add(&specs);
        let nodes = specs.into_iter().map(|spec| spec.name).collect();
        let stage = Self {
            world,
            run,
            nodes,
            found: None,
            dead: BTreeSet::new(),
        };
        if let Some(volume) = &scenario.volume {
            let mut objects = volume.storage();
            if volume.claimed {
                objects.push(volume.request());
            }
            stage.apply(&objects)?;
            if volume.claimed {
                stage.until_bound(volume.claim_name())?;
            }
        }
        Ok(stage)
    }

    fn strike(self) {
        self.kubectl(&["delete", "namespace", "{run}", "--wait=false"])
            .ok();
        self.world.nodes.remove(&self.nodes);
    }

    fn play(&mut self, scenario: &Scenario) -> Result<Played, String> {
        let mut worst: Option<Rest> = None;
        for action in &scenario.actions {
            if let Some(rest) = self.act(action)?
                && worst
                    .as_ref()
                    .is_none_or(|worst| rest.outcome >= worst.outcome)
            {
                worst = Some(rest);
            }
        }
        let worst = worst.ok_or("The scenario never came to rest.")?;
        let opinion = opinion(self.world.plane, &self.run)?;
        let mut multi_attach = worst.multi_attach;
        let started = Instant::now();
        for action in &scenario.recovery {
            if let Some(rest) = self.act(action)? {
                if rest.outcome > Outcome::Delay {
                    return Err(format!("The way out leads nowhere: {rest:#?}"));
                }
                multi_attach = rest.multi_attach;
            }
        }
        Ok(Played {
            outcome: worst.outcome,
            multi_attach,
            waiting: worst.waiting,
            opinion,
            way_out_took: (!scenario.recovery.is_empty()).then(|| started.elapsed()),
        })
    }

    /// Does one thing; answers with how things stand when it is one to wait for.
    fn act(&mut self, action: &Action) -> Result<Option<Rest>, String> {
        match action {
            Action::Apply(objects) => {
                self.apply(objects)?;
                self.rest().map(Some)
            }
            Action::Kubectl(arguments) => {
                self.kubectl(arguments)?;
                self.rest().map(Some)
            }
            Action::KubectlAtOnce(arguments) => self.kubectl(arguments).map(|()| None),
            Action::Find(app) => {
                self.found = Some(self.find(app)?);
                Ok(None)
            }
            Action::Die => {
                self.die()?;
                self.rest().map(Some)
            }
            Action::Heal(seconds) => {
                let within = Duration::from_secs(*seconds);
                healed(&self.world.observer, &self.run, &self.dead, within).map(Some)
            }
        }
    }

    fn rest(&self) -> Result<Rest, String> {
        self.world.observer.catch_up(self.world.plane, &self.run)?;
        rest(&self.world.observer, &self.run, &self.dead)
    }

    fn find(&self, app: &str) -> Result<Found, String> {
        let pods = self.world.observer.objects(&self.run, "Pod");
        let pod = pods
            .iter()
            .find(|pod| {
                pod["metadata"]["labels"]["app"] == app && pod["status"]["phase"] == "Running"
            })
            .ok_or_else(|| format!("No pod of {app} runs."))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(Found {
            pod: text(&pod["metadata"]["name"]),
            node: text(&pod["spec"]["nodeName"]),
        })
    }

    fn die(&mut self) -> Result<(), String> {
        let Found { pod, node } = self.found.as_ref().ok_or("No node has been found.")?;
        self.world.nodes.die(node);
        self.dead.insert(node.clone());
        self.world
            .observer
            .wait(&self.run, Duration::from_secs(60), || {
                let pods = self.world.observer.objects(&self.run, "Pod");
                let told = |it: &&std::sync::Arc<Value>| {
                    it["metadata"]["name"] == **pod
                        && !it["metadata"]["deletionTimestamp"].is_null()
                };
                pods.iter().find(told).map(|_| ()).ok_or_else(|| NotYet {
                    because: format!("Pod {pod} was not told to leave the dead node {node}."),
                    ask_again_at: None,
                })
            })
    }

    fn until_bound(&self, claim: &str) -> Result<(), String> {
        self.world
            .observer
            .wait(&self.run, Duration::from_secs(60), || {
                let claims = self
                    .world
                    .observer
                    .objects(&self.run, "PersistentVolumeClaim");
                let bound = claims
                    .iter()
                    .any(|it| it["metadata"]["name"] == claim && it["status"]["phase"] == "Bound");
                bound.then_some(()).ok_or_else(|| NotYet {
                    because: format!("Claim {claim} is not bound."),
                    ask_again_at: None,
                })
            })
    }

    fn apply(&self, objects: &[Value]) -> Result<(), String> {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        // kubectl wants to be told when the objects name a namespace themselves.
        let elsewhere = objects
            .iter()
            .find_map(|it| it["metadata"]["namespace"].as_str());
        let namespace = format!("--namespace={}", elsewhere.unwrap_or("{run}"));
        let arguments = ["apply", "-f", "-", &namespace];
        self.kubectl_with(&arguments, Some(&self.fill(&list.to_string())))
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<(), String> {
        self.kubectl_with(arguments, None)
    }

    fn kubectl_with(&self, arguments: &[&str], stdin: Option<&str>) -> Result<(), String> {
        let filled: Vec<String> = arguments.iter().map(|it| self.fill(it)).collect();
        let mut all: Vec<&str> = filled.iter().map(String::as_str).collect();
        let namespace = format!("--namespace={}", self.run);
        if !all
            .iter()
            .any(|argument| argument.starts_with("--namespace="))
        {
            all.push(&namespace);
        }
        let output = self.world.plane.kubectl(&all, stdin);
        if output.status == 0 {
            Ok(())
        } else {
            Err(format!("{output:#?}"))
        }
    }

    fn fill(&self, text: &str) -> String {
        let mut text = text.replace("{run}", &self.run);
        if let Some(Found { pod, node }) = &self.found {
            text = text.replace("{pod}", pod).replace("{node}", node);
        }
        text
    }
}
