//! Requests that controllers make by themselves, and kubectl commands about objects that
//! controllers created, with the real controller manager.

use std::time::Duration;

use serde_json::{Value, json};

use crate::guarded_cluster::GuardedCluster;
use crate::harness::shorthand::bound_claim;
use crate::harness::{Namespace, Output, seen, wait_until};
use crate::install::UNGUARDED;
use crate::objects::{DISK, Object};
use crate::said::Said;
use crate::stored;

/// The autoscaler runs every 15 s.
pub(crate) const WITHIN: Duration = Duration::from_secs(120);

/// A case of this file: its name in the table, which is kind, operation and verdict, and its
/// function.
pub(crate) type Row = (&'static str, fn(&GuardedCluster) -> Result<(), String>);

/// One line for each case.
macro_rules! rows {
    ($($name:literal => $play:ident;)*) => { [$(($name, $play)),*] };
}

pub(crate) const ROWS: [Row; 6] = rows! {
    "HPA | the autoscaler's own request to scale | deny (autoscaler-exceeds-volume)" => autoscaler_is_refused;
    "Deployment | kubectl rollout undo to the pod that has the volume and is not ready | warn (rolling-update-overlap)" => undo_to_a_pod_that_is_there;
    "Deployment | kubectl rollout undo brings the claim back | deny (rolling-update-overlap)" => undo_that_brings_the_claim_back;
    "Deployment | kubectl rollout undo, Recreate | silent" => undo_with_recreate;
    "Deployment | its ReplicaSet and pods are made by controllers | silent" => controllers_are_left_alone;
    "Deployment | create beside a ReplicaSet with the labels of a Deployment's | deny (workloads-share-volume)" => labels_hide_nobody;
};

const SCALE: [&str; 3] = ["scale", "deployment/web", "--replicas=2"];

fn recreated() -> Value {
    json!({ "kind": "Deployment", "strategy": "Recreate" })
}

/// An autoscaler from before the guard: its request is refused, and its conditions give the reason.
fn autoscaler_is_refused(cluster: &GuardedCluster) -> Result<(), String> {
    let test = ControllerTest::new(cluster, &recreated())?;
    test.until_refused(&SCALE, "autoscaler-exceeds-volume")?;
    // Below minReplicas, it scales without metrics.
    let bounds = json!({ "minReplicas": 2, "maxReplicas": 2 });
    test.make(&json!({ "kind": "HorizontalPodAutoscaler", "with": { "spec": bounds } }))?;
    wait_until("the autoscaler to say why it cannot scale", WITHIN, || {
        let autoscaler = test.read("HorizontalPodAutoscaler/web");
        let conditions =
            autoscaler.pointer("/status/conditions").and_then(Value::as_array).cloned();
        let refused = conditions.iter().flatten().any(|condition| {
            let message = condition["message"].as_str().unwrap_or_default();
            condition["type"] == "AbleToScale"
                && condition["status"] == "False"
                && message.contains("denied the request: ")
                && message.contains("claim \"data\" is ReadWriteOnce")
                && message.contains("multi-attach-guard rules autoscaler-exceeds-volume")
        });
        seen(refused, conditions)
    })?;
    let described = test.kubectl(&["describe", "hpa", "web"]).success().stdout;
    if !described.contains("autoscaler-exceeds-volume") {
        return Err(format!("kubectl describe does not say why: {described}"));
    }
    let replicas = test.read("Deployment/web")["spec"]["replicas"].clone();
    if replicas != 1 {
        return Err(format!("There are {replicas} replicas."));
    }
    Ok(())
}

/// No pod starts: the first one already runs, and the second waits for its volume.
fn undo_to_a_pod_that_is_there(cluster: &GuardedCluster) -> Result<(), String> {
    let test = ControllerTest::new(cluster, &json!({ "kind": "Deployment" }))?;
    test.until_revision("1")?;
    test.unguarded(&["set", "image", "deployment/web", "main=example.com/app:2"]);
    test.until_revision("2")?;
    let output = test.kubectl(&["rollout", "undo", "deployment/web"]);
    let passed = Said::of(&output).denied.is_empty() && output.status == 0;
    seen(passed, output).map(drop)
}

fn undo_that_brings_the_claim_back(cluster: &GuardedCluster) -> Result<(), String> {
    let test = ControllerTest::new(cluster, &json!({ "kind": "Deployment" }))?;
    test.until_revision("1")?;
    let no_volumes = r#"[{"op":"remove","path":"/spec/template/spec/volumes"},
        {"op":"remove","path":"/spec/template/spec/containers/0/volumeMounts"}]"#;
    test.unguarded(&["patch", "deployment/web", "--type=json", "-p", no_volumes]);
    test.until_revision("2")?;
    let undo = ["rollout", "undo", "deployment/web"];
    test.until_refused(&undo, "rolling-update-overlap")?;
    let template = || test.read("Deployment/web")["spec"]["template"].clone();
    let before = template();
    let output = test.kubectl(&undo).failure();
    if !Said::of(&output).denied.contains("rolling-update-overlap") {
        return Err(format!("{output:#?}"));
    }
    if template() != before {
        return Err("It was refused and stored all the same.".to_owned());
    }
    Ok(())
}

fn undo_with_recreate(cluster: &GuardedCluster) -> Result<(), String> {
    let test = ControllerTest::new(cluster, &recreated())?;
    test.until_revision("1")?;
    let image = ["set", "image", "deployment/web", "main=example.com/app:2"];
    test.until_refused(&SCALE, "autoscaler-exceeds-volume")?;
    test.is_silent(&image)?;
    test.until_revision("2")?;
    test.is_silent(&["rollout", "undo", "deployment/web"])?;
    let after = test.read("Deployment/web");
    match after.pointer("/spec/template/spec/containers/0/image").and_then(Value::as_str) {
        Some("example.com/app:1") => Ok(()),
        other => Err(format!("The image is {other:?}.")),
    }
}

/// The guard also reviews every ReplicaSet and pod, and lets them pass.
fn controllers_are_left_alone(cluster: &GuardedCluster) -> Result<(), String> {
    let hazardous = json!({ "kind": "Deployment", "replicas": 3 });
    let test = ControllerTest::new(cluster, &hazardous)?;
    wait_until("three pods of the ReplicaSet", WITHIN, || {
        let versions = stored::versions(&test.namespace);
        let pods = versions.keys().filter(|name| name.starts_with("Pod/")).count();
        seen(pods == 3, versions).map(drop)
    })
}

/// A pod of a user's own ReplicaSet uses the claim. A label says that the ReplicaSet belongs to a
/// Deployment, but anybody can write that label.
fn labels_hide_nobody(cluster: &GuardedCluster) -> Result<(), String> {
    let labels = json!({ "app": "own", "pod-template-hash": "6d4" });
    let labelled = json!({ "metadata": { "labels": labels }, "spec": {
        "selector": { "matchLabels": labels }, "template": { "metadata": { "labels": labels } } } });
    let own = json!({ "kind": "ReplicaSet", "name": "own", "with": labelled });
    let test = ControllerTest::new(cluster, &own)?;
    let other = Object::try_from(json!({ "kind": "Deployment", "strategy": "Recreate" }))?
        .manifest(&test.namespace);
    let name = format!("{}-web.json", test.namespace);
    let file = cluster.plane.write_file(&name, &other.to_string()).display().to_string();
    test.until_refused(&["create", "-f", &file], "workloads-share-volume")
}

/// Checks that a command succeeded and the guard printed nothing.
pub(crate) fn is_silent(output: Output) -> Result<(), String> {
    seen(Said::of(&output).is(&Said::default()), output).map(drop)
}

/// A namespace with a bound claim and one workload, created without the guard.
pub(crate) struct ControllerTest<'a> {
    pub(crate) cluster: &'a GuardedCluster,
    pub(crate) namespace: Namespace<'static>,
}

impl<'a> ControllerTest<'a> {
    pub(crate) fn new(cluster: &'a GuardedCluster, workload: &Value) -> Result<Self, String> {
        let test = Self { cluster, namespace: Namespace::new(cluster.plane, "deny") };
        for object in bound_claim(&test.namespace, "data", DISK) {
            cluster.make(&test.namespace, &object)?;
        }
        test.make(workload)?;
        Ok(test)
    }

    fn make(&self, shorthand: &Value) -> Result<(), String> {
        let object = Object::try_from(shorthand.clone())?;
        self.cluster.make(&self.namespace, &object.manifest(&self.namespace))
    }

    pub(crate) fn read(&self, object: &str) -> Value {
        stored::read(&self.namespace, object).unwrap_or_default()
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Output {
        self.namespace.kubectl(arguments, None)
    }

    pub(crate) fn unguarded(&self, arguments: &[&str]) {
        let user = ["--as", UNGUARDED, "--as-group", "system:masters"];
        self.kubectl(&[arguments, &user].concat()).success();
    }

    /// Waits until the Deployment controller has seen the latest template.
    pub(crate) fn until_revision(&self, revision: &str) -> Result<(), String> {
        let pointer = "/metadata/annotations/deployment.kubernetes.io~1revision";
        wait_until(&format!("revision {revision}"), WITHIN, || {
            let deployment = self.read("Deployment/web");
            let found = deployment.pointer(pointer).and_then(Value::as_str);
            seen(found == Some(revision), found).map(drop)
        })
    }

    pub(crate) fn until_refused(&self, arguments: &[&str], rule: &str) -> Result<(), String> {
        let dry = [arguments, &["--dry-run=server"]].concat();
        wait_until("the guard to refuse", WITHIN, || {
            let output = self.kubectl(&dry);
            seen(Said::of(&output).denied.contains(rule), output).map(drop)
        })
    }

    pub(crate) fn is_silent(&self, arguments: &[&str]) -> Result<(), String> {
        is_silent(self.kubectl(arguments))
    }
}
