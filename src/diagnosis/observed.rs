//! The state of a moment: pods and what became of them, Events, VolumeAttachments, the
//! health of nodes. The guard's own facts hold nothing of it, as it decides about no
//! manifest.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::Deserializer;

use crate::model::Text;
use crate::model::de::nullable;
use crate::model::labels::Labels;
use crate::model::lease::Lease;
use crate::model::node::{NodeStatus, Taint};
use crate::model::uid::Uid;

/// What was seen of a cluster at one moment.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The pods.
    pub pods: Vec<Pod>,
    /// The Events about volumes that could not be attached.
    pub events: Vec<Event>,
    /// Which volume is attached to which node.
    pub attachments: Vec<VolumeAttachment>,
    /// The nodes.
    pub nodes: Vec<NodeState>,
    /// The Leases that kubelets renew.
    pub leases: Vec<Lease>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

/// A resource that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Its plural name, `volumeattachments` for example.
    pub resource: Text,
    /// Why not, in the words of the API server, without a full stop.
    pub reason: String,
}

impl Observed {
    /// Whether all objects of a resource are known.
    #[must_use]
    pub fn has_read(&self, resource: &str) -> bool {
        self.unread(resource).is_none()
    }

    /// Whether and why a resource could not be read.
    #[must_use]
    pub fn unread(&self, resource: &str) -> Option<&Unread> {
        self.unread.iter().find(|it| it.resource == resource)
    }
}

impl Unread {
    /// A sentence about a question that stays open: "which pods use the claim".
    #[must_use]
    pub fn leaves_open(&self, question: &str) -> String {
        let Self { resource, reason } = self;
        format!("It is not known {question}, because the {resource} could not be read: {reason}.")
    }
}

/// Reads a point in time as the API server writes it; anything else is none.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<Text>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// What names an object, and since when it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Meta {
    /// Its name.
    pub name: Text,
    /// Its namespace; empty for objects that have none.
    #[serde(deserialize_with = "nullable")]
    pub namespace: Text,
    /// Which object of that name it is.
    #[serde(deserialize_with = "nullable")]
    pub uid: Uid,
    /// Its labels.
    #[serde(deserialize_with = "nullable")]
    pub labels: Labels,
    /// When it was made.
    #[serde(rename = "creationTimestamp", deserialize_with = "time")]
    pub made: Option<Timestamp>,
    /// For a pod that was told to end, when its grace period is over; when it was
    /// deleted, for anything else.
    #[serde(rename = "deletionTimestamp", deserialize_with = "time")]
    pub deleted: Option<Timestamp>,
    #[serde(rename = "ownerReferences", deserialize_with = "nullable")]
    owners: Vec<Owner>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Owner {
    kind: Text,
    name: Text,
    controller: Option<bool>,
}

/// A pod and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// What names it.
    pub meta: Meta,
    /// The node it is bound to.
    pub node: Option<Text>,
    /// The claims it uses, those that were made for it alone included.
    pub claims: Vec<Text>,
    /// Its phase; empty where nobody has said yet.
    pub phase: Text,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether its volumes must be there: a container was started, or could not be
    /// for another reason.
    pub mounted: bool,
    /// Why the scheduler has found no node for it.
    pub unschedulable: Option<String>,
    /// When the scheduler last said whether it found one.
    pub scheduled_at: Option<Timestamp>,
}

impl Pod {
    /// Whether it uses volumes, or will: it is bound to a node and has not run to its end.
    #[must_use]
    pub fn is_living(&self) -> bool {
        self.node.is_some() && !matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether it was told to end.
    #[must_use]
    pub const fn is_ending(&self) -> bool {
        self.meta.deleted.is_some()
    }

    /// The kind and the name of what a user would change to change the pod: the
    /// Deployment rather than its ReplicaSet; the pod itself where it has no controller.
    #[must_use]
    pub fn workload(&self) -> (Text, Text) {
        let mut owners = self.meta.owners.iter();
        let Some(controller) = owners.find(|owner| owner.controller == Some(true)) else {
            return ("Pod".into(), self.meta.name.clone());
        };
        let hash = self.meta.labels.get("pod-template-hash");
        // The Deployment controller names its ReplicaSets so (`getNewReplicaSet` in
        // `pkg/controller/deployment/sync.go`).
        let deployment = hash
            .filter(|_| controller.kind == "ReplicaSet")
            .and_then(|hash| controller.name.strip_suffix(hash))
            .and_then(|name| name.strip_suffix('-'));
        match deployment {
            Some(name) => ("Deployment".into(), name.into()),
            None => (controller.kind.clone(), controller.name.clone()),
        }
    }

    /// What tells it from the pods of other revisions.
    #[must_use]
    pub fn revision(&self) -> Option<&str> {
        let labels = &self.meta.labels;
        labels
            .get("pod-template-hash")
            .or_else(|| labels.get("controller-revision-hash"))
    }

    /// Since when it waits, as far as that can be told.
    #[must_use]
    pub fn waits_since(&self) -> Option<Timestamp> {
        match self.node {
            Some(_) => self.scheduled_at.or(self.meta.made),
            None => self.meta.made,
        }
    }
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = PodWire::deserialize(deserializer)?;
        let status = wire.status;
        let condition = |name: &str| status.conditions.iter().find(|it| it.kind == name);
        let is_true = |name: &str| condition(name).is_some_and(|it| it.status == "True");
        let scheduled = condition("PodScheduled");
        let pod = &wire.metadata.name;
        let claims = wire.spec.volumes.iter().filter_map(|volume| {
            let named = volume.persistent_volume_claim.as_ref();
            let made = volume.ephemeral.as_ref();
            named
                .map(|it| it.claim_name.clone())
                // `ephemeral.VolumeClaimName` in `component-helpers/storage/ephemeral`.
                .or_else(|| made.map(|_| format!("{pod}-{}", volume.name).into()))
        });
        let mut containers = status
            .init_container_statuses
            .iter()
            .chain(&status.container_statuses);
        Ok(Self {
            claims: claims.collect(),
            node: wire.spec.node_name.filter(|name| !name.is_empty()),
            ready: is_true("Ready"),
            mounted: is_true("PodReadyToStartContainers") || containers.any(Container::has_volumes),
            unschedulable: scheduled
                .filter(|it| it.status == "False")
                .map(|it| it.message.clone()),
            scheduled_at: scheduled.and_then(|it| it.last_transition_time),
            phase: status.phase,
            meta: wire.metadata,
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodWire {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: PodSpec,
    #[serde(deserialize_with = "nullable")]
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    node_name: Option<Text>,
    #[serde(deserialize_with = "nullable")]
    volumes: Vec<PodVolume>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodVolume {
    name: Text,
    persistent_volume_claim: Option<ClaimSource>,
    ephemeral: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimSource {
    claim_name: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodStatus {
    #[serde(deserialize_with = "nullable")]
    phase: Text,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "nullable")]
    init_container_statuses: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    container_statuses: Vec<Container>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: Text,
    status: Text,
    #[serde(deserialize_with = "nullable")]
    message: String,
    #[serde(deserialize_with = "time")]
    last_transition_time: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    #[serde(deserialize_with = "nullable")]
    state: ContainerState,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<ContainerWaiting>,
    running: Option<serde::de::IgnoredAny>,
    terminated: Option<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerWaiting {
    #[serde(deserialize_with = "nullable")]
    reason: Text,
}

impl Container {
    /// The kubelet mounts all volumes before it starts the first container.
    fn has_volumes(&self) -> bool {
        let another_reason = |it: &ContainerWaiting| {
            !matches!(
                it.reason.as_str(),
                "" | "ContainerCreating" | "PodInitializing"
            )
        };
        self.state.running.is_some()
            || self.state.terminated.is_some()
            || self.state.waiting.as_ref().is_some_and(another_reason)
    }
}

/// An Event about a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event {
    /// The pod it is about.
    pub involved_object: Involved,
    /// `FailedAttachVolume` for example.
    #[serde(deserialize_with = "nullable")]
    pub reason: Text,
    /// The sentence.
    #[serde(deserialize_with = "nullable")]
    pub message: String,
}

/// What an Event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Involved {
    /// `Pod` for example.
    #[serde(deserialize_with = "nullable")]
    pub kind: Text,
    /// Its namespace.
    #[serde(deserialize_with = "nullable")]
    pub namespace: Text,
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub name: Text,
}

/// A volume on a node, on its way there or away from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeAttachment {
    /// What names it.
    pub meta: Meta,
    /// The persistent volume.
    pub volume: Text,
    /// The node.
    pub node: Text,
    /// Whether the driver says that it is attached.
    pub attached: bool,
    /// What the driver said when it could not attach it.
    pub attach_error: Option<String>,
    /// What the driver said when it could not detach it.
    pub detach_error: Option<String>,
}

impl<'de> Deserialize<'de> for VolumeAttachment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Wire {
            metadata: Meta,
            spec: Spec,
            #[serde(deserialize_with = "nullable")]
            status: Status,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Spec {
            node_name: Text,
            source: Source,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Source {
            #[serde(deserialize_with = "nullable")]
            persistent_volume_name: Text,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Status {
            attached: bool,
            attach_error: Option<Fault>,
            detach_error: Option<Fault>,
        }

        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Fault {
            #[serde(deserialize_with = "nullable")]
            message: String,
        }

        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            meta: wire.metadata,
            volume: wire.spec.source.persistent_volume_name,
            node: wire.spec.node_name,
            attached: wire.status.attached,
            attach_error: wire.status.attach_error.map(|it| it.message),
            detach_error: wire.status.detach_error.map(|it| it.message),
        })
    }
}

/// What is said of a node's health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeState {
    /// Its name.
    pub name: Text,
    /// Its condition Ready; `None` where that is `Unknown` or not there.
    pub ready: Option<bool>,
    /// All its taints.
    pub taints: Vec<Taint>,
    /// Whether it takes no new pods.
    pub cordoned: bool,
}

impl<'de> Deserialize<'de> for NodeState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Wire {
            metadata: Meta,
            #[serde(deserialize_with = "nullable")]
            spec: Spec,
            #[serde(deserialize_with = "nullable")]
            status: NodeStatus,
        }

        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Spec {
            #[serde(deserialize_with = "nullable")]
            taints: Vec<Taint>,
            #[serde(deserialize_with = "nullable")]
            unschedulable: bool,
        }

        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            name: wire.metadata.name,
            ready: wire.status.ready,
            taints: wire.spec.taints,
            cordoned: wire.spec.unschedulable,
        })
    }
}
