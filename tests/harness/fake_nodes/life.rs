//! What kubelets and a CSI attacher would do next, given what is in the cluster.
//!
//! Facts in, actions out: no client and no waiting, so the order of events (attach
//! before running, unmount before gone) can be read in one place.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, VolumeAttachment};

/// Everything the decision looks at, as the API server last told it.
pub(super) struct Cluster {
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) claims: Vec<Arc<PersistentVolumeClaim>>,
    pub(super) volumes: Vec<Arc<PersistentVolume>>,
    pub(super) drivers: Vec<Arc<CSIDriver>>,
    pub(super) attachments: Vec<Arc<VolumeAttachment>>,
}

/// One request to the API server. Equal actions are the same step of the same object,
/// so a step is taken once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// Kubelet: these volumes are mounted or about to be.
    ReportInUse {
        node: String,
        volumes: BTreeSet<String>,
    },
    /// Kubelet: the containers run and are ready.
    Run(Object),
    /// Kubelet: the containers have ended.
    End(Object),
    /// Kubelet: nothing of the pod is left on the node.
    Remove(Object),
    /// Attacher: the volume is attached.
    Attach(Object),
    /// Attacher: the volume is detached.
    Detach(Object),
}

/// An object by name, and by the identity that a successor of the same name lacks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Object {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

impl Object {
    fn of(object: &impl kube::ResourceExt) -> Self {
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
        }
    }
}

/// When each pod that must end was first seen ending, by uid.
pub(super) type Endings = HashMap<String, Instant>;

/// The steps that are due `now`, and the moment the next one will be.
///
/// Only the nodes in `alive` act; the attacher, which is no node, always does.
pub(super) fn next_steps(
    cluster: &Cluster,
    alive: &BTreeSet<String>,
    endings: &mut Endings,
    now: Instant,
) -> (Vec<Action>, Option<Instant>) {
    let mut steps: Vec<Action> = cluster
        .attachments
        .iter()
        .filter_map(|it| attacher(it))
        .collect();
    let mut wake = None;
    for node in &cluster.nodes {
        let name = node.metadata.name.clone().unwrap_or_default();
        if alive.contains(&name) {
            let next = kubelet(cluster, node, &name, endings, now, &mut steps);
            wake = [wake, next].into_iter().flatten().min();
        }
    }
    (steps, wake)
}

fn attacher(attachment: &VolumeAttachment) -> Option<Action> {
    let attached = attachment
        .status
        .as_ref()
        .is_some_and(|status| status.attached);
    match (&attachment.metadata.deletion_timestamp, attached) {
        (Some(_), _) => Some(Action::Detach(Object::of(attachment))),
        (None, false) => Some(Action::Attach(Object::of(attachment))),
        (None, true) => None,
    }
}

/// One node's kubelet. Returns when a grace period on it will end.
fn kubelet(
    cluster: &Cluster,
    node: &Node,
    name: &str,
    endings: &mut Endings,
    now: Instant,
    steps: &mut Vec<Action>,
) -> Option<Instant> {
    let mut wake = None;
    let here: Vec<&Arc<Pod>> = cluster
        .pods
        .iter()
        .filter(|pod| pod.spec.as_ref().and_then(|it| it.node_name.as_deref()) == Some(name))
        .collect();

    // The controller must learn that a volume is in use before it is mounted, and that
    // it no longer is before the pod is gone; it detaches only what is not in use.
    let reported = reported_in_use(node);
    let wanted: BTreeSet<String> = here
        .iter()
        .filter(|pod| !is_terminal(pod))
        .flat_map(|pod| attachable_volumes(cluster, pod))
        .collect();
    if wanted != reported {
        steps.push(Action::ReportInUse {
            node: name.to_owned(),
            volumes: wanted,
        });
    }

    let attached = attached_volumes(node);
    for pod in here {
        let object = Object::of(pod.as_ref());
        let volumes = attachable_volumes(cluster, pod);
        let terminal = is_terminal(pod);
        if pod.metadata.deletion_timestamp.is_some() {
            if terminal {
                if volumes
                    .iter()
                    .all(|volume| !reported.contains(volume) || shared(cluster, pod, volume))
                {
                    steps.push(Action::Remove(object));
                }
                continue;
            }
            let grace = if phase(pod) == "Running" {
                u64::try_from(pod.metadata.deletion_grace_period_seconds.unwrap_or(0)).unwrap_or(0)
            } else {
                0
            };
            let since = *endings.entry(object.uid.clone()).or_insert(now);
            let due = since + Duration::from_secs(grace);
            if due <= now {
                steps.push(Action::End(object));
            } else {
                wake = [wake, Some(due)].into_iter().flatten().min();
            }
        } else if phase(pod) == "Pending"
            && volumes
                .iter()
                .all(|it| reported.contains(it) && attached.contains(it))
        {
            steps.push(Action::Run(object));
        }
    }
    wake
}

/// True when another living pod on the same node uses this volume.
fn shared(cluster: &Cluster, pod: &Pod, volume: &str) -> bool {
    cluster.pods.iter().any(|other| {
        other.metadata.uid != pod.metadata.uid
            && !is_terminal(other)
            && node_name(other) == node_name(pod)
            && attachable_volumes(cluster, other).contains(volume)
    })
}

fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// The pod's phase, `Pending` before anybody has said otherwise.
pub(super) fn phase(pod: &Pod) -> &str {
    pod.status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Pending")
}

fn is_terminal(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

fn reported_in_use(node: &Node) -> BTreeSet<String> {
    let status = node.status.as_ref();
    status
        .and_then(|it| it.volumes_in_use.clone())
        .unwrap_or_default()
        .into_iter()
        .collect()
}

/// What the attach-detach controller says is attached here; a kubelet waits for this.
fn attached_volumes(node: &Node) -> BTreeSet<String> {
    let status = node.status.as_ref();
    let attached = status
        .and_then(|it| it.volumes_attached.clone())
        .unwrap_or_default();
    attached.into_iter().map(|volume| volume.name).collect()
}

/// The pod's volumes that must be attached, by the name the attach-detach controller
/// gives them: `kubernetes.io/csi/DRIVER^HANDLE`.
fn attachable_volumes(cluster: &Cluster, pod: &Pod) -> BTreeSet<String> {
    let drivers: BTreeMap<&str, bool> = cluster
        .drivers
        .iter()
        .filter_map(|it| Some((it.metadata.name.as_deref()?, it.spec.attach_required?)))
        .collect();
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .filter_map(|volume| {
            let source = volume.persistent_volume_claim.as_ref()?;
            let claim = cluster.claims.iter().find(|claim| {
                claim.metadata.namespace == pod.metadata.namespace
                    && claim.metadata.name.as_deref() == Some(&source.claim_name)
            })?;
            let bound_to = claim.spec.as_ref()?.volume_name.as_deref()?;
            let volume = cluster
                .volumes
                .iter()
                .find(|volume| volume.metadata.name.as_deref() == Some(bound_to))?;
            let csi = volume.spec.as_ref()?.csi.as_ref()?;
            // A driver without an object attaches: pkg/volume/csi/csi_plugin.go.
            let attaches = drivers.get(csi.driver.as_str()).copied().unwrap_or(true);
            attaches.then(|| format!("kubernetes.io/csi/{}^{}", csi.driver, csi.volume_handle))
        })
        .collect()
}
