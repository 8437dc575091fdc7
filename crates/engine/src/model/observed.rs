//! The state of a cluster at one moment: pods, Events, VolumeAttachments and the health of nodes.
//! Diagnoses use it. It is not in a [`Snapshot`](crate::snapshot::Snapshot), as no verdict on a
//! manifest depends on it.

use super::Text;
use super::event::Event;
use super::lease::Lease;
use super::live_pod::Pod;
use super::node::NodeState;
use super::volume_attachment::VolumeAttachment;
use super::workload::Workload;

/// The state of a cluster at one moment.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The pods.
    pub pods: Vec<Pod>,
    /// The Events about volumes that could not be attached or mounted, and about claims.
    pub events: Vec<Event>,
    /// The attachments of volumes to nodes.
    pub attachments: Vec<VolumeAttachment>,
    /// The nodes.
    pub nodes: Vec<NodeState>,
    /// The Leases that kubelets renew.
    pub leases: Vec<Lease>,
    /// The ReplicaSets, with those that have no pods any more: the revisions of Deployments.
    pub replica_sets: Vec<Workload>,
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
    pub fn has_read(&self, resource: &str) -> bool {
        self.unread.iter().all(|unread| unread.resource != resource)
    }

    /// The last message about a pod that has not started: the scheduler's if it has no node, or
    /// else that of an Event about its volumes.
    pub fn said_of<'a>(&'a self, pod: &'a Pod) -> Option<&'a str> {
        let event = || {
            self.events
                .iter()
                .filter(|event| event.is_about(pod))
                .max_by_key(|event| event.said_at())
                .map(|last| last.message.as_str())
        };
        pod.unschedulable.as_deref().or_else(event)
    }
}

impl Unread {
    /// A sentence about a question without an answer, such as "which pods use the claim".
    pub fn leaves_open(&self, question: &str) -> String {
        let Self { resource, reason } = self;
        format!("It is not known {question}, because the {resource} could not be read: {reason}.")
    }
}
