//! Simulated nodes: kubelets without containers, and the attacher of a CSI driver without disks.
//! The scheduler, the Deployment controller and the attach-detach controller are real and see
//! nothing unusual.
//!
//! A simulated provisioner makes the volume of a claim once the scheduler has chosen a node for its
//! pod. The volume can be used only in that node's zone.
//!
//! A simulated kubelet keeps a Lease and `node.status.volumesInUse`, runs a pod once its volumes
//! are attached to its node, lets a terminating pod live for its whole grace period, reports a
//! terminal phase, and only then releases the volumes and the pod. Facts: kubernetes/kubernetes
//! `pkg/kubelet/volumemanager`, `pkg/controller/volume/attachdetach`.

mod life;
mod steps;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::stream::{BoxStream, SelectAll, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, VolumeAttachment};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::asking;
use super::control_plane::ControlPlane;
use life::{Action, Endings, Snapshot};
use steps::take;

/// The interval between heartbeats of a living kubelet. The controller manager gives up on a node
/// after 12 s (see its flags).
const HEARTBEAT: Duration = Duration::from_secs(4);

/// The CSI drivers that every simulated node has: the first must attach its volumes, the second
/// need not. [`ControlPlane::fake_nodes`] makes their CSIDriver objects.
pub(crate) const ATTACHING_DRIVER: &str = "disk.csi.example.com";
/// See [`ATTACHING_DRIVER`].
pub(crate) const SHARED_DRIVER: &str = "share.csi.example.com";
/// A driver that attaches volumes, and provisions volumes that never leave their zone. The catalog
/// knows it: before a volume exists, no object of a cluster says which nodes it can reach.
pub(crate) const ZONAL_DRIVER: &str = "ebs.csi.aws.com";

/// A driver that attaches volumes with kubernetes-csi's own attacher and provisioner: see
/// [`super::hollow_nodes`].
pub(crate) const SIDECAR_DRIVER: &str = "sidecar.csi.example.com";

/// The user as which [`FakeNodes::remove`] deletes nodes with everything they still hold.
pub(crate) const AUTOSCALER: &str = "system:serviceaccount:kube-system:cluster-autoscaler";

/// The annotation of a pod that ends by itself: the number of seconds for which it runs.
pub(crate) const ENDS_AFTER: &str = "fake-kubelet/ends-after-seconds";

/// The annotation of a pod whose containers do not end as long as it is present.
pub(crate) const HANGS: &str = "fake-kubelet/hangs";

/// The label of a node, volume or class: the namespace of the scenario that uses it.
pub(crate) const SCENARIO: &str = "scenario";

/// The namespace of nodes' Leases.
const NODE_LEASES: &str = "kube-node-lease";

pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// A node to simulate.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeSpec {
    /// Its name.
    pub(crate) name: String,
    /// Its `kubernetes.io/hostname` label; by default its name.
    pub(crate) hostname: Option<String>,
    /// Its `topology.kubernetes.io/zone` label.
    pub(crate) zone: String,
    /// Its [`SCENARIO`] label.
    pub(crate) scenario: String,
    /// Taints, as in `spec.taints`.
    pub(crate) taints: Vec<Value>,
    /// Allocatable CPUs.
    pub(crate) cpus: u32,
    /// Further resources, by name, for example `example.com/gpu`.
    pub(crate) resources: BTreeMap<String, u32>,
    /// Whether the attach-detach controller leaves attaching to the node's kubelet, which attaches
    /// nothing.
    pub(crate) is_unmanaged: bool,
}

/// The simulation of one control plane's nodes.
pub(crate) struct FakeNodes<'a> {
    plane: &'a ControlPlane,
    autoscaler: kube::Client,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    orders: Mutex<Orders>,
    changed: Notify,
}

/// The orders that tests give to the simulation.
#[derive(Clone, Default)]
struct Orders {
    /// The nodes whose kubelets act.
    alive: BTreeSet<String>,
    /// Volumes that the attacher cannot detach, with its error message.
    refused: BTreeMap<String, String>,
    /// Nodes without the node plugin of any driver.
    without_plugin: BTreeSet<String>,
    /// Volumes that no kubelet unmounts, by their names in `volumesInUse`.
    never_unmounted: BTreeSet<String>,
}

impl ControlPlane {
    /// Starts the simulation, without nodes. Call it once per control plane.
    pub(crate) fn fake_nodes(&self) -> FakeNodes<'_> {
        let shared = Arc::new(Shared::default());
        let autoscaler = self.block_on(async {
            let drivers = [(ATTACHING_DRIVER, true), (SHARED_DRIVER, false), (ZONAL_DRIVER, true)];
            for (name, attaches) in drivers {
                let driver = json!({
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSIDriver",
                    "metadata": { "name": name },
                    "spec": { "attachRequired": attaches },
                });
                create::<CSIDriver>(Api::all(self.client()), driver).await;
            }
            asking::client(self.kubeconfig(), Some(AUTOSCALER)).await
        });
        let task = self.runtime().spawn(simulate(self.client(), Arc::clone(&shared)));
        FakeNodes { plane: self, autoscaler: autoscaler.unwrap(), shared, task }
    }
}

impl FakeNodes<'_> {
    fn order<T>(&self, change: impl FnOnce(&mut Orders) -> T) {
        change(&mut self.shared.orders.lock().unwrap());
        self.shared.changed.notify_one();
    }

    /// Adds nodes to which pods can be scheduled at once.
    pub(crate) fn add(&self, nodes: &[NodeSpec]) {
        let client = self.plane.client();
        for node in nodes {
            self.revive(&node.name);
            self.plane.block_on(register(&client, node));
        }
    }

    /// Silences a node: no lease, no status, no pod ends on it.
    pub(crate) fn die(&self, node: &str) {
        self.order(|orders| orders.alive.remove(node));
    }

    /// Brings a node back, which then catches up.
    pub(crate) fn revive(&self, node: &str) {
        self.order(|orders| orders.alive.insert(node.to_owned()));
    }

    /// Makes the attacher fail to detach the volume from now on, with this message.
    pub(crate) fn refuse_detach(&self, volume: &str, message: &str) {
        let (volume, message) = (volume.to_owned(), message.to_owned());
        self.order(|orders| orders.refused.insert(volume, message));
    }

    /// Lets the attacher detach the volume again.
    pub(crate) fn allow_detach(&self, volume: &str) {
        self.order(|orders| orders.refused.remove(volume));
    }

    /// Takes the plugin of every driver from the node, as when a DaemonSet has no pod there.
    pub(crate) fn lose_plugin(&self, node: &str) {
        self.order(|orders| orders.without_plugin.insert(node.to_owned()));
    }

    /// Stops kubelets from unmounting the volume of [`ATTACHING_DRIVER`] with this handle.
    pub(crate) fn keep_mounted(&self, handle: &str) {
        self.order(|orders| orders.never_unmounted.insert(in_use(handle)));
    }

    /// Lets kubelets unmount the volume again.
    pub(crate) fn let_go(&self, handle: &str) {
        self.order(|orders| orders.never_unmounted.remove(&in_use(handle)));
    }

    /// Removes nodes from the simulation and from the cluster, as [`AUTOSCALER`].
    pub(crate) fn remove(&self, nodes: &[String]) {
        self.plane.block_on(async {
            let client = &self.autoscaler;
            for node in nodes {
                self.die(node);
                let now = DeleteParams::default();
                let _ = Api::<Node>::all(client.clone()).delete(node, &now).await;
                let _ = Api::<CSINode>::all(client.clone()).delete(node, &now).await;
            }
        });
    }
}

impl Drop for FakeNodes<'_> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn create<K>(api: Api<K>, object: Value)
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + serde::Serialize,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

async fn register(client: &kube::Client, spec: &NodeSpec) {
    let name = &spec.name;
    let driver = |driver_name: &str, topology: &[&str]| json!({ "name": driver_name, "nodeID": spec.name, "topologyKeys": topology });
    let hostname = spec.hostname.as_ref().unwrap_or(name);
    let csi_node = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": { "name": name },
        "spec": { "drivers": [
            driver(ATTACHING_DRIVER, &[]),
            driver(SHARED_DRIVER, &[]),
            driver(ZONAL_DRIVER, &[ZONE]),
        ]},
    });
    create::<CSINode>(Api::all(client.clone()), csi_node).await;
    // A node without a Lease is a dead node.
    create::<Lease>(Api::namespaced(client.clone(), NODE_LEASES), lease(name)).await;
    let mut capacity = json!({ "cpu": spec.cpus.to_string(), "memory": "64Gi", "pods": "110" });
    for (resource, amount) in &spec.resources {
        capacity[resource] = json!(amount.to_string());
    }
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": hostname,
                "kubernetes.io/os": "linux",
                // Kubelets set this label; otherwise the controller manager adds it, with one
                // request per node.
                "beta.kubernetes.io/os": "linux",
                ZONE: spec.zone,
                SCENARIO: spec.scenario,
            },
        },
        "spec": { "taints": spec.taints },
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "addresses": [{ "type": "Hostname", "address": name }],
            "conditions": [ready()],
        },
    });
    if !spec.is_unmanaged {
        let managed = "volumes.kubernetes.io/controller-managed-attach-detach";
        node["metadata"]["annotations"] = json!({ managed: "true" });
    }
    create::<Node>(Api::all(client.clone()), node).await;
}

/// The condition of a node with a living kubelet.
fn ready() -> Value {
    json!({
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": now(),
        "lastTransitionTime": now(),
    })
}

/// The name in `volumesInUse` of a volume of [`ATTACHING_DRIVER`].
fn in_use(handle: &str) -> String {
    format!("kubernetes.io/csi/{ATTACHING_DRIVER}^{handle}")
}

/// Renews the node's Lease; after a lost heartbeat, the next one makes up for it.
async fn beat(client: &kube::Client, node: &str) {
    let api = Api::<Lease>::namespaced(client.clone(), NODE_LEASES);
    let as_kubelet = PatchParams::default();
    let _ = api.patch(node, &as_kubelet, &Patch::Merge(lease(node))).await;
}

fn lease(node: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": node },
        "spec": {
            "holderIdentity": node,
            "leaseDurationSeconds": 12,
            "renewTime": jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
        },
    })
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A copy of all objects of one kind; `changes` yields an item after each change.
fn mirror<K>(client: &kube::Client, changes: &mut SelectAll<BoxStream<'static, ()>>) -> Store<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let objects = watcher(Api::<K>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .reflect(writer);
    changes.push(objects.map(|_| ()).boxed());
    store
}

/// Watches the cluster and takes every due step until it is aborted.
async fn simulate(client: kube::Client, shared: Arc<Shared>) {
    let mut changes = SelectAll::new();
    let pods = mirror::<Pod>(&client, &mut changes);
    let nodes = mirror::<Node>(&client, &mut changes);
    let claims = mirror::<PersistentVolumeClaim>(&client, &mut changes);
    let volumes = mirror::<PersistentVolume>(&client, &mut changes);
    let drivers = mirror::<CSIDriver>(&client, &mut changes);
    let attachments = mirror::<VolumeAttachment>(&client, &mut changes);
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    // Nodes with a heartbeat in progress: a busy API server is not sent a second one.
    let beating = Arc::new(Mutex::new(HashSet::new()));
    // Steps that are in progress or done; the mirrors lag behind them.
    let taken = Arc::new(Mutex::new(HashSet::new()));
    let mut endings = Endings::new();
    let mut wake: Option<Instant> = None;
    loop {
        let alarm = async {
            match wake {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = changes.next() => {}
            () = shared.changed.notified() => {}
            () = alarm => {}
            _ = heartbeat.tick() => {
                for node in shared.orders.lock().unwrap().alive.clone() {
                    if beating.lock().unwrap().insert(node.clone()) {
                        let (client, beating) = (client.clone(), Arc::clone(&beating));
                        tokio::spawn(async move {
                            beat(&client, &node).await;
                            beating.lock().unwrap().remove(&node);
                        });
                    }
                }
            }
        }
        // All changes that have arrived in the meantime are handled in one pass.
        while let Some(Some(())) = changes.next().now_or_never() {}
        let cluster = Snapshot {
            pods: pods.state(),
            nodes: nodes.state(),
            claims: claims.state(),
            volumes: volumes.state(),
            drivers: drivers.state(),
            attachments: attachments.state(),
            orders: shared.orders.lock().unwrap().clone(),
        };
        let (steps, next) = life::next_steps(&cluster, &mut endings, Instant::now());
        wake = next;
        for step in steps {
            if taken.lock().unwrap().insert(key(&step)) {
                let (client, taken) = (client.clone(), Arc::clone(&taken));
                tokio::spawn(async move {
                    let outcome = take(&client, &step).await;
                    if is_due_again(&step, &outcome) {
                        taken.lock().unwrap().remove(&key(&step));
                    }
                });
            }
        }
    }
}

/// The identity of a step that is in progress or done. A node makes one report at a time.
fn key(step: &Action) -> Action {
    let mut step = step.clone();
    if let Action::Report { volumes, .. } = &mut step {
        volumes.clear();
    }
    step
}

/// Whether a step must be taken again. A report always must. A step that failed is due again at the
/// next change or heartbeat, also if another change came first; an object that is gone needs no
/// further step.
fn is_due_again(step: &Action, outcome: &kube::Result<()>) -> bool {
    match (step, outcome) {
        (Action::Report { .. }, _) => true,
        (_, Ok(())) => false,
        (_, Err(kube::Error::Api(status))) => match status.code {
            404 => false,
            409 => status.message.contains("the object has been modified"),
            _ => true,
        },
        (_, Err(_)) => true,
    }
}
