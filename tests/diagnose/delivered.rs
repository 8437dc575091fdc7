//! Workloads that controllers of custom kinds deliver or scale: the printed commands about the
//! custom objects. The API server only stores these; the tests do the controllers' work.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::incident::{self, Incident, autoscaler, deployment, merged, workload};
use crate::rollouts::roll_out;
use crate::sharing::two_apart;

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
fn make(incident: &Incident, kind: &str) -> Value {
    let (group, version, _) = KINDS.into_iter().find(|(_, _, name)| *name == kind).unwrap();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    incident.cluster.plane.define(group, version, kind);
    drop(turn);
    let object = json!({"apiVersion": format!("{group}/{version}"), "kind": kind,
        "metadata": {"name": "web"}, "spec": {"replicas": 1}});
    incident.apply(&object);
    let name = format!("{}s.{group}/web", kind.to_lowercase());
    let uid = incident.field(&name, ".metadata.uid");
    json!({"metadata": {"ownerReferences": [{"apiVersion": object["apiVersion"], "kind": kind,
        "name": "web", "uid": uid, "controller": true}]}})
}

/// The controller that delivers the workload is suspended, and resumed afterwards.
pub(crate) fn by_argo_cd_or_flux(incident: &Incident) {
    let flux = |group: &str| {
        json!({"metadata": {"labels": {
            format!("{group}/name"): "web", format!("{group}/namespace"): &*incident.namespace}}})
    };
    let Incident { namespace, .. } = incident;
    let tracked = json!({"argocd.argoproj.io/tracking-id":
        format!("{namespace}_web:apps/Deployment:{namespace}/web")});
    for (kind, mark) in [
        ("Application", json!({"metadata": {"annotations": tracked}})),
        ("Kustomization", flux("kustomize.toolkit.fluxcd.io")),
        ("HelmRelease", flux("helm.toolkit.fluxcd.io")),
    ] {
        make(incident, kind);
        let web = merged(deployment("web", &json!({})), &mark);
        incident.starts(&web);
        roll_out(incident, 2);
        let case = incident.until("rollout-overlap");
        let before = incident::commands(&case, "before");
        let afterwards = incident::commands(&case, "afterwards");
        assert_eq!((before.len(), afterwards.len()), (1, 1), "{case:#}");
        let object = format!("{}/web", kind.to_lowercase());
        let read = || incident.kubectl(&["get", &object, "-o", "json"]);
        let is_suspended = || {
            let text = read();
            text.contains("skip-reconcile\": \"true\"") || text.contains("\"suspend\": true")
        };
        incident.run(&before[0]);
        assert!(is_suspended(), "{}", read());
        incident.end(&format!("{kind} is suspended"));
        incident.leads_out(&case);
        incident.run(&afterwards[0]);
        assert!(!is_suspended(), "{}", read());
        incident.end(&format!("{kind} is resumed"));
        incident.uncordon();
        incident.delete(&web);
    }
}

/// An autoscaler that KEDA has made follows its ScaledObject.
pub(crate) fn by_keda(incident: &Incident) {
    let owner = make(incident, "ScaledObject");
    let recreate = json!({"strategy": "Recreate"});
    incident.apply(&deployment("web", &merged(two_apart(), &recreate)));
    incident.apply(&merged(autoscaler(2), &owner));
    for (fewest, written) in [(2, ["1", "1"]), (1, ["", "1"])] {
        let spec = json!({"spec": {"minReplicas": fewest, "maxReplicas": 3}}).to_string();
        incident.kubectl(&["patch", "hpa/web", "--type=merge", "-p", &spec]);
        incident.kubectl(&["scale", "deployment/web", "--replicas=2"]);
        let case = incident.until("autoscaler");
        incident.run(&incident::ways_out(&case)[0]);
        let counts = [".spec.minReplicaCount", ".spec.maxReplicaCount"]
            .map(|path| incident.field("scaledobject/web", path));
        assert_eq!(counts, written);
        incident.end("the ScaledObject says so");
        let one = r#"{"spec":{"minReplicas":1,"maxReplicas":1}}"#;
        incident.kubectl(&["patch", "hpa/web", "--type=merge", "-p", one]);
        incident.until_nothing_waits();
        let neither = r#"{"spec":{"minReplicaCount":null,"maxReplicaCount":null}}"#;
        incident.kubectl(&["patch", "scaledobject/web", "--type=merge", "-p", neither]);
    }

    let case = stops_for_another(incident, "web");
    let paused = r".metadata.annotations.autoscaling\.keda\.sh/paused-replicas";
    says(incident, "ScaledObject", paused, "0");
    incident.kubectl(&["scale", "deployment/web", "--replicas=0"]);
    incident.until_nothing_waits();
    incident.run(&incident::in_texts(&case, "paused-replicas-"));
    says(incident, "ScaledObject", paused, "");
    incident.uncordon();
}

/// Stops the app because another workload waits for its volume.
fn stops_for_another(incident: &Incident, app: &str) -> Value {
    incident.kubectl(&["cordon", &incident.node_of(app)]);
    incident.apply(&deployment("backup", &json!({})));
    let case = incident.until("shared-claim");
    incident.run(&incident::ways_out(&case).pop().unwrap());
    case
}

/// Asserts that the object `web` has this value at this path after the command.
fn says(incident: &Incident, kind: &str, path: &str, value: &str) {
    let object = format!("{}/web", kind.to_lowercase());
    assert_eq!(incident.field(&object, path), value);
    incident.end(&format!("the {kind} says so"));
}

/// A Rollout makes ReplicaSets, as a Deployment does.
pub(crate) fn by_argo_rollouts(incident: &Incident) {
    let owner = make(incident, "Rollout");
    let set = |name: &str, further: &Value| {
        let of_its_own = json!({"container": {"image": format!("app:{name}")}});
        merged(workload("ReplicaSet", name, &merged(of_its_own, further)), &owner)
    };
    incident.starts(&set("web-old", &json!({})));
    incident.kubectl(&["cordon", &incident.node_of("web-old")]);
    incident.apply(&set("web-new", &json!({})));
    let overlap = incident.until("rollout-overlap");
    incident.run(&incident::ways_out(&overlap)[0]);
    assert_eq!(incident.field("rollout/web", ".status.abort"), "true");
    incident.end("the Rollout is aborted");
    incident.kubectl(&["scale", "replicaset/web-new", "--replicas=0"]);
    incident.until_nothing_waits();
    incident.uncordon();

    let two = json!({"replicas": 2, "apart_from": {"app": "web-old"}});
    incident.apply(&set("web-old", &two));
    incident.kubectl(&["delete", "pod", "-l", "app=web-old", "--wait=false"]);
    let crowded = incident.until("too-many-replicas");
    incident.run(&incident::ways_out(&crowded)[0]);
    says(incident, "Rollout", ".spec.replicas", "1");
    incident.kubectl(&["scale", "replicaset/web-old", "--replicas=1"]);
    incident.until_nothing_waits();

    stops_for_another(incident, "web-old");
    says(incident, "Rollout", ".spec.replicas", "0");
    incident.kubectl(&["scale", "replicaset/web-old", "--replicas=0"]);
    incident.until_nothing_waits();
    incident.uncordon();
}
