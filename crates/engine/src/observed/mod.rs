//! The state of a cluster at one moment: pods, Events, VolumeAttachments and the health of nodes.
//! Diagnoses use it. It is not in a [`Snapshot`](crate::snapshot::Snapshot), as no verdict on a
//! manifest depends on it.

mod pod;

pub use pod::Pod;

pub use crate::model::volume_attachment::VolumeAttachment;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::Deserializer;

use crate::model::Text;
use crate::model::de::nullable;
use crate::model::lease::Lease;
use crate::model::metadata::{Metadata, time};
use crate::model::node::{NodeStatus, Taint};
use crate::model::uid::Uid;

/// The state of a cluster at one moment.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The pods.
    pub pods: Vec<Pod>,
    /// The Events about volumes that could not be attached or mounted, and about claims.
    pub events: Vec<Event>,
    /// The disks of the persistent volumes in the storage back end.
    pub disks: Vec<Disk>,
    /// The attachments of volumes to nodes.
    pub attachments: Vec<VolumeAttachment>,
    /// The nodes.
    pub nodes: Vec<NodeState>,
    /// The Leases that kubelets renew.
    pub leases: Vec<Lease>,
    /// The resources that could not be read.
    pub unread: Vec<Unread>,
}

/// A resource that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Its plural name, `volumeattachments` for example.
    pub resource: Text,
    /// The API server's reason, without a full stop.
    pub reason: String,
}

impl Observed {
    /// Whether a resource could be read.
    #[must_use]
    pub fn has_read(&self, resource: &str) -> bool {
        self.unread(resource).is_none()
    }

    /// The last message about a pod that has not started: the scheduler's if it has no node, or
    /// else that of an Event about its volumes.
    #[must_use]
    pub fn said_of<'a>(&'a self, pod: &'a Pod) -> Option<&'a str> {
        let event = || {
            let events = self.events.iter().filter(|event| event.is_about(pod));
            let last = events.max_by_key(|event| event.said_at())?;
            Some(last.message.as_str())
        };
        pod.unschedulable.as_deref().or_else(event)
    }

    /// Why a resource could not be read, if it could not.
    #[must_use]
    pub fn unread(&self, resource: &str) -> Option<&Unread> {
        self.unread.iter().find(|it| it.resource == resource)
    }
}

impl Unread {
    /// A sentence about a question without an answer, such as "which pods use the claim".
    #[must_use]
    pub fn leaves_open(&self, question: &str) -> String {
        let Self { resource, reason } = self;
        format!("It is not known {question}, because the {resource} could not be read: {reason}.")
    }
}

/// The kind of claims in Events.
const CLAIM: &str = "PersistentVolumeClaim";

/// An Event about a pod or a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event {
    metadata: Metadata,
    /// The pod or claim it is about.
    pub involved_object: Involved,
    /// `Normal` or `Warning`.
    #[serde(rename = "type", deserialize_with = "nullable")]
    kind: Text,
    /// `FailedAttachVolume` for example.
    #[serde(deserialize_with = "nullable")]
    pub reason: Text,
    /// The sentence.
    #[serde(deserialize_with = "nullable")]
    pub message: String,
    #[serde(deserialize_with = "time")]
    last_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "time")]
    event_time: Option<Timestamp>,
    #[serde(deserialize_with = "nullable")]
    series: Series,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Series {
    #[serde(deserialize_with = "time")]
    last_observed_time: Option<Timestamp>,
}

impl Event {
    /// Whether it is about this pod, not about an earlier one with the same name.
    #[must_use]
    pub fn is_about(&self, pod: &Pod) -> bool {
        let about = &self.involved_object;
        about.kind != CLAIM
            && about.name == pod.meta.name
            && about.namespace == pod.meta.namespace
            && !about.uid.contradicts(pod.meta.uid)
    }

    /// Whether it is about this claim, not about an earlier one with the same name.
    #[must_use]
    pub fn is_about_claim(&self, claim: &Metadata) -> bool {
        let about = &self.involved_object;
        about.kind == CLAIM
            && about.name == claim.name
            && about.namespace == claim.namespace
            && !about.uid.contradicts(claim.uid)
    }

    /// Whether it reports a fault, not progress.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        self.kind == "Warning"
    }

    /// When it last occurred. The field depends on the component that recorded it.
    #[must_use]
    pub fn said_at(&self) -> Option<Timestamp> {
        let times = [
            self.series.last_observed_time,
            self.last_timestamp,
            self.event_time,
            self.metadata.created(),
        ];
        times.into_iter().flatten().max()
    }
}

/// The object that an Event is about.
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
    /// Its uid.
    #[serde(deserialize_with = "nullable")]
    pub uid: Uid,
}

/// The disk of a persistent volume of a CSI driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// The persistent volume's name.
    pub volume: Text,
    /// The driver.
    pub driver: Text,
    /// The driver's name for the disk; empty if the volume is of no CSI driver.
    pub handle: Text,
}

impl<'de> Deserialize<'de> for Disk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Wire {
            metadata: Metadata,
            #[serde(deserialize_with = "nullable")]
            spec: Spec,
        }

        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Spec {
            #[serde(deserialize_with = "nullable")]
            csi: Csi,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Csi {
            #[serde(deserialize_with = "nullable")]
            driver: Text,
            #[serde(deserialize_with = "nullable")]
            volume_handle: Text,
        }

        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            volume: wire.metadata.name,
            driver: wire.spec.csi.driver,
            handle: wire.spec.csi.volume_handle,
        })
    }
}

/// The health of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeState {
    /// Its name.
    pub name: Text,
    /// Its condition Ready; `None` if that is missing or `Unknown`.
    pub ready: Option<bool>,
    /// All its taints.
    pub taints: Vec<Taint>,
    /// Whether it accepts no new pods.
    pub cordoned: bool,
}

impl<'de> Deserialize<'de> for NodeState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Wire {
            metadata: Metadata,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_about_one_pod_or_one_claim() {
        let event = |kind: &str| {
            let event = json!({"type": "Warning", "involvedObject":
                {"kind": kind, "namespace": "shop", "name": "data"}});
            serde_json::from_value::<Event>(event).unwrap()
        };
        let metadata = json!({"namespace": "shop", "name": "data"});
        let claim: Metadata = serde_json::from_value(metadata.clone()).unwrap();
        let pod: Pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let of_claim = event("PersistentVolumeClaim");
        assert!(of_claim.is_about_claim(&claim) && !of_claim.is_about(&pod));
        assert!(of_claim.is_warning());
        let of_pod = event("Pod");
        assert!(of_pod.is_about(&pod) && !of_pod.is_about_claim(&claim));
    }

    #[test]
    fn disks_are_known_by_driver_and_handle() {
        let volume = json!({"metadata": {"name": "pv"},
            "spec": {"csi": {"driver": "d", "volumeHandle": "h"}}});
        let expected = Disk {
            volume: "pv".into(),
            driver: "d".into(),
            handle: "h".into(),
        };
        assert_eq!(serde_json::from_value::<Disk>(volume).unwrap(), expected);
        let volume = json!({"metadata": {"name": "pv"}, "spec": {"nfs": {}}});
        let found = serde_json::from_value::<Disk>(volume).unwrap();
        assert_eq!(found.handle, "");
    }
}
