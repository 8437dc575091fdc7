//! Pods as they are in a cluster: their volumes and their status.

use jiff::Timestamp;
use serde::Deserialize;

use super::Text;
use super::condition::Condition;
use super::de::nullable;
use super::labels::Labels;
use super::metadata::Metadata;
use super::node::{OUT_OF_SERVICE, Taint};
use super::pod::{PodSpec, PodTemplate};
use super::resource::Resource;

/// A pod and its status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Resource<PodSpec, PodStatus>")]
pub struct Pod {
    /// Its metadata.
    pub meta: Metadata,
    /// The node it is bound to.
    pub node: Option<Text>,
    /// The claims it uses, including those of generic ephemeral volumes.
    pub claims: Vec<Text>,
    /// Its phase; empty if it has none yet.
    pub phase: Text,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether its volumes must have been mounted: a container was started, or could not be started
    /// for another reason.
    pub mounted: bool,
    /// The reason for which a container does not run although the volumes are mounted,
    /// `ImagePullBackOff` for example.
    pub held_up: Option<Text>,
    /// The kubelet's message about that; empty if there is none.
    pub held_up_message: String,
    /// The scheduler's message if it found no node for the pod.
    pub unschedulable: Option<String>,
    /// The template that it was made from, which may no longer be that of its workload.
    pub template: PodTemplate,
    /// The time at which the scheduler last reported whether it found a node.
    pub scheduled_at: Option<Timestamp>,
}

impl Pod {
    /// Whether it uses volumes, or will: it is bound to a node and has not finished.
    pub fn is_living(&self) -> bool {
        self.node.is_some() && !matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether it still waits for its volumes. A terminating pod does not need them any more.
    pub fn is_starting(&self) -> bool {
        !self.is_ending() && !self.mounted && matches!(self.phase.as_str(), "" | "Pending")
    }

    /// Whether it tolerates the taint `out-of-service`, so that it stays on such a node.
    pub fn stays_out_of_service(&self) -> bool {
        let out_of_service = Taint {
            key: OUT_OF_SERVICE.into(),
            value: "nodeshutdown".into(),
            effect: "NoExecute".into(),
        };
        self.template.tolerations.iter().any(|toleration| toleration.tolerates(&out_of_service))
    }

    /// Whether it is terminating.
    pub const fn is_ending(&self) -> bool {
        self.meta.is_being_deleted()
    }

    /// The kind and the name of the object that a user changes to change the pod: the Deployment
    /// rather than its ReplicaSet, or the pod itself if it has no controller.
    pub fn workload(&self) -> (Text, Text) {
        let Some(controller) = &self.meta.controller else {
            return ("Pod".into(), self.meta.name.clone());
        };
        let hash = self.meta.labels.get("pod-template-hash");
        // The name that the Deployment controller gives its ReplicaSets (`getNewReplicaSet` in
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

    /// The label value that differs between revisions.
    pub fn revision(&self) -> Option<&str> {
        let labels = &self.meta.labels;
        labels.get("pod-template-hash").or_else(|| labels.get("controller-revision-hash"))
    }

    /// The time at which it started to wait, if it is known.
    pub fn waits_since(&self) -> Option<Timestamp> {
        let scheduled = self.scheduled_at.filter(|_| self.node.is_some());
        scheduled.or_else(|| self.meta.created())
    }
}

impl From<Resource<PodSpec, PodStatus>> for Pod {
    fn from(wire: Resource<PodSpec, PodStatus>) -> Self {
        let status = wire.status;
        let condition =
            |name: &str| status.conditions.iter().find(|condition| condition.kind == name);
        let is_true =
            |name: &str| condition(name).is_some_and(|condition| condition.status == "True");
        let scheduled = condition("PodScheduled");
        let template = wire.spec.template(Labels::default(), &[]);
        let named = template.claims().cloned();
        // `ephemeral.VolumeClaimName` in `component-helpers/storage/ephemeral`.
        let pod = &wire.metadata.name;
        let created = template
            .ephemeral
            .iter()
            .map(|ephemeral| format!("{pod}-{}", ephemeral.claim.metadata.name).into());
        let mut containers =
            status.init_container_statuses.iter().chain(&status.container_statuses);
        let mounted =
            is_true("PodReadyToStartContainers") || containers.clone().any(Container::has_volumes);
        let held_up = containers.find_map(Container::another_reason);
        Self {
            claims: named.chain(created).collect(),
            node: template.node_name.clone(),
            template,
            ready: is_true("Ready"),
            held_up: held_up.map(|waiting| waiting.reason.clone()),
            held_up_message: held_up.map(|waiting| waiting.message.clone()).unwrap_or_default(),
            mounted,
            unschedulable: scheduled
                .filter(|scheduled| scheduled.status == "False")
                .map(|scheduled| scheduled.message.clone()),
            scheduled_at: scheduled.and_then(|scheduled| scheduled.last_transition_time),
            phase: status.phase,
            meta: wire.metadata,
        }
    }
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
    #[serde(deserialize_with = "nullable")]
    message: String,
}

impl Container {
    /// The reason for which it waits, unless it is still being created.
    fn another_reason(&self) -> Option<&ContainerWaiting> {
        self.state.waiting.as_ref().filter(|waiting| {
            !matches!(waiting.reason.as_str(), "" | "ContainerCreating" | "PodInitializing")
        })
    }

    /// Whether the volumes are mounted, as the kubelet does before it starts the first container.
    fn has_volumes(&self) -> bool {
        self.state.running.is_some()
            || self.state.terminated.is_some()
            || self.another_reason().is_some()
    }
}
