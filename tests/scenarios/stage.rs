//! A scenario's namespace and nodes, and doing one thing after the other there.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::engine::{Before, Opinion, forecast, opinion};
use crate::guarded::{MODE, Mode};
use crate::harness::fake_nodes::{NodeSpec, SCENARIO};
use crate::harness::{ControlPlane, FakeNodes, HollowNodes, Output};
use crate::manifests::Manifest;
use crate::observe::Observer;
use crate::outcome::{QUIET, QUIET_WITH_KUBELETS, Rest, healed, rest};
use crate::scenario::{Action, Nodes, STORAGE, Scenario};
use crate::worlds::TAINT;

/// How long a controller may take for one thing, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(180);

/// The kinds of workload that users make.
const WORKLOADS: [&str; 6] = [
    "Deployment",
    "DaemonSet",
    "StatefulSet",
    "Job",
    "CronJob",
    "ReplicationController",
];

/// What all scenarios share.
pub(crate) struct World {
    /// The control plane.
    pub(crate) plane: &'static ControlPlane,
    /// Its simulated nodes, and the attacher and provisioner of all.
    pub(crate) nodes: FakeNodes<'static>,
    /// Its nodes with kubelets.
    pub(crate) hollow: HollowNodes<'static>,
    /// Its watcher.
    pub(crate) observer: Observer,
}

impl World {
    /// Starts the simulation and the watcher on this control plane.
    pub(crate) fn new(plane: &'static ControlPlane) -> Self {
        Self {
            plane,
            nodes: plane.fake_nodes(),
            hollow: plane.hollow_nodes(),
            observer: Observer::start(plane),
        }
    }
}

/// A scenario's namespace and nodes.
pub(crate) struct Stage<'a> {
    world: &'a World,
    run: String,
    nodes: Vec<String>,
    /// The pod and the node that [`Action::Find`] has found.
    found: Option<[String; 2]>,
    quiet_for: Duration,
    dead: BTreeSet<String>,
    /// What was here before the user's last action.
    before: Before,
}

impl<'a> Stage<'a> {
    /// Makes the namespace, where a guard of that mode is asked, or none, the nodes, and
    /// the volume with its claim.
    pub(crate) fn build(
        world: &'a World,
        scenario: &Scenario,
        mode: Option<Mode>,
        nodes: Nodes,
    ) -> Result<Self, String> {
        let name = scenario.id.to_lowercase();
        let run = match mode {
            None => world.plane.namespace(&name),
            Some(mode) => world.plane.labelled_namespace(
                &format!("{}-{name}", mode.name()),
                &json!({ MODE: mode.name() }),
            ),
        };
        let node = |letter: char, zone: &str, owner: &str| NodeSpec {
            name: format!("{run}-{letter}"),
            zone: zone.to_owned(),
            scenario: run.clone(),
            taints: vec![json!({ "key": "scenario", "value": owner, "effect": "NoSchedule" })],
            cpus: 8,
            ..NodeSpec::default()
        };
        let own = scenario.zones.iter().map(|zone| (zone, run.as_str()));
        let foreign = scenario.others.iter().map(|zone| (zone, "another"));
        let mut specs: Vec<NodeSpec> = ('a'..)
            .zip(own.chain(foreign))
            .map(|(letter, (zone, owner))| node(letter, zone, owner))
            .collect();
        for tainted in &scenario.tainted {
            specs[*tainted]
                .taints
                .push(json!({ "key": TAINT, "effect": "NoSchedule" }));
        }
        for (spec, hostname) in specs.iter_mut().zip(&scenario.hostnames) {
            spec.hostname = Some(hostname.replace("{run}", &run));
        }
        for (spec, resources) in specs.iter_mut().zip(&scenario.resources) {
            spec.resources.clone_from(resources);
        }
        match nodes {
            Nodes::Simulated => world.nodes.add(&specs),
            Nodes::Kubelets => world.hollow.add(&specs, &scenario.node)?,
        }
        let stage = Self {
            world,
            run,
            nodes: specs.into_iter().map(|spec| spec.name).collect(),
            found: None,
            quiet_for: match nodes {
                Nodes::Simulated => QUIET,
                Nodes::Kubelets => QUIET_WITH_KUBELETS,
            },
            dead: BTreeSet::new(),
            before: Before::new(),
        };
        stage.furnish(scenario)?;
        Ok(stage)
    }

    /// Makes what exists before the user does anything.
    fn furnish(&self, scenario: &Scenario) -> Result<(), String> {
        if let Some(class) = scenario.class() {
            self.create(&class)?;
        }
        for object in &scenario.existing {
            self.create(object)?;
        }
        for (name, volume) in scenario.volumes() {
            self.create(&volume)?;
            if !scenario.claims[name].later {
                let mut claim = scenario.claims[name].manifest(name, &STORAGE);
                // It was there before the guard, which may refuse such a claim today.
                claim["metadata"]["annotations"] = json!({
                    "multi-attach-guard.dev/action": "warn",
                    "multi-attach-guard.dev/reason": "The claim is older than the guard.",
                });
                self.create(&claim)?;
            }
        }
        scenario.volumes().try_for_each(|(name, volume)| {
            if scenario.claims[name].later {
                self.until_available(&volume)
            } else {
                self.until_bound(name)
            }
        })
    }

    /// Waits until the controller that binds claims knows the volume: a claim that comes
    /// before gets what it knows by then.
    fn until_available(&self, volume: &Value) -> Result<(), String> {
        let name = volume["metadata"]["name"].as_str().unwrap_or_default();
        let available = "--for=jsonpath={.status.phase}=Available";
        let volume = format!("pv/{name}");
        self.kubectl(&["wait", available, "--timeout=120s", &volume], None)
            .done()
    }

    /// The object with what its texts stand for, and where objects of its kind are made.
    fn made(
        &self,
        object: &Value,
        is_namespaced: bool,
    ) -> Result<(DynamicObject, Api<DynamicObject>), String> {
        let object: DynamicObject = serde_json::from_str(&self.fill(&object.to_string()))
            .map_err(|error| error.to_string())?;
        let types = object.types.as_ref().ok_or("An object has no kind.")?;
        let kind = GroupVersionKind::try_from(types).map_err(|error| error.to_string())?;
        let resource = ApiResource::from_gvk(&kind);
        let client = self.world.plane.client();
        let api = if is_namespaced {
            Api::namespaced_with(client, &self.run, &resource)
        } else {
            Api::all_with(client, &resource)
        };
        Ok((object, api))
    }

    pub(crate) fn create(&self, object: &Value) -> Result<(), String> {
        let is_namespaced = object["kind"] == "PersistentVolumeClaim";
        let (mut object, api) = self.made(object, is_namespaced)?;
        if !is_namespaced {
            let labels = object.metadata.labels.get_or_insert_default();
            labels.insert(SCENARIO.to_owned(), self.run.clone());
        }
        let params = PostParams::default();
        match self.world.plane.block_on(api.create(&params, &object)) {
            // A CSIDriver is of all scenarios that use it.
            Err(kube::Error::Api(it)) if it.is_already_exists() => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(_) => Ok(()),
        }
    }

    /// Deletes an object that has no namespace.
    pub(crate) fn delete(&self, object: &Value) -> Result<(), String> {
        let (object, api) = self.made(object, false)?;
        let name = object.metadata.name.unwrap_or_default();
        let delete = DeleteParams::default();
        let deleted = self.world.plane.block_on(api.delete(&name, &delete));
        deleted.map(drop).map_err(|error| error.to_string())
    }

    /// The namespace's name.
    pub(crate) fn name(&self) -> &str {
        &self.run
    }

    /// Does one thing, and lets the observer see it where everything comes to rest after it.
    /// Answers with what kubectl said when it was a user's doing.
    pub(crate) fn act(&mut self, action: &Action) -> Result<Option<Output>, String> {
        let output = self.do_one(action)?;
        if action.rests() {
            self.catch_up()?;
        }
        Ok(output)
    }

    fn do_one(&mut self, action: &Action) -> Result<Option<Output>, String> {
        match action {
            Action::Apply(objects) | Action::ApplyAtOnce(objects) => {
                self.before = self.workloads();
                Ok(Some(self.apply(objects)))
            }
            Action::Write(object) => self.write(object, false).map(|_| None),
            Action::Kubectl(command) | Action::KubectlAtOnce(command) => {
                self.before = self.workloads();
                let arguments: Vec<&str> = command.split_whitespace().collect();
                Ok(Some(self.kubectl(&arguments, None)))
            }
            Action::Find(app) => {
                self.found = Some(self.find(app)?);
                Ok(None)
            }
            Action::Die => self.die().map(|()| None),
            Action::Heal(seconds) => {
                // What was done at once before it may not have been seen yet.
                self.catch_up()?;
                self.heal(Duration::from_secs(*seconds)).map(|_| None)
            }
        }
    }

    /// Lets the observer see what the cluster has now.
    fn catch_up(&self) -> Result<(), String> {
        self.world.observer.catch_up(self.world.plane, &self.run)
    }

    /// Waits until everything runs or nothing moves any more.
    pub(crate) fn rest(&self) -> Result<Rest, String> {
        rest(&self.world.observer, &self.run, &self.dead, self.quiet_for)
    }

    /// Waits until everything runs.
    pub(crate) fn heal(&self, within: Duration) -> Result<Rest, String> {
        healed(&self.world.observer, &self.run, &self.dead, within)
    }

    /// What the engine says of everything here.
    pub(crate) fn opinion(&self) -> Result<Opinion, String> {
        opinion(self.world, &self.run, &self.before)
    }

    /// What the engine says of an object before it is written: what the webhook is asked.
    pub(crate) fn forecast(&self, object: &Value) -> Result<Opinion, String> {
        let defaulted = self.write(object, true)?;
        forecast(self.world, &defaulted)
    }

    /// Server-side apply of an object, or of a dry run of it; answers with what is stored.
    pub(crate) fn write(&self, object: &Value, dry_run: bool) -> Result<Value, String> {
        let (object, api) = self.made(object, true)?;
        let mut as_user = PatchParams::apply("user").force();
        as_user.dry_run = dry_run;
        let name = object.metadata.name.clone().unwrap_or_default();
        let stored = self
            .world
            .plane
            .block_on(api.patch(&name, &as_user, &Patch::Apply(&object)))
            .map_err(|error| error.to_string())?;
        serde_json::to_value(stored).map_err(|error| error.to_string())
    }

    /// The workloads here, by uid.
    fn workloads(&self) -> Before {
        let objects = WORKLOADS
            .iter()
            .flat_map(|kind| self.world.observer.objects(&self.run, kind));
        objects
            .filter_map(|it| Some((it["metadata"]["uid"].as_str()?.to_owned(), it)))
            .collect()
    }

    /// The workloads here, each with its generation: what refusing must not change.
    pub(crate) fn stored(&self) -> Result<BTreeSet<(String, String)>, String> {
        self.catch_up()?;
        Ok(self.generations())
    }

    /// The same where everything has come to rest, so that what is watched is what is stored.
    pub(crate) fn generations(&self) -> BTreeSet<(String, String)> {
        let generations = self.workloads().into_iter();
        generations
            .map(|(uid, it)| (uid, it["metadata"]["generation"].to_string()))
            .collect()
    }

    fn find(&self, app: &str) -> Result<[String; 2], String> {
        let pods = self.world.observer.objects(&self.run, "Pod");
        let pod = pods
            .iter()
            .find(|pod| {
                pod["metadata"]["labels"]["app"] == app && pod["status"]["phase"] == "Running"
            })
            .ok_or_else(|| format!("No pod of {app} runs."))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok([&pod["metadata"]["name"], &pod["spec"]["nodeName"]].map(text))
    }

    fn die(&mut self) -> Result<(), String> {
        let [pod, node] = self.found.as_ref().ok_or("No node has been found.")?;
        if !self.world.hollow.die(node) {
            self.world.nodes.die(node);
        }
        self.dead.insert(node.clone());
        self.world.observer.wait(&self.run, PATIENCE, || {
            let pods = self.world.observer.objects(&self.run, "Pod");
            let mut named = pods.iter().filter(|it| it["metadata"]["name"] == **pod);
            if named.any(|it| !it["metadata"]["deletionTimestamp"].is_null()) {
                return Ok(());
            }
            Err(format!("Pod {pod} was not evicted from the dead node {node}.").into())
        })
    }

    fn until_bound(&self, claim: &str) -> Result<(), String> {
        self.world.observer.wait(&self.run, PATIENCE, || {
            let claims = self
                .world
                .observer
                .objects(&self.run, "PersistentVolumeClaim");
            let mut named = claims.iter().filter(|it| it["metadata"]["name"] == claim);
            if named.any(|it| it["status"]["phase"] == "Bound") {
                return Ok(());
            }
            Err(format!("Claim {claim} is not bound.").into())
        })
    }

    fn apply(&self, objects: &[Manifest]) -> Output {
        let objects: Vec<&Value> = objects.iter().map(|it| &it.0).collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        // kubectl takes no --namespace where the objects name another.
        let elsewhere = objects
            .iter()
            .find_map(|it| it["metadata"]["namespace"].as_str());
        let namespace = format!("--namespace={}", elsewhere.unwrap_or("{run}"));
        let list = self.fill(&list.to_string());
        self.kubectl(&["apply", "-f", "-", &namespace], Some(&list))
    }

    fn kubectl(&self, arguments: &[&str], stdin: Option<&str>) -> Output {
        let filled: Vec<String> = arguments.iter().map(|it| self.fill(it)).collect();
        let mut all: Vec<&str> = filled.iter().map(String::as_str).collect();
        let namespace = format!("--namespace={}", self.run);
        if !all
            .iter()
            .any(|argument| argument.starts_with("--namespace="))
        {
            all.push(&namespace);
        }
        self.world.plane.kubectl(&all, stdin)
    }

    fn fill(&self, text: &str) -> String {
        let mut text = text.replace("{run}", &self.run);
        if let Some([pod, node]) = &self.found {
            text = text.replace("{pod}", pod).replace("{node}", node);
        }
        if text.contains("{account}") {
            // The uid of an object that every namespace has.
            let account = ["serviceaccount", "default", "--namespace", &self.run];
            let account = self.world.plane.get(&account);
            text = text.replace("{account}", account["metadata"]["uid"].as_str().unwrap());
        }
        text
    }
}

/// Takes everything away, at once: what is left would keep the controllers busy.
impl Drop for Stage<'_> {
    fn drop(&mut self) {
        let plane = self.world.plane;
        let at_once = DeleteParams {
            grace_period_seconds: Some(0),
            ..DeleteParams::background()
        };
        plane.block_on(async {
            let namespaces = Api::<Namespace>::all(plane.client());
            // First, because nobody makes new pods in a namespace that goes.
            let _ = namespaces.delete(&self.run, &DeleteParams::default()).await;
            for resource in self.world.observer.resources(&self.run) {
                let api =
                    Api::<DynamicObject>::namespaced_with(plane.client(), &self.run, &resource);
                let all = ListParams::default();
                let _ = api.delete_collection(&at_once, &all).await;
            }
        });
        self.world.hollow.remove(&self.nodes);
        self.world.nodes.remove(&self.nodes);
    }
}
