//! The live view against a real API server.

#![allow(
    clippy::unwrap_used,
    reason = "in a test, the panic and its message are the report"
)]

mod harness;

use std::time::Duration;

use engine::model::object::ObjectKind;
use engine::model::workload::WorkloadKind;
use engine::snapshot::{Lookup, View};
use harness::shorthand::object;
use harness::{ControlPlane, Needs, until};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use source::informer::{Fitness, Informer};
use source::status::Link;
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(30);

fn config(plane: &ControlPlane) -> Config {
    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options);
    plane.block_on(config).unwrap()
}

fn start(plane: &ControlPlane, config: Config) -> Informer {
    let _runtime = plane.runtime().enter();
    Informer::with_config(config, |_| true)
}

fn names(view: &Informer, namespace: &str, claim: &str) -> String {
    let mut names: Vec<String> = view.look(|view| {
        let users = view.workloads_using(namespace, claim).into_iter();
        users
            .map(|workload| format!("{} {}", workload.kind, workload.metadata.name))
            .collect()
    });
    names.sort_unstable();
    names.join(", ")
}

#[test]
fn objects_of_every_kind_arrive() {
    let plane = harness::or_skip!(harness::require_control_plane(Needs::ApiServer));
    let namespace = plane.namespace("live-view");
    let uses = |kind: &str, name: &str, with: Value| json!({"kind": kind, "name": name, "uses": ["data"], "with": with});
    let claimed = json!({"metadata": {"labels":
        {"pod-template-hash": "x", "controller-revision-hash": "x", "job-name": "x"}}});
    let scales = json!({"spec": {"scaleTargetRef": {"name": "deployment"}}});
    for shorthand in [
        json!({"kind": "PersistentVolumeClaim", "with": {"spec": {"storageClassName": null}}}),
        uses("Deployment", "deployment", json!({})),
        uses("ReplicaSet", "replica-set", json!({})),
        uses(
            "StatefulSet",
            "stateful-set",
            json!({"spec": {"serviceName": "s"}}),
        ),
        uses("DaemonSet", "daemon-set", json!({})),
        uses("Job", "job", json!({})),
        uses("CronJob", "cron-job", json!({})),
        uses("Pod", "pod", json!({})),
        uses("Pod", "labelled", claimed),
        json!({"kind": "HorizontalPodAutoscaler", "name": "autoscaler", "with": scales}),
        json!({"kind": "StorageClass", "name": "live-view", "with": {"provisioner": "example.com/live"}}),
        json!({"kind": "CSIDriver", "name": "live-view.example.com", "with": {"spec": {"attachRequired": false}}}),
        json!({"kind": "PersistentVolume", "name": "live-view", "with": {"spec": {
            "accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"},
            "storageClassName": "live-view", "nfs": {"server": "s", "path": "/"}}}}),
        json!({"kind": "Node", "name": "live-view"}),
    ] {
        plane.apply(&namespace, &object(shorthand).to_string());
    }

    let view = start(plane, config(plane));
    plane.block_on(view.synced(Instant::now() + SOON)).unwrap();
    assert_eq!(view.fitness(), Fitness::Current);
    assert_eq!(
        names(&view, &namespace, "data"),
        "CronJob cron-job, DaemonSet daemon-set, Deployment deployment, Job job, \
         Pod labelled, Pod pod, ReplicaSet replica-set, StatefulSet stateful-set"
    );
    view.look(|view| {
        assert!(view.claim(&namespace, "data").found().is_some());
        let autoscalers = view.autoscalers_of(WorkloadKind::Deployment, &namespace, "deployment");
        assert_eq!(autoscalers.len(), 1);
        assert!(view.namespace(&namespace).found().is_some());
        let class = view.storage_class("live-view").found().unwrap();
        assert!(!class.metadata.creation_timestamp.is_empty());
        let driver = view.csi_driver("live-view.example.com").found().unwrap();
        assert!(!driver.is_attached());
        assert_eq!(view.free_volumes("live-view").len(), 1);
        assert_eq!(view.nodes_known(), Lookup::Found(()));
    });

    let delete = [
        "delete",
        "deployment,pod",
        "--all",
        "--force",
        "--wait=false",
    ];
    plane
        .kubectl(&[&delete[..], &["-n", &namespace]].concat(), None)
        .success();
    until("the deletions", SOON, || {
        let left = names(&view, &namespace, "data");
        if left.contains("Deployment") || left.contains("Pod") {
            return Err(left);
        }
        Ok(())
    });
}

#[test]
fn a_user_without_rights_learns_which_to_grant() {
    let plane = harness::or_skip!(harness::require_control_plane(Needs::ApiServer));
    let mut config = config(plane);
    config.auth_info.impersonate = Some("nobody".to_owned());
    let view = start(plane, config);
    let error = plane
        .block_on(view.synced(Instant::now() + SOON))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("Grant it the verbs get, list and watch on"),
        "{error}"
    );
    until("an answer about every resource", SOON, || {
        let statuses = view.statuses();
        match statuses
            .iter()
            .find(|status| !matches!(status.link, Link::Forbidden { .. }))
        {
            Some(status) => Err(status.to_string()),
            None => Ok(()),
        }
    });
    view.look(|view| assert_eq!(view.claim("default", "data"), Lookup::NotSynced));
}

#[test]
fn a_claim_is_found_before_its_event_arrives() {
    let plane = harness::or_skip!(harness::require_control_plane(Needs::ApiServer));
    let namespace = plane.namespace("late-claim");
    plane.apply(
        &namespace,
        "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
    );
    // Claims cannot be followed here, so every one is looked up.
    let rights = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "late-claim"},
            "rules": [
                {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["get"]},
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "late-claim"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "late-claim",
            },
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "late-claim"},
            ],
        },
    ]});
    plane.apply(&namespace, &rights.to_string());
    let mut config = config(plane);
    config.auth_info.impersonate = Some("late-claim".to_owned());
    let view = {
        let _runtime = plane.runtime().enter();
        Informer::with_config(config, |kind| kind == ObjectKind::Claim)
    };
    let claim = |name: &'static str| {
        let namespace = namespace.as_str();
        let found = |view: View<'_>| match view.claim(namespace, name) {
            Lookup::Found(claim) => Lookup::Found(claim.metadata.name.to_string()),
            Lookup::Absent => Lookup::Absent,
            Lookup::NotSynced => Lookup::NotSynced,
        };
        plane.block_on(view.answer(Instant::now() + SOON, found))
    };
    let refused = plane.block_on(view.synced(Instant::now() + SOON));
    assert!(refused.is_err(), "nothing is heard of claims");
    // An API server hears of new rights by a watch of its own.
    until("the right to get claims", SOON, || match claim("data") {
        Lookup::Found(name) if name == "data" => Ok(()),
        other => Err(format!("{other:?}")),
    });
    assert_eq!(claim("other"), Lookup::Absent);
}
