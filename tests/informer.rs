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
use harness::shorthand::{list, object};
use harness::{ControlPlane, Needs, until};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use source::informer::{Fitness, Informer};
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(30);

fn config(plane: &ControlPlane) -> Config {
    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options);
    plane.block_on(config).unwrap()
}

fn start(plane: &ControlPlane, config: Config, follow: fn(ObjectKind) -> bool) -> Informer {
    let _runtime = plane.runtime().enter();
    Informer::with_config(config, follow)
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

/// One of every kind that is followed, and a pod that claims to be a controller's.
const OBJECTS: &str = "
- {kind: PersistentVolumeClaim, with: {spec: {storageClassName: null}}}
- {kind: Deployment, name: deployment, uses: [data]}
- {kind: ReplicaSet, name: replica-set, uses: [data]}
- {kind: StatefulSet, name: stateful-set, uses: [data], with: {spec: {serviceName: s}}}
- {kind: DaemonSet, name: daemon-set, uses: [data]}
- {kind: Job, name: job, uses: [data]}
- {kind: CronJob, name: cron-job, uses: [data]}
- {kind: Pod, name: pod, uses: [data]}
- {kind: Pod, name: labelled, uses: [data], with: {metadata: {labels: {pod-template-hash: x, controller-revision-hash: x, job-name: x}}}}
- {kind: HorizontalPodAutoscaler, name: autoscaler, with: {spec: {scaleTargetRef: {name: deployment}}}}
- {kind: StorageClass, name: live-view, with: {provisioner: example.com/live}}
- {kind: CSIDriver, name: live-view.example.com, with: {spec: {attachRequired: false}}}
- {kind: PersistentVolume, name: live-view, with: {spec: {accessModes: [ReadWriteMany], capacity: {storage: 1Gi}, storageClassName: live-view, nfs: {server: s, path: /}}}}
- {kind: Node, name: live-view}
";

#[test]
fn objects_of_every_kind_arrive() {
    let plane = harness::or_skip!(harness::require_control_plane(Needs::ApiServer));
    let namespace = plane.namespace("live-view");
    plane.apply(&namespace, &list(OBJECTS));

    let view = start(plane, config(plane), |_| true);
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

    let delete = "delete deployment,pod --all --force --wait=false";
    plane.run(&format!("{delete} -n {namespace}"));
    until("the deletions", SOON, || {
        let left = names(&view, &namespace, "data");
        let is_left = left.contains("Deployment") || left.contains("Pod");
        harness::seen(!is_left, left)
    });
}

#[test]
fn a_claim_is_found_before_its_event_arrives() {
    let plane = harness::or_skip!(harness::require_control_plane(Needs::ApiServer));
    let namespace = plane.namespace("late-claim");
    let claim = object(json!({"kind": "PersistentVolumeClaim"}));
    plane.apply(&namespace, &claim.to_string());
    // Claims cannot be followed here, so every one is looked up.
    let role = "create clusterrole late-claim --verb=get --resource=persistentvolumeclaims";
    let binding = "create clusterrolebinding late-claim --clusterrole=late-claim --user=late-claim";
    for rights in [role, binding] {
        plane.run(rights);
    }
    let mut config = config(plane);
    config.auth_info.impersonate = Some("late-claim".to_owned());
    let view = start(plane, config, |kind| kind == ObjectKind::Claim);
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
