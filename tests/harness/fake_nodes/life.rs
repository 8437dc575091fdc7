//! The next steps of kubelets, a CSI attacher and a provisioner, given the objects of the cluster.
//!
//! Facts in, actions out: there is no client and no waiting, so the order of events (attach before
//! running, unmount before gone) can be read in one place.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, VolumeAttachment};

use super::Orders;

/// The facts for the decision, as the API server last reported them.
pub(super) struct Snapshot {
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) claims: Vec<Arc<PersistentVolumeClaim>>,
    pub(super) volumes: Vec<Arc<PersistentVolume>>,
    pub(super) drivers: Vec<Arc<CSIDriver>>,
    pub(super) attachments: Vec<Arc<VolumeAttachment>>,
    pub(super) orders: Orders,
}

/// One request to the API server. Equal actions are the same step of the same object, so each step
/// is taken once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// Kubelet: the node is ready, and these volumes are mounted or about to be.
    Report { node: String, volumes: BTreeSet<String> },
    /// Kubelet: the containers run and are ready. If the controller that declares nodes dead has
    /// marked the pod as not ready, `unready_since` is the time.
    Run { pod: Object, unready_since: Option<String> },
    /// Kubelet: the containers have ended.
    End(Object),
    /// Kubelet: nothing of the pod is left on the node.
    Remove(Object),
    /// Attacher: the volume is attached.
    Attach(Object),
    /// Attacher: the volume is detached.
    Detach(Object),
    /// Attacher: the volume cannot be attached or detached.
    Refuse {
        attachment: Object,
        /// The field of the status that says it: `attachError` or `detachError`.
        field: &'static str,
        message: String,
    },
    /// Provisioner: there is a volume for the claim, in this zone.
    Provision { claim: Object, zone: String },
}

/// An object by name and by uid, which differs for a successor of the same name.
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

/// The time at which each pod was first seen terminating, or running with a limited life, by reason
/// and uid.
pub(super) type Endings = HashMap<String, Instant>;

/// The steps that are due `now`, and the time of the next one.
///
/// Only living nodes act. The attacher and the provisioner always act, because they run on no node.
pub(super) fn next_steps(
    cluster: &Snapshot,
    endings: &mut Endings,
    now: Instant,
) -> (Vec<Action>, Option<Instant>) {
    let mut steps: Vec<Action> =
        cluster.attachments.iter().filter_map(|attachment| attacher(attachment, cluster)).collect();
    let claims = cluster.claims.iter();
    steps.extend(claims.filter_map(|claim| provisioner(claim, &cluster.nodes)));
    let bound = bound(cluster);
    let mut pods: HashMap<&str, Vec<Held<'_>>> = HashMap::new();
    for pod in &cluster.pods {
        if let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
            let attached = claims_of(pod).filter_map(|claim| bound.get(&claim)?.clone());
            pods.entry(node).or_default().push(Held {
                pod,
                volumes: attached.collect(),
                bound: claims_of(pod).all(|claim| bound.contains_key(&claim)),
            });
        }
    }
    let mut later = Vec::new();
    for node in &cluster.nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        if cluster.orders.alive.contains(name) {
            let here = pods.remove(name).unwrap_or_default();
            steps.extend(kubelet(node, name, &here, &cluster.orders.never_unmounted));
            for (pod, due) in here.iter().filter_map(|held| ends(held.pod, endings, now)) {
                if due <= now {
                    steps.push(Action::End(pod));
                } else {
                    later.push(due);
                }
            }
        }
    }
    (steps, later.into_iter().min())
}

/// A pod on a node. `volumes` are those that must be attached; `bound` says whether each claim of
/// the pod has a volume.
struct Held<'a> {
    pod: &'a Pod,
    volumes: BTreeSet<String>,
    bound: bool,
}

/// The claims that have a volume, by namespace and name. A volume that must be attached is given by
/// its name in the attach-detach controller: `kubernetes.io/csi/DRIVER^HANDLE`.
fn bound(cluster: &Snapshot) -> HashMap<(&str, &str), Option<String>> {
    let drivers: HashMap<&str, bool> = cluster
        .drivers
        .iter()
        .filter_map(|driver| Some((driver.metadata.name.as_deref()?, driver.spec.attach_required?)))
        .collect();
    let volumes: HashMap<&str, &PersistentVolume> = cluster
        .volumes
        .iter()
        .filter_map(|volume| Some((volume.metadata.name.as_deref()?, volume.as_ref())))
        .collect();
    let attached = |volume: &str| {
        let csi = volumes.get(volume)?.spec.as_ref()?.csi.as_ref()?;
        // A driver without an object attaches: pkg/volume/csi/csi_plugin.go.
        let attaches = drivers.get(csi.driver.as_str()).copied().unwrap_or(true);
        attaches.then(|| format!("kubernetes.io/csi/{}^{}", csi.driver, csi.volume_handle))
    };
    cluster
        .claims
        .iter()
        .filter_map(|claim| {
            let volume = claim.spec.as_ref()?.volume_name.as_deref()?;
            let metadata = &claim.metadata;
            let key = (metadata.namespace.as_deref()?, metadata.name.as_deref()?);
            Some((key, attached(volume)))
        })
        .collect()
}

/// The claims that a pod mentions, by namespace and name.
fn claims_of(pod: &Pod) -> impl Iterator<Item = (&str, &str)> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(move |volume| {
        let claim = volume.persistent_volume_claim.as_ref()?;
        Some((namespace, claim.claim_name.as_str()))
    })
}

fn attacher(attachment: &VolumeAttachment, cluster: &Snapshot) -> Option<Action> {
    if attachment.spec.attacher == super::SIDECAR_DRIVER {
        return None;
    }
    let volume = attachment.spec.source.persistent_volume_name.as_ref();
    let orders = &cluster.orders;
    let object = Object::of(attachment);
    match (&attachment.metadata.deletion_timestamp, is_attached(attachment)) {
        (Some(_), _) => Some(match volume.and_then(|volume| orders.refused.get(volume)) {
            Some(message) => Action::Refuse {
                attachment: object,
                field: "detachError",
                message: message.clone(),
            },
            None => Action::Detach(object),
        }),
        (None, false) if orders.without_plugin.contains(&attachment.spec.node_name) => {
            Some(Action::Refuse {
                attachment: object,
                field: "attachError",
                message: format!(
                    "CSINode {} does not contain driver {}",
                    attachment.spec.node_name, attachment.spec.attacher
                ),
            })
        }
        (None, false) => Some(match elsewhere(attachment, cluster) {
            Some(node) => Action::Refuse {
                attachment: object,
                field: "attachError",
                message: format!("the disk is already attached to {node}"),
            },
            None => Action::Attach(object),
        }),
        (None, true) => None,
    }
}

fn is_attached(attachment: &VolumeAttachment) -> bool {
    let status = attachment.status.as_ref();
    status.is_some_and(|status| status.attached)
}

/// The other node to which the driver has already attached a volume for one node. The driver knows
/// better than Kubernetes: after a failed detach, the attach-detach controller takes the volume to
/// be free (`GenerateDetachVolumeFunc` in `pkg/volume/util/operationexecutor`,
/// `GetNodesForAttachedVolume` in `pkg/controller/volume/attachdetach/cache`).
fn elsewhere<'a>(attachment: &VolumeAttachment, cluster: &'a Snapshot) -> Option<&'a str> {
    let volume = attachment.spec.source.persistent_volume_name.as_ref()?;
    let found = cluster
        .volumes
        .iter()
        .find(|candidate| candidate.metadata.name.as_ref() == Some(volume))?;
    let modes = found.spec.as_ref()?.access_modes.as_ref()?;
    if modes.iter().any(|mode| mode.ends_with("Many")) {
        return None;
    }
    let other = cluster.attachments.iter().find(|other| {
        other.spec.source.persistent_volume_name.as_ref() == Some(volume)
            && other.spec.node_name != attachment.spec.node_name
            && is_attached(other)
    })?;
    Some(&other.spec.node_name)
}

/// Serves a claim that waits for the first pod, once a node has been chosen for that pod.
fn provisioner(claim: &PersistentVolumeClaim, nodes: &[Arc<Node>]) -> Option<Action> {
    let asked = |key: &str| claim.metadata.annotations.as_ref()?.get(key);
    let unbound = claim.spec.as_ref()?.volume_name.is_none();
    if !unbound || asked("volume.kubernetes.io/storage-provisioner")? != super::ZONAL_DRIVER {
        return None;
    }
    let chosen = asked("volume.kubernetes.io/selected-node")?;
    let node = nodes.iter().find(|node| node.metadata.name.as_ref() == Some(chosen))?;
    Some(Action::Provision {
        claim: Object::of(claim),
        zone: node.metadata.labels.as_ref()?.get(super::ZONE)?.clone(),
    })
}

/// The steps that one node's kubelet takes at once.
fn kubelet(
    node: &Node,
    name: &str,
    here: &[Held<'_>],
    never_unmounted: &BTreeSet<String>,
) -> Vec<Action> {
    // The controller detaches only volumes that are not in use, so it must learn that a volume is
    // in use before the volume is mounted, and that it is no longer in use before the pod is gone.
    let reported = reported_in_use(node);
    let living = here.iter().filter(|held| !is_terminal(held.pod));
    let mut wanted: BTreeSet<String> = living.flat_map(|held| held.volumes.clone()).collect();
    wanted.extend(reported.intersection(never_unmounted).cloned());
    let attached = attached_volumes(node);
    let mut steps = Vec::new();
    for held in here {
        let (pod, mut volumes) = (held.pod, held.volumes.iter());
        if pod.metadata.deletion_timestamp.is_none() {
            let starts = phase(pod) == "Pending"
                && held.bound
                && volumes.all(|volume| reported.contains(volume) && attached.contains(volume));
            let unready_since = unready_since(pod);
            if starts || unready_since.is_some() {
                steps.push(Action::Run { pod: Object::of(pod), unready_since });
            }
        } else if is_terminal(pod)
            && volumes.all(|volume| !reported.contains(volume) || wanted.contains(volume))
        {
            steps.push(Action::Remove(Object::of(pod)));
        }
    }
    if wanted != reported || !is_ready(node) {
        steps.push(Action::Report { node: name.to_owned(), volumes: wanted });
    }
    steps
}

/// The time at which the containers of a pod end, by themselves or after the grace period.
fn ends(pod: &Pod, endings: &mut Endings, now: Instant) -> Option<(Object, Instant)> {
    let object = Object::of(pod);
    let (why, span) = if pod.metadata.deletion_timestamp.is_some() {
        let goes_on = is_terminal(pod) || hangs(pod);
        ("asked", (!goes_on).then(|| grace_period(pod))?)
    } else {
        let runs = phase(pod) == "Running" && unready_since(pod).is_none();
        ("running", life_span(pod).filter(|_| runs)?)
    };
    let since = *endings.entry(format!("{why} {}", object.uid)).or_insert(now);
    Some((object, since + span))
}

/// The time for which the pod's containers go on after the request to end; containers that never
/// started end at once.
fn grace_period(pod: &Pod) -> Duration {
    let seconds = pod.metadata.deletion_grace_period_seconds.filter(|_| phase(pod) == "Running");
    Duration::from_secs(seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0))
}

/// The time for which the pod's containers run, if they end by themselves.
fn life_span(pod: &Pod) -> Option<Duration> {
    let seconds = pod.metadata.annotations.as_ref()?.get(super::ENDS_AFTER)?;
    seconds.parse().ok().map(Duration::from_secs)
}

fn hangs(pod: &Pod) -> bool {
    let annotations = pod.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(super::HANGS))
}

/// The pod's phase; `Pending` if the status has none yet.
pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// The time at which a running pod was marked as not ready.
fn unready_since(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    let since = ready.last_transition_time.as_ref()?.0.to_string();
    (phase(pod) == "Running" && ready.status != "True").then_some(since)
}

fn is_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let mut conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn is_terminal(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

fn reported_in_use(node: &Node) -> BTreeSet<String> {
    let status = node.status.as_ref();
    status
        .and_then(|status| status.volumes_in_use.clone())
        .unwrap_or_default()
        .into_iter()
        .collect()
}

/// The volumes that are attached here according to the attach-detach controller; a kubelet waits
/// for them.
fn attached_volumes(node: &Node) -> BTreeSet<String> {
    let status = node.status.as_ref();
    let attached = status.and_then(|status| status.volumes_attached.clone()).unwrap_or_default();
    attached.into_iter().map(|volume| volume.name).collect()
}
