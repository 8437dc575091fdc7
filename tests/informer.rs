//! The live view against a real API server.

#![allow(clippy::unwrap_used, reason = "in a test, the panic and its message are the report")]

mod harness;

use std::time::Duration;

use engine::model::server_version::ServerVersion;
use engine::model::workload::WorkloadKind;
use harness::shorthand::list;
use harness::{Needs, until};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use source::connect::Access;
use source::informer::{Fitness, Informer};
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(30);

fn names(view: &Informer, namespace: &str, claim: &str) -> String {
    let mut names: Vec<String> = view.look(|view| {
        let users = view.workloads_using(namespace, claim).into_iter();
        users.map(|workload| format!("{} {}", workload.kind, workload.metadata.name)).collect()
    });
    names.sort_unstable();
    names.join(", ")
}

/// One object of every watched kind, and a pod with the labels of controlled pods.
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

    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let view = plane.block_on(async {
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        Informer::with_config(config.unwrap(), |_| true)
    });
    plane.block_on(view.synced(Instant::now() + SOON)).unwrap();
    assert_eq!(view.fitness(), Fitness::Current);
    until("the version of the API server", SOON, || {
        let server = view.look(|view| view.server());
        harness::seen(server != ServerVersion::default(), server)
    });
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
        assert!(view.knows_nodes());
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
fn objects_that_are_too_large_do_not_hide_those_of_other_namespaces() {
    const LARGE: usize = 8;
    const LIMIT: usize = 192 << 20;
    let plane = harness::or_skip!(harness::require_control_plane(Needs::ApiServer));
    let (large, small) = (plane.namespace("large"), plane.namespace("small"));
    plane.apply(
        &small,
        &list("- {kind: PersistentVolumeClaim}\n- {kind: Deployment, uses: [data]}"),
    );
    // With its managed fields, this is nearly as much as the API server stores.
    let volume = |number| json!({"name": format!("v{number}"), "persistentVolumeClaim": {"claimName": format!("c{number}")}});
    let volumes: Vec<Value> = (0..4700).map(volume).collect();
    for number in 0..LARGE {
        let labels = json!({"app": "large"});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("large-{number}")},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}}}});
        let create = ["create", "--namespace", &large, "-f", "-"];
        plane.kubectl(&create, Some(&deployment.to_string())).success();
    }

    let access = Access { kubeconfig: Some(plane.kubeconfig().to_owned()), ..Access::default() };
    let view = plane.block_on(async { Informer::start(access, |_| true, LIMIT) });
    plane.block_on(view.synced(Instant::now() + SOON)).unwrap();
    assert_eq!(view.usage().left_out, LARGE);
    assert!(view.usage().bytes < LIMIT / 100, "{:?}", view.usage());
    assert_eq!(names(&view, &small, "data"), "Deployment web");
    view.look(|view| {
        assert!(view.cluster().leaves_out(&large));
        assert!(!view.cluster().leaves_out(&small));
    });
    plane.run(&format!("delete deployment --all --namespace {large}"));
    until("the deletions", SOON, || harness::seen(view.usage().left_out == 0, view.usage()));
}
