//! Workloads that controllers of custom kinds deliver or scale: the printed commands about the
//! custom objects. The API server only stores these; the tests do the controllers' work.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::rollouts::roll_out;
use crate::sharing::two_apart;
use crate::stage::{self, Stage, autoscaler, deployment, merged, workload};

/// The kinds of Argo CD, Flux, KEDA and Argo Rollouts, with their groups and versions.
const KINDS: [(&str, &str, &str); 5] = [
    ("argoproj.io", "v1alpha1", "Application"),
    ("argoproj.io", "v1alpha1", "Rollout"),
    ("kustomize.toolkit.fluxcd.io", "v1", "Kustomization"),
    ("helm.toolkit.fluxcd.io", "v2", "HelmRelease"),
    ("keda.sh", "v1alpha1", "ScaledObject"),
];

/// Serializes the definition of kinds, because several states define the same ones.
static TURN: Mutex<()> = Mutex::new(());

/// Makes an object of one of these kinds, called `web`; returns an owner reference to it.
fn make(stage: &Stage, kind: &str) -> Value {
    let (group, version, _) = KINDS.into_iter().find(|it| it.2 == kind).unwrap();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    stage.world.plane.define(group, version, kind);
    drop(turn);
    let object = json!({"apiVersion": format!("{group}/{version}"), "kind": kind,
        "metadata": {"name": "web"}, "spec": {"replicas": 1}});
    stage.apply(&object);
    let name = format!("{}s.{group}/web", kind.to_lowercase());
    let uid = stage.field(&name, ".metadata.uid");
    json!({"metadata": {"ownerReferences": [{"apiVersion": object["apiVersion"], "kind": kind,
        "name": "web", "uid": uid, "controller": true}]}})
}

/// The controller that delivers the workload is suspended, and resumed afterwards.
pub(crate) fn by_argo_cd_or_flux(stage: &Stage) {
    let flux = |group: &str| {
        json!({"metadata": {"labels": {
            format!("{group}/name"): "web", format!("{group}/namespace"): stage.namespace}}})
    };
    let Stage { namespace, .. } = stage;
    let tracked = json!({"argocd.argoproj.io/tracking-id":
        format!("{namespace}_web:apps/Deployment:{namespace}/web")});
    for (kind, mark) in [
        ("Application", json!({"metadata": {"annotations": tracked}})),
        ("Kustomization", flux("kustomize.toolkit.fluxcd.io")),
        ("HelmRelease", flux("helm.toolkit.fluxcd.io")),
    ] {
        make(stage, kind);
        let web = merged(deployment("web", &json!({})), &mark);
        stage.starts(&web);
        roll_out(stage, 2);
        let case = stage.until("rollout-overlap");
        let before = stage::commands(&case, "before");
        let afterwards = stage::commands(&case, "afterwards");
        assert_eq!((before.len(), afterwards.len()), (1, 1), "{case:#}");
        let object = format!("{}/web", kind.to_lowercase());
        let read = || stage.kubectl(&["get", &object, "-o", "json"]);
        let is_suspended = || {
            let read = read();
            read.contains("skip-reconcile\": \"true\"") || read.contains("\"suspend\": true")
        };
        stage.run(&before[0]);
        assert!(is_suspended(), "{}", read());
        stage.end(&format!("{kind} is suspended"));
        stage.leads_out(&case);
        stage.run(&afterwards[0]);
        assert!(!is_suspended(), "{}", read());
        stage.end(&format!("{kind} is resumed"));
        stage.uncordon();
        stage.delete(&web);
    }
}

/// An autoscaler that KEDA has made follows its ScaledObject.
pub(crate) fn by_keda(stage: &Stage) {
    let owner = make(stage, "ScaledObject");
    let recreate = json!({"strategy": "Recreate"});
    stage.apply(&deployment("web", &merged(two_apart(), &recreate)));
    stage.apply(&merged(autoscaler(2), &owner));
    for (fewest, written) in [(2, ["1", "1"]), (1, ["", "1"])] {
        let spec = json!({"spec": {"minReplicas": fewest, "maxReplicas": 3}}).to_string();
        stage.kubectl(&["patch", "hpa/web", "--type=merge", "-p", &spec]);
        stage.kubectl(&["scale", "deployment/web", "--replicas=2"]);
        let case = stage.until("autoscaler");
        stage.run(&stage::ways_out(&case)[0]);
        let counts = [".spec.minReplicaCount", ".spec.maxReplicaCount"];
        let counts = counts.map(|path| stage.field("scaledobject/web", path));
        assert_eq!(counts, written);
        stage.end("the ScaledObject says so");
        let one = r#"{"spec":{"minReplicas":1,"maxReplicas":1}}"#;
        stage.kubectl(&["patch", "hpa/web", "--type=merge", "-p", one]);
        stage.until_nothing_waits();
        let neither = r#"{"spec":{"minReplicaCount":null,"maxReplicaCount":null}}"#;
        stage.kubectl(&["patch", "scaledobject/web", "--type=merge", "-p", neither]);
    }

    let case = stops_for_another(stage, "web");
    let paused = r".metadata.annotations.autoscaling\.keda\.sh/paused-replicas";
    says(stage, "ScaledObject", paused, "0");
    stage.kubectl(&["scale", "deployment/web", "--replicas=0"]);
    stage.until_nothing_waits();
    stage.run(&stage::in_texts(&case, "paused-replicas-"));
    says(stage, "ScaledObject", paused, "");
    stage.uncordon();
}

/// Stops the app because another workload waits for its volume.
fn stops_for_another(stage: &Stage, app: &str) -> Value {
    stage.kubectl(&["cordon", &stage.node_of(app)]);
    stage.apply(&deployment("backup", &json!({})));
    let case = stage.until("shared-claim");
    stage.run(&stage::ways_out(&case).pop().unwrap());
    case
}

/// Asserts that the object `web` has this value at this path after the command.
fn says(stage: &Stage, kind: &str, path: &str, value: &str) {
    let object = format!("{}/web", kind.to_lowercase());
    assert_eq!(stage.field(&object, path), value);
    stage.end(&format!("the {kind} says so"));
}

/// A Rollout makes ReplicaSets, as a Deployment does.
pub(crate) fn by_argo_rollouts(stage: &Stage) {
    let owner = make(stage, "Rollout");
    let set = |name: &str, further: &Value| {
        let of_its_own = json!({"container": {"image": format!("app:{name}")}});
        merged(
            workload("ReplicaSet", name, &merged(of_its_own, further)),
            &owner,
        )
    };
    stage.starts(&set("web-old", &json!({})));
    stage.kubectl(&["cordon", &stage.node_of("web-old")]);
    stage.apply(&set("web-new", &json!({})));
    let case = stage.until("rollout-overlap");
    stage.run(&stage::ways_out(&case)[0]);
    assert_eq!(stage.field("rollout/web", ".status.abort"), "true");
    stage.end("the Rollout is aborted");
    stage.kubectl(&["scale", "replicaset/web-new", "--replicas=0"]);
    stage.until_nothing_waits();
    stage.uncordon();

    let two = json!({"replicas": 2, "apart_from": {"app": "web-old"}});
    stage.apply(&set("web-old", &two));
    stage.kubectl(&["delete", "pod", "-l", "app=web-old", "--wait=false"]);
    let case = stage.until("too-many-replicas");
    stage.run(&stage::ways_out(&case)[0]);
    says(stage, "Rollout", ".spec.replicas", "1");
    stage.kubectl(&["scale", "replicaset/web-old", "--replicas=1"]);
    stage.until_nothing_waits();

    stops_for_another(stage, "web-old");
    says(stage, "Rollout", ".spec.replicas", "0");
    stage.kubectl(&["scale", "replicaset/web-old", "--replicas=0"]);
    stage.until_nothing_waits();
    stage.uncordon();
}
