//! What the index costs: memory per object, and look-ups in a large cluster
//! beside the same look-ups in a small one. Prints ratios; the goals stand
//! beside them.

#![allow(
    clippy::unwrap_used,
    reason = "a bench that cannot run has nothing else to say"
)]

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use multi_attach_guard::model::cluster::{ClusterView, NodeHint};
use multi_attach_guard::model::labels::Labels;
use multi_attach_guard::model::object::{Object, ObjectKind};
use multi_attach_guard::model::workload::WorkloadKind;
use multi_attach_guard::view::index::Index;
use multi_attach_guard::view::shared::SharedIndex;
use serde::de::DeserializeSeed;

const NODES: usize = 5_000;
const CLAIMS: usize = 100_000;
const WORKLOADS: usize = 50_000;
const NAMESPACES: usize = 500;

fn read(kind: ObjectKind, text: &str) -> Object {
    kind.deserialize(&mut serde_json::Deserializer::from_str(text))
        .unwrap()
}

fn claim(number: usize) -> Object {
    let namespace = number % NAMESPACES;
    read(
        ObjectKind::Claim,
        &format!(
            r#"{{"metadata":{{"name":"checkout-service-data-{number}","namespace":"team-{namespace}",
            "labels":{{"app.kubernetes.io/name":"checkout","app.kubernetes.io/instance":"checkout-{number}",
            "app.kubernetes.io/managed-by":"Helm"}},
            "annotations":{{"pv.kubernetes.io/bind-completed":"yes","volume.kubernetes.io/storage-provisioner":"ebs.csi.aws.com"}}}},
            "spec":{{"accessModes":["ReadWriteOnce"],"resources":{{"requests":{{"storage":"20Gi"}}}},
            "storageClassName":"gp3-encrypted","volumeMode":"Filesystem","volumeName":"pvc-{}"}},
            "status":{{"phase":"Bound","accessModes":["ReadWriteOnce"]}}}}"#,
            uuid(number)
        ),
    )
}

fn volume(number: usize) -> Object {
    let namespace = number % NAMESPACES;
    read(
        ObjectKind::Volume,
        &format!(
            r#"{{"metadata":{{"name":"pvc-{}"}},"spec":{{"accessModes":["ReadWriteOnce"],"capacity":{{"storage":"20Gi"}},
            "claimRef":{{"kind":"PersistentVolumeClaim","namespace":"team-{namespace}","name":"checkout-service-data-{number}"}},
            "csi":{{"driver":"ebs.csi.aws.com","volumeHandle":"vol-{number}"}},
            "nodeAffinity":{{"required":{{"nodeSelectorTerms":[{{"matchExpressions":[
              {{"key":"topology.kubernetes.io/zone","operator":"In","values":["eu-central-1a"]}}]}}]}}}},
            "persistentVolumeReclaimPolicy":"Delete","storageClassName":"gp3-encrypted","volumeMode":"Filesystem"}}}}"#,
            uuid(number)
        ),
    )
}

fn workload(number: usize) -> Object {
    let namespace = number % NAMESPACES;
    let labels = format!(
        r#"{{"app.kubernetes.io/name":"checkout","app.kubernetes.io/instance":"checkout-{number}",
        "app.kubernetes.io/version":"1.27.{}","app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/part-of":"shop"}}"#,
        number % 7
    );
    read(
        ObjectKind::Workload(WorkloadKind::Deployment),
        &format!(
            r#"{{"metadata":{{"name":"checkout-service-{number}","namespace":"team-{namespace}","labels":{labels}}},
            "spec":{{"replicas":1,"strategy":{{"type":"RollingUpdate","rollingUpdate":{{"maxSurge":"25%","maxUnavailable":"25%"}}}},
            "selector":{{"matchLabels":{{"app.kubernetes.io/name":"checkout","app.kubernetes.io/instance":"checkout-{number}"}}}},
            "template":{{"metadata":{{"labels":{labels}}},"spec":{{"volumes":[
              {{"name":"data","persistentVolumeClaim":{{"claimName":"checkout-service-data-{number}"}}}},
              {{"name":"config","configMap":{{"name":"checkout"}}}}]}}}}}}}}"#
        ),
    )
}

fn node(number: usize) -> Object {
    read(
        ObjectKind::Node,
        &format!(
            r#"{{"metadata":{{"name":"ip-10-0-{number}.eu-central-1.compute.internal","labels":{{
            "kubernetes.io/hostname":"ip-10-0-{number}","kubernetes.io/os":"linux","kubernetes.io/arch":"amd64",
            "topology.kubernetes.io/zone":"eu-central-1{}","node.kubernetes.io/instance-type":"m6i.2xlarge"}}}}}}"#,
            ["a", "b", "c"][number % 3]
        ),
    )
}

fn uuid(number: usize) -> String {
    format!("0f3c9a7e-51d2-4c8b-9e60-{number:012}")
}

/// Bytes of memory in use by this process (`proc_pid_statm(5)`, 4 KiB pages).
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn memory_of(what: &str, count: usize, index: &mut Index, make: fn(usize) -> Object) {
    let before = resident();
    for number in 0..count {
        index.apply(make(number));
    }
    let each = (resident() - before) as f64 / count as f64;
    println!(
        "memory per {what}, beside 1 KiB: {:.2} (goal: 1.00 at most)",
        each / 1024.0
    );
}

/// The look-ups of one decision about a Deployment with one claim.
fn decision(view: &dyn ClusterView, number: usize) {
    let namespace = format!("team-{}", number % NAMESPACES);
    let name = format!("checkout-service-data-{number}");
    let labels: Labels = [("app.kubernetes.io/instance", format!("checkout-{number}"))]
        .into_iter()
        .collect();
    let zone = ["eu-central-1a".into()];
    let hint = NodeHint {
        key: "topology.kubernetes.io/zone",
        values: &zone,
    };
    let claim = view.claim(&namespace, &name).found().unwrap();
    black_box(view.volume(&claim.volume));
    black_box(view.storage_class("gp3-encrypted"));
    black_box(view.csi_driver("ebs.csi.aws.com"));
    black_box(view.workloads_using(&namespace, &name));
    black_box(view.autoscalers_of(WorkloadKind::Deployment, &namespace, &name));
    let mut nodes = 0;
    view.visit_nodes(Some(&hint), &mut |_| {
        nodes += 1;
        nodes < 2
    });
    view.visit_workloads(Some(&namespace), &labels, &mut |workload| {
        black_box(workload);
        true
    });
}

/// The fastest of several runs, which is the one that was disturbed least.
fn time_of(view: &dyn ClusterView, objects: usize) -> Duration {
    const ROUNDS: usize = 20_000;
    (0..15)
        .map(|_| {
            let start = Instant::now();
            for round in 0..ROUNDS {
                decision(view, round * 7919 % objects);
            }
            start.elapsed()
        })
        .min()
        .unwrap()
}

fn main() {
    let mut large = Index::complete();
    memory_of("claim", CLAIMS, &mut large, claim);
    memory_of("persistent volume", CLAIMS, &mut large, volume);
    memory_of("workload", WORKLOADS, &mut large, workload);
    memory_of("node", NODES, &mut large, node);

    let mut small = Index::complete();
    for number in 0..10 {
        small.apply(claim(number));
        small.apply(volume(number));
        small.apply(workload(number));
        small.apply(node(number));
    }
    let (small, large) = (SharedIndex::new(small), SharedIndex::new(large));
    // Ten objects in both, so that the processor's cache holds them either way.
    let (few, same) = (time_of(&small, 10), time_of(&large, 10));
    let spread = time_of(&large, WORKLOADS);
    let ratio = |time: Duration| time.as_secs_f64() / few.as_secs_f64();
    println!(
        "look-ups of a decision in {NODES} nodes, {CLAIMS} claims, {WORKLOADS} workloads, beside a nearly empty cluster:"
    );
    println!(
        "  about the same few objects: {:.2} (goal: 1.20 at most)",
        ratio(same)
    );
    println!("  about other objects each time: {:.2}", ratio(spread));
}
