//! The time that webhooks add to a write: a real API server with and without webhooks, in turn,
//! under the same load. Prints percentiles as measured by the client and by the API server's
//! histogram `apiserver_admission_webhook_admission_duration_seconds`.
//!
//! `CLAIMS`, `RATE` (writes per second), `SECONDS` (per round) and `ROUNDS` change the load;
//! `ROUNDS=0` measures only the guard's start. `WORKLOADS` is the number of Deployments with a
//! claim and a ReplicaSet each. `WEBHOOKS` names a file with webhook configurations to measure
//! instead of the guard's, so that any other webhook can be measured with the same load.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench that cannot run has nothing else to say"
)]

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use harness::webhooks::{Registration, WebhookOptions};
use harness::{ControlPlane, Guard, GuardOptions, Needs};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

const HISTOGRAM: &str = "apiserver_admission_webhook_admission_duration_seconds_bucket";
const DRIVER: &str = "disk.csi.example.com";

/// The number of Deployments that are changed in turn.
const DEPLOYMENTS: usize = 100;

/// One in this many writes is a Deployment that the guard refuses, after it has confirmed the facts
/// with the API server. It is a dry run, so that it stores nothing without the guard.
const REFUSED: usize = 20;

fn setting<T: FromStr>(name: &str, built_in: T) -> T {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
        Err(_) => built_in,
    }
}

fn main() {
    let Some(plane) = harness::start_control_plane(Needs::ApiServer) else {
        return;
    };
    let claims = setting("CLAIMS", 100_000);
    let rate: u32 = setting("RATE", 200);
    let writes = rate as usize * setting("SECONDS", 10_usize);
    let namespace = plane.namespace("latency");
    let began = Instant::now();
    let workloads = setting("WORKLOADS", 0);
    plane.block_on(populate(&plane, &namespace, claims, workloads));
    println!(
        "{claims} claims and {workloads} Deployments with a ReplicaSet each after {} s",
        began.elapsed().as_secs()
    );
    let guard = std::env::var_os("WEBHOOKS").is_none().then(|| {
        let started = Instant::now();
        let guard = plane.guard("latency", &GuardOptions::default());
        println!(
            "the guard is ready after {:.1} s, with {:.0} MiB in use",
            started.elapsed().as_secs_f64(),
            resident_mib(&guard)
        );
        guard.until_heard(&plane);
        guard
    });
    if setting("ROUNDS", 3) == 0 {
        return;
    }

    let mut rounds: [Round; 2] = Default::default();
    for _ in 0..setting("ROUNDS", 3) {
        for (with, round) in rounds.iter_mut().enumerate() {
            let url = guard.as_ref().map(|guard| guard.url.as_str());
            let _registered = (with == 1).then(|| Webhooks::register(&plane, url, &namespace));
            let before = histogram(&plane);
            let load = load(&plane, &namespace, writes, rate);
            for (number, time) in plane.block_on(load) {
                round.client[0].push(time);
                round.client[1 + usize::from(is_refused(number))].push(time);
            }
            for (bound, count) in histogram(&plane) {
                *round.server.entry(bound).or_default() +=
                    count - before.get(&bound).copied().unwrap_or_default();
            }
        }
    }
    let [without, with] = rounds.map(Round::sorted);
    println!("milliseconds of a write: p50, p99, most");
    let kinds = ["all", "passing", "refused"];
    for (name, round) in [("without webhooks", &without), ("with webhooks", &with)] {
        for (kind, times) in kinds.iter().zip(&round.client) {
            let [p50, p99, most] = [0.5, 0.99, 1.0].map(|part| at(times, part));
            println!("  {name:18} {kind:8} {p50:8.2} {p99:8.2} {most:8.2}");
        }
    }
    for (kind, (guarded, plain)) in kinds.iter().zip(with.client.iter().zip(&without.client)) {
        let [p50, p99] = [0.5, 0.99].map(|part| at(guarded, part) - at(plain, part));
        println!(
            "  added: {kind:8} p50 {p50:.2} (goal: 1 at most), p99 {p99:.2} (goal: 5 at most)"
        );
    }
    let [p50, p99] = [0.5, 0.99].map(|part| with.server_at(part));
    println!("  of that one webhook, by the API server's histogram: p50 {p50:.2}, p99 {p99:.2}");
}

/// The resident memory of the process (`VmRSS` of `proc_pid_status(5)`).
fn resident_mib(guard: &Guard) -> f64 {
    let listen = guard.url.replace("https://", "--listen=");
    let is_it = |folder: &Path| {
        let words = fs::read_to_string(folder.join("cmdline")).unwrap_or_default();
        let program = words.split('\0').next().unwrap_or_default();
        program.ends_with("multi-attach-guard") && words.split('\0').any(|word| word == listen)
    };
    let folder =
        fs::read_dir("/proc").unwrap().flatten().find(|folder| is_it(&folder.path())).unwrap();
    let status = fs::read_to_string(folder.path().join("status")).unwrap();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    kib.unwrap().parse::<f64>().unwrap() / 1024.0
}

/// Registered webhooks: those of the guard or of a file.
enum Webhooks<'a> {
    Guard(#[allow(dead_code, reason = "dropping it unregisters them")] Registration<'a>),
    File(std::path::PathBuf, &'a ControlPlane),
}

impl<'a> Webhooks<'a> {
    fn register(plane: &'a ControlPlane, guard: Option<&str>, namespace: &str) -> Self {
        let Some(url) = guard else {
            let file = std::path::PathBuf::from(std::env::var_os("WEBHOOKS").unwrap());
            kubectl(plane, &["apply", "-f", &file.display().to_string()]);
            return Self::File(file, plane);
        };
        let options = WebhookOptions::new(url, &[namespace]);
        Self::Guard(plane.register_webhooks("latency", &options))
    }
}

impl Drop for Webhooks<'_> {
    fn drop(&mut self) {
        if let Self::File(file, plane) = self {
            kubectl(plane, &["delete", "-f", &file.display().to_string()]);
        }
    }
}

fn kubectl(plane: &ControlPlane, arguments: &[&str]) {
    let status = Command::new(plane.program("kubectl"))
        .arg(format!("--kubeconfig={}", plane.kubeconfig().display()))
        .args(arguments)
        .status()
        .unwrap();
    assert!(status.success(), "kubectl {arguments:?}: {status}");
}

/// The measurements of all rounds of one kind.
#[derive(Default)]
struct Round {
    /// Milliseconds of each write: of all writes, of those that pass, and of those that the guard
    /// refuses.
    client: [Vec<f64>; 3],
    /// Webhook calls by the upper bound of their bucket, in microseconds.
    server: BTreeMap<u64, u64>,
}

impl Round {
    fn sorted(mut self) -> Self {
        for times in &mut self.client {
            times.sort_by(f64::total_cmp);
        }
        self
    }

    /// A percentile of the server's histogram, interpolated within its bucket as
    /// `histogram_quantile` does.
    fn server_at(&self, part: f64) -> f64 {
        let all = self.server.values().max().copied().unwrap_or_default() as f64;
        let (mut lower, mut below) = (0.0, 0.0);
        for (bound, count) in &self.server {
            let (bound, count) = (*bound as f64 / 1000.0, *count as f64);
            if count >= all * part && count > below {
                return lower + (bound - lower) * (all * part - below) / (count - below);
            }
            (lower, below) = (bound, count);
        }
        lower
    }
}

fn at(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}

/// The API server's histogram over all webhooks: the number of calls that took at most this many
/// microseconds.
fn histogram(plane: &ControlPlane) -> BTreeMap<u64, u64> {
    let text = plane.exposition();
    let mut buckets = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with(HISTOGRAM)) {
        let bound = line.split("le=\"").nth(1).and_then(|rest| rest.split('"').next());
        let seconds = bound.and_then(|bound| bound.parse::<f64>().ok()).unwrap();
        let count: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        if seconds.is_finite() {
            *buckets.entry((seconds * 1e6) as u64).or_default() += count as u64;
        }
    }
    buckets
}

fn api(
    plane: &ControlPlane,
    namespace: Option<&str>,
    group: &str,
    kind: &str,
) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(plane.client(), namespace, &resource),
        None => Api::all_with(plane.client(), &resource),
    }
}

/// Creates the object and returns its uid.
async fn create(api: &Api<DynamicObject>, object: Value) -> String {
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap().metadata.uid.unwrap()
}

/// Two nodes, a class and claims. The claims of the Deployments are bound.
async fn populate(plane: &ControlPlane, namespace: &str, claims: usize, workloads: usize) {
    let nodes = api(plane, None, "", "Node");
    for name in ["node-a", "node-b"] {
        create(&nodes, json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } }))
            .await;
    }
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": { "name": "disk" }, "provisioner": DRIVER,
    });
    create(&api(plane, None, "storage.k8s.io", "StorageClass"), class).await;
    let driver = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
        "metadata": { "name": DRIVER }, "spec": { "attachRequired": true },
    });
    create(&api(plane, None, "storage.k8s.io", "CSIDriver"), driver).await;
    let volumes = api(plane, None, "", "PersistentVolume");
    let all = api(plane, Some(namespace), "", "PersistentVolumeClaim");
    let deployments = api(plane, Some(namespace), "apps", "Deployment");
    let replica_sets = api(plane, Some(namespace), "apps", "ReplicaSet");
    stream::iter(0..claims.max(DEPLOYMENTS).max(workloads))
        .for_each_concurrent(32, |number| {
            let (volumes, all, deployments) = (&volumes, &all, &deployments);
            let replica_sets = &replica_sets;
            async move {
                create(all, claim(namespace, number)).await;
                if number < DEPLOYMENTS {
                    create(volumes, volume(namespace, number)).await;
                }
                if number >= DEPLOYMENTS.max(workloads) {
                    return;
                }
                let owner = create(deployments, deployment(number, "Recreate")).await;
                if number < workloads {
                    create(replica_sets, replica_set(number, &owner)).await;
                }
            }
        })
        .await;
}

fn claim(namespace: &str, number: usize) -> Value {
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "disk",
        "resources": { "requests": { "storage": "1Gi" } },
    });
    if number < DEPLOYMENTS {
        spec["volumeName"] = json!(format!("{namespace}-{number}"));
    }
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": format!("data-{number}") }, "spec": spec,
    })
}

fn volume(namespace: &str, number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": { "name": format!("{namespace}-{number}") },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "storageClassName": "disk", "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": { "namespace": namespace, "name": format!("data-{number}") },
            "csi": { "driver": DRIVER, "volumeHandle": format!("disk-{number}") },
        },
    })
}

fn deployment(number: usize, strategy: &str) -> Value {
    let labels = json!({ "app": format!("app-{number}") });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": format!("app-{number}-{}", strategy.to_lowercase()) },
        "spec": {
            "replicas": 1, "strategy": { "type": strategy }, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "containers": [{
                        "name": "app", "image": "app",
                        "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
                    }],
                    "volumes": [{
                        "name": "data",
                        "persistentVolumeClaim": { "claimName": format!("data-{number}") },
                    }],
                },
            },
        },
    })
}

/// A ReplicaSet as the Deployment controller would create it.
fn replica_set(number: usize, uid: &str) -> Value {
    let owner = deployment(number, "Recreate");
    let labels = json!({ "app": format!("app-{number}"), "pod-template-hash": "6d4cf56db6" });
    let mut template = owner["spec"]["template"].clone();
    template["metadata"]["labels"] = labels.clone();
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("app-{number}-recreate-6d4cf56db6"), "labels": labels,
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "controller": true,
                "name": owner["metadata"]["name"], "uid": uid,
            }],
        },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": labels }, "template": template,
        },
    })
}

/// Sends writes at a constant rate, without waiting for earlier answers. Returns the milliseconds
/// of each.
async fn load(
    plane: &ControlPlane,
    namespace: &str,
    writes: usize,
    rate: u32,
) -> Vec<(usize, f64)> {
    let deployments = api(plane, Some(namespace), "apps", "Deployment");
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut running = tokio::task::JoinSet::new();
    for number in 0..writes {
        ticks.tick().await;
        let deployments = deployments.clone();
        running.spawn(async move {
            let began = Instant::now();
            write(&deployments, number).await;
            (number, began.elapsed().as_secs_f64() * 1e3)
        });
    }
    running.join_all().await
}

const fn is_refused(number: usize) -> bool {
    number.is_multiple_of(REFUSED)
}

async fn write(deployments: &Api<DynamicObject>, number: usize) {
    if is_refused(number) {
        let refused =
            serde_json::from_value(deployment(number % DEPLOYMENTS, "RollingUpdate")).unwrap();
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        // With webhooks the request is denied, and that is measured.
        let _ = deployments.create(&dry_run, &refused).await;
        return;
    }
    let name = format!("app-{}-recreate", number % DEPLOYMENTS);
    let change = json!({ "spec": { "template": { "metadata": { "annotations": { "change": number.to_string() } } } } });
    let (params, patch) = (PatchParams::default(), Patch::Merge(change));
    deployments.patch(&name, &params, &patch).await.unwrap();
}
