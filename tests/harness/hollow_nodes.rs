//! Nodes with the kubelet of the tested minor and with their own CSI drivers: see
//! `tests/control-plane/hollow-node`. Each node is a process without containers and disks. The
//! attacher and the provisioner are those of [`super::fake_nodes`], except for the volumes of
//! [`SIDECAR_DRIVER`], which have kubernetes-csi's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use kube::api::Api;
use serde::Deserialize;
use serde_json::{Value, json};

use super::control_plane::{ControlPlane, THRIFT};
use super::fake_nodes::{
    ATTACHING_DRIVER, NodeSpec, SHARED_DRIVER, SIDECAR_DRIVER, ZONAL_DRIVER, ZONE,
};
use super::process::Program;
use super::wait_until;

/// The time limit from start to ready for a node, on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(180);

/// The properties of a hollow node besides those that every node has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Kubelet {
    /// Further CSI drivers.
    pub(crate) drivers: Vec<String>,
    /// The number of volumes of each driver that fit on the node; 0 is no limit.
    pub(crate) attach_limit: u32,
    /// Whether the kubelet assumes that its host has SELinux.
    pub(crate) selinux: bool,
    /// Feature gates that differ from the defaults of the minor.
    pub(crate) gates: BTreeMap<String, bool>,
}

/// The hollow nodes of one control plane.
pub(crate) struct HollowNodes<'a> {
    plane: &'a ControlPlane,
    /// The folder that all of their drivers share.
    disks: PathBuf,
    running: Mutex<BTreeMap<String, Program>>,
    sidecars: OnceLock<Result<Vec<Program>, String>>,
}

impl ControlPlane {
    /// Prepares the control plane for hollow nodes; none is started yet.
    pub(crate) fn hollow_nodes(&self) -> HollowNodes<'_> {
        let disks = self.folder.join("kube-apiserver/disks");
        std::fs::create_dir_all(&disks).unwrap();
        HollowNodes { plane: self, disks, running: Mutex::default(), sidecars: OnceLock::new() }
    }
}

impl HollowNodes<'_> {
    /// Starts nodes and waits until pods can be scheduled on each.
    ///
    /// # Errors
    ///
    /// A sentence with the log's tail of the first node that does not start.
    pub(crate) fn add(&self, nodes: &[NodeSpec], kubelet: &Kubelet) -> Result<(), String> {
        if kubelet.drivers.iter().any(|driver| driver == SIDECAR_DRIVER) {
            let sidecars = self.sidecars.get_or_init(|| self.start_sidecars());
            sidecars.as_ref().map_err(Clone::clone)?;
        }
        for node in nodes {
            self.plane.until_calm();
            let program = self
                .start(node, kubelet)
                .map_err(|error| format!("hollow-node cannot be started: {error}."))?;
            self.running().insert(node.name.clone(), program);
        }
        nodes.iter().try_for_each(|node| {
            let ready = || {
                let ended = self.running()[&node.name].exited();
                match ended {
                    Some(status) => Ok(Err(format!("Node {} ended with {status}", node.name))),
                    None => self.is_ready(node, kubelet).map(Ok),
                }
            };
            let what = format!("node {} to be ready", node.name);
            wait_until(&what, READY_WITHIN, ready)
                .flatten()
                .map_err(|reason| format!("{reason}. {}", self.running()[&node.name].log_tail()))
        })
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Program>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, node: &NodeSpec, kubelet: &Kubelet) -> std::io::Result<Program> {
        // Paths of the sockets in this folder are limited to 108 bytes.
        let folder = tempfile::Builder::new().prefix("node-").tempdir()?.keep();
        let flags = [
            format!("-kubeconfig={}", self.plane.kubeconfig().display()),
            format!("-root={}", folder.display()),
            format!("-disks={}", self.disks.display()),
            format!("-node={}", specification(node, kubelet)),
        ];
        let mut environment = THRIFT.to_vec();
        if kubelet.selinux {
            environment.push(("HOLLOW_NODE_SELINUX", "1"));
        }
        let program = self.plane.program("hollow-node");
        Program::start(&node.name, &program, &flags, &environment, &folder)
    }

    /// Starts the controller of [`SIDECAR_DRIVER`] with its attacher and provisioner, which wait
    /// for it. Nothing else attaches or provisions volumes of this driver.
    fn start_sidecars(&self) -> Result<Vec<Program>, String> {
        let folder = tempfile::Builder::new()
            .prefix("sidecars-")
            .tempdir()
            .map_err(|error| error.to_string())?
            .keep();
        let controller = folder.join("driver");
        let start = |name: &str, program: &str, flags: &[String]| {
            let program = self.plane.program(program);
            Program::start(name, &program, flags, &THRIFT, &folder.join(name))
                .map_err(|error| format!("{name} cannot be started: {error}."))
        };
        let driver = [
            format!("-controller={SIDECAR_DRIVER}"),
            format!("-root={}", controller.display()),
            format!("-disks={}", self.disks.display()),
        ];
        let flags = [
            format!("--csi-address={}", controller.join("csi.sock").display()),
            format!("--kubeconfig={}", self.plane.kubeconfig().display()),
            // Otherwise they wait for up to half a minute before they repeat a failed step.
            "--retry-interval-max=5s".to_owned(),
        ];
        Ok(vec![
            start("driver", "hollow-node", &driver)?,
            start("csi-attacher", "csi-attacher", &flags)?,
            start("csi-provisioner", "csi-provisioner", &flags)?,
        ])
    }

    /// Checks that the node is ready, with all of its drivers and no taint but its own.
    fn is_ready(&self, node: &NodeSpec, kubelet: &Kubelet) -> Result<(), String> {
        let client = self.plane.client();
        let (found, drivers) = self
            .plane
            .block_on(async {
                let found = Api::<Node>::all(client.clone()).get(&node.name).await?;
                let drivers = Api::<CSINode>::all(client).get(&node.name).await?;
                Ok((found, drivers.spec.drivers.len()))
            })
            .map_err(|error: kube::Error| error.to_string())?;
        let status = found.status.unwrap_or_default();
        let mut conditions = status.conditions.iter().flatten();
        let ready =
            conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True");
        let taints = found.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let wanted = drivers_of(node, kubelet).len();
        if ready && drivers == wanted && taints.len() == node.taints.len() {
            return Ok(());
        }
        Err(format!("Ready: {ready}, {drivers} of {wanted} drivers, taints {taints:?}"))
    }

    /// Kills the node's process: no lease, no status, no pod ends on it.
    pub(crate) fn die(&self, node: &str) -> bool {
        let running = self.running();
        let program = running.get(node);
        program.inspect(|program| program.signal("KILL")).is_some()
    }

    /// Ends the processes of nodes; the objects stay.
    pub(crate) fn remove(&self, nodes: &[String]) {
        let mut running = self.running();
        let gone: Vec<_> = nodes.iter().filter_map(|name| running.remove(name)).collect();
        drop(running);
        drop(gone);
    }
}

/// The value of the flag `-node` of `hollow-node`.
fn specification(node: &NodeSpec, kubelet: &Kubelet) -> Value {
    let hostname = node.hostname.as_ref().unwrap_or(&node.name);
    let resources: BTreeMap<_, _> =
        node.resources.iter().map(|(name, amount)| (name, amount.to_string())).collect();
    json!({
        "name": node.name,
        "labels": {
            "kubernetes.io/hostname": hostname,
            ZONE: node.zone,
            super::fake_nodes::SCENARIO: node.scenario,
        },
        "taints": node.taints,
        "resources": resources,
        "drivers": drivers_of(node, kubelet),
        "gates": kubelet.gates,
    })
}

fn drivers_of(node: &NodeSpec, kubelet: &Kubelet) -> Vec<Value> {
    let common = [ATTACHING_DRIVER, SHARED_DRIVER].map(str::to_owned);
    let further =
        kubelet.drivers.iter().filter(|driver| !common.contains(driver) && *driver != ZONAL_DRIVER);
    let all = common.iter().chain(further);
    let plain = all.map(|name| json!({ "name": name, "limit": kubelet.attach_limit }));
    let zonal = json!({
        "name": ZONAL_DRIVER,
        "limit": kubelet.attach_limit,
        "topology": { ZONE: node.zone },
    });
    plain.chain([zonal]).collect()
}
