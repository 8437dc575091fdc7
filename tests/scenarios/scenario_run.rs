//! A scenario's namespace and nodes, and the execution of its actions there.

use std::collections::BTreeSet;
use std::sync::Arc;
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
use crate::random::TAINT;
use crate::scenario::{Action, Nodes, STORAGE, Scenario};

/// The time that a controller may take for one step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// The kinds of workload that users create.
const WORKLOADS: [&str; 6] =
    ["Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob", "ReplicationController"];

/// The environment that all scenarios share.
pub(crate) struct Testbed {
    /// The control plane.
    pub(crate) plane: &'static ControlPlane,
    /// The simulated nodes, and the attacher and provisioner for all nodes.
    pub(crate) nodes: FakeNodes<'static>,
    /// The nodes with kubelets.
    pub(crate) hollow: HollowNodes<'static>,
    /// The watcher.
    pub(crate) observer: Observer,
}

impl Testbed {
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
pub(crate) struct ScenarioRun<'a> {
    testbed: &'a Testbed,
    run: String,
    nodes: Vec<String>,
    /// The pod and the node that the last [`Action::Find`] found.
    found: Option<[String; 2]>,
    quiet_for: Duration,
    dead: BTreeSet<String>,
    /// The workloads before the user's last action.
    before: Before,
}

impl<'a> ScenarioRun<'a> {
    /// Creates the namespace, the nodes, and the volume with its claim. If `mode` is set, a guard
    /// in that mode reviews the namespace.
    pub(crate) fn build(
        testbed: &'a Testbed,
        scenario: &Scenario,
        mode: Option<Mode>,
        nodes: Nodes,
    ) -> Result<Self, String> {
        let name = scenario.id.to_lowercase();
        let run = match mode {
            None => testbed.plane.namespace(&name),
            Some(mode) => testbed.plane.labelled_namespace(
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
            specs[*tainted].taints.push(json!({ "key": TAINT, "effect": "NoSchedule" }));
        }
        for (spec, hostname) in specs.iter_mut().zip(&scenario.hostnames) {
            spec.hostname = Some(hostname.replace("{run}", &run));
        }
        for (spec, resources) in specs.iter_mut().zip(&scenario.resources) {
            spec.resources.clone_from(resources);
        }
        match nodes {
            Nodes::Simulated => testbed.nodes.add(&specs),
            Nodes::Kubelets => testbed.hollow.add(&specs, &scenario.node)?,
        }
        let built = Self {
            testbed,
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
        built.furnish(scenario)?;
        Ok(built)
    }

    /// Creates the objects that exist before the user's first action.
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
                // The claim is older than the guard, which might refuse it today.
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

    /// Waits until the controller that binds claims knows the volume. A claim that is created
    /// earlier is bound to one of the volumes known by then.
    fn until_available(&self, volume: &Value) -> Result<(), String> {
        let name = volume["metadata"]["name"].as_str().unwrap_or_default();
        let available = "--for=jsonpath={.status.phase}=Available";
        self.kubectl(&["wait", available, "--timeout=120s", &format!("pv/{name}")], None).done()
    }

    /// The object with its placeholders replaced, and the API for its kind.
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
        let client = self.testbed.plane.client();
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
        match self.testbed.plane.block_on(api.create(&params, &object)) {
            // All scenarios that use a CSIDriver share it.
            Err(kube::Error::Api(response)) if response.is_already_exists() => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(_) => Ok(()),
        }
    }

    /// Deletes a cluster-wide object.
    pub(crate) fn delete(&self, object: &Value) -> Result<(), String> {
        let (object, api) = self.made(object, false)?;
        let name = object.metadata.name.unwrap_or_default();
        let delete = DeleteParams::default();
        let deleted = self.testbed.plane.block_on(api.delete(&name, &delete));
        deleted.map(drop).map_err(|error| error.to_string())
    }

    /// The name of the namespace.
    pub(crate) fn name(&self) -> &str {
        &self.run
    }

    /// Executes one action, and lets the observer catch up if the action waits for rest. Returns
    /// kubectl's output if the action was a user's.
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
                // The observer may not have seen an earlier action that did not wait.
                self.catch_up()?;
                self.heal(Duration::from_secs(*seconds)).map(|_| None)
            }
        }
    }

    /// Lets the observer catch up with the cluster.
    fn catch_up(&self) -> Result<(), String> {
        let Testbed { observer, plane, .. } = self.testbed;
        observer.catch_up(plane, &self.run)
    }

    /// Waits until everything runs or nothing changes any more.
    pub(crate) fn rest(&self) -> Result<Rest, String> {
        let observer = &self.testbed.observer;
        rest(observer, &self.run, &self.dead, self.quiet_for)
    }

    /// Waits until everything runs.
    pub(crate) fn heal(&self, within: Duration) -> Result<Rest, String> {
        healed(&self.testbed.observer, &self.run, &self.dead, within)
    }

    /// The engine's findings about everything here.
    pub(crate) fn opinion(&self) -> Result<Opinion, String> {
        opinion(self.testbed, &self.run, &self.before)
    }

    /// The engine's findings about an object before it is written, as the webhook is asked about
    /// it.
    pub(crate) fn forecast(&self, object: &Value) -> Result<Opinion, String> {
        let defaulted = self.write(object, true)?;
        forecast(self.testbed, &defaulted)
    }

    /// Applies an object on the server side, or as a dry run. Returns the stored object.
    pub(crate) fn write(&self, object: &Value, dry_run: bool) -> Result<Value, String> {
        let (object, api) = self.made(object, true)?;
        let mut as_user = PatchParams::apply("user").force();
        as_user.dry_run = dry_run;
        let name = object.metadata.name.clone().unwrap_or_default();
        let stored = self
            .testbed
            .plane
            .block_on(api.patch(&name, &as_user, &Patch::Apply(&object)))
            .map_err(|error| error.to_string())?;
        serde_json::to_value(stored).map_err(|error| error.to_string())
    }

    /// The watched objects of a kind in the namespace.
    fn objects(&self, kind: &str) -> Vec<Arc<Value>> {
        self.testbed.observer.objects(&self.run, kind)
    }

    /// The workloads in the namespace, by uid.
    fn workloads(&self) -> Before {
        let objects = WORKLOADS.iter().flat_map(|kind| self.objects(kind));
        objects
            .filter_map(|object| Some((object["metadata"]["uid"].as_str()?.to_owned(), object)))
            .collect()
    }

    /// The workloads with their generations. A refusal must not change them.
    pub(crate) fn stored(&self) -> Result<BTreeSet<(String, String)>, String> {
        self.catch_up()?;
        Ok(self.generations())
    }

    /// The watched workloads with their generations. They are equal to the stored ones only when
    /// everything has come to rest.
    pub(crate) fn generations(&self) -> BTreeSet<(String, String)> {
        let generations = self.workloads().into_iter();
        generations
            .map(|(uid, object)| (uid, object["metadata"]["generation"].to_string()))
            .collect()
    }

    fn find(&self, app: &str) -> Result<[String; 2], String> {
        let pods = self.objects("Pod");
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
        if !self.testbed.hollow.die(node) {
            self.testbed.nodes.die(node);
        }
        self.dead.insert(node.clone());
        self.testbed.observer.wait(&self.run, PATIENCE, || {
            let pods = self.objects("Pod");
            let mut named = pods.iter().filter(|object| object["metadata"]["name"] == **pod);
            if named.any(|object| !object["metadata"]["deletionTimestamp"].is_null()) {
                return Ok(());
            }
            Err(format!("Pod {pod} was not evicted from the dead node {node}.").into())
        })
    }

    fn until_bound(&self, claim: &str) -> Result<(), String> {
        self.testbed.observer.wait(&self.run, PATIENCE, || {
            let claims = self.objects("PersistentVolumeClaim");
            let mut named = claims.iter().filter(|object| object["metadata"]["name"] == claim);
            if named.any(|object| object["status"]["phase"] == "Bound") {
                return Ok(());
            }
            Err(format!("Claim {claim} is not bound.").into())
        })
    }

    fn apply(&self, objects: &[Manifest]) -> Output {
        let objects: Vec<&Value> = objects.iter().map(|manifest| &manifest.0).collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        // kubectl refuses a --namespace that differs from the one in the objects.
        let elsewhere = objects.iter().find_map(|object| object["metadata"]["namespace"].as_str());
        let namespace = format!("--namespace={}", elsewhere.unwrap_or("{run}"));
        // kubectl knows how to merge built-in kinds without the API server's schemas, which take it
        // as long to read as the rest.
        let apply = ["apply", "--openapi-patch=false", "-f", "-", &namespace];
        self.kubectl(&apply, Some(&self.fill(&list.to_string())))
    }

    fn kubectl(&self, arguments: &[&str], stdin: Option<&str>) -> Output {
        let filled: Vec<String> = arguments.iter().map(|argument| self.fill(argument)).collect();
        let mut all: Vec<&str> = filled.iter().map(String::as_str).collect();
        let namespace = format!("--namespace={}", self.run);
        if !all.iter().any(|argument| argument.starts_with("--namespace=")) {
            all.push(&namespace);
        }
        self.testbed.plane.kubectl(&all, stdin)
    }

    fn fill(&self, text: &str) -> String {
        let mut text = text.replace("{run}", &self.run);
        if let Some([pod, node]) = &self.found {
            text = text.replace("{pod}", pod).replace("{node}", node);
        }
        if text.contains("{account}") {
            // The uid of an object that exists in every namespace.
            let account =
                self.testbed.plane.get(&["serviceaccount", "default", "--namespace", &self.run]);
            text = text.replace("{account}", account["metadata"]["uid"].as_str().unwrap());
        }
        text
    }
}

/// Deletes everything at once, because remaining objects would keep the controllers busy.
impl Drop for ScenarioRun<'_> {
    fn drop(&mut self) {
        let plane = self.testbed.plane;
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::background() };
        plane.block_on(async {
            let namespaces = Api::<Namespace>::all(plane.client());
            // The namespace goes first, because no controller creates new pods in a namespace that
            // is being deleted.
            let _ = namespaces.delete(&self.run, &DeleteParams::default()).await;
            for resource in self.testbed.observer.resources(&self.run) {
                let api =
                    Api::<DynamicObject>::namespaced_with(plane.client(), &self.run, &resource);
                let all = ListParams::default();
                let _ = api.delete_collection(&at_once, &all).await;
            }
        });
        self.testbed.hollow.remove(&self.nodes);
        self.testbed.nodes.remove(&self.nodes);
    }
}
