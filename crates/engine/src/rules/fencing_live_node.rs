//! A node that is alive is about to lose its volumes to another one.
//!
//! # Fires on
//!
//! - an update that puts the taint `node.kubernetes.io/out-of-service` on a Node,
//! - the deletion of a Node,
//! - the deletion of a VolumeAttachment whose volume is attached,
//!
//! while volumes are attached to the node and it is alive: its Lease in `kube-node-lease` still
//! holds (40 s after its last renewal by default) or its `Ready` condition is `True`. The outcome
//! is `data-loss`. If neither is known, because the Lease cannot be read or its clock differs, the
//! outcome is `unknown`, which warns.
//!
//! The webhook sees these requests only with the component `fencing` of the kustomizations, or
//! `fencing.enabled` of the chart.
//!
//! # Why
//!
//! The attach-detach controller detaches a mounted volume if its node has that taint, or after its
//! Node object is gone. Until Kubernetes 1.37 it waits six minutes in that case. Since 1.38 it waits
//! only until the pods are deleted, about a minute: a live Node that was deleted by mistake loses its
//! volumes before anybody notices. Without a VolumeAttachment the CSI driver detaches at once
//! (`pkg/controller/volume/attachdetach`, `pkg/controller/podgc`). Kubernetes trusts the
//! administrator that the machine is off. If the machine is on, its pods go on writing while their
//! replacements write to the same disk from another node. A file system for one node does not
//! survive that.
//!
//! # Example
//!
//! ```sh
//! # The kubelet of n1 still renews its Lease.
//! kubectl taint node n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
//! kubectl delete node n1
//! kubectl delete volumeattachment csi-0c4a…
//! ```
//!
//! # What to do
//!
//! Make sure that the machine is off: by its power state at the cloud provider or its management
//! controller, not by its status in Kubernetes. A minute after its last sign of life the same
//! request passes.
//!
//! To take a live node out of service, drain it with
//! `kubectl drain NODE --ignore-daemonsets --delete-emptydir-data`: its volumes are unmounted, then
//! detached, and then the Node can be deleted. To get a volume off it, delete the pod that uses it.
//!
//! If you know better, say so on the Node or the VolumeAttachment that you change, for as long as
//! it takes. The guard refuses the reason below: write how you know it in its place.
//!
//! ```sh
//! kubectl annotate node n1 multi-attach-guard.dev/ignore=fencing-live-node \
//!   multi-attach-guard.dev/until=TIME multi-attach-guard.dev/reason="how you know"
//! ```
//!
//! # Claims
//!
//! * Named by the pod template: not read.
//! * A StatefulSet's own: not read.
//!
//! # Silent on
//!
//! Nodes without attached volumes, as after a drain, and nodes that have been silent for longer
//! than their Lease holds. Nodes whose controller drains them before they are gone (the finalizer
//! `karpenter.sh/termination`). Attachments of ReadWriteMany or ReadOnlyMany volumes. Objects that
//! are being deleted already. The attach-detach controller, and accounts under `fencing.accounts`
//! of the policy.

use super::{Fencing, FencingReview, Hazard, On, Outcome, Rule, messages};
use crate::analysis::{Heartbeat, Life};
use crate::model::Text;
use crate::model::node::{CSI, Node, OUT_OF_SERVICE};
use crate::model::volume_attachment::VolumeAttachment;
use crate::snapshot::{Lookup, View};

pub(super) const RULE: Rule = Rule {
    code: "fencing-live-node",
    at_fault: "the node is alive and may still write",
    on: &[On::Fencing(judge)],
};

fn judge(review: &FencingReview<'_>, found: &mut Vec<Hazard>) {
    let view = review.facts.view;
    let (node, name, volumes) = match review.fencing {
        // The API server's own copy is at least as new as any cache.
        Fencing::Taint(node) | Fencing::DeleteNode(node) => {
            (Lookup::Found(node), &node.metadata.name, attached_to(node))
        }
        Fencing::DeleteAttachment(attachment) => {
            (view.node(&attachment.node), &attachment.node, of_attachment(attachment, view))
        }
    };
    if volumes.is_empty() {
        return;
    }
    // The Lease takes a live lookup, so it is read only if volumes are at stake.
    let ready = node.map(|node| node.status.ready);
    let heartbeat = Heartbeat::seen(ready, view.node_lease(name), review.now);
    let (number, are) = match volumes.len() {
        1 => ("1 volume".to_owned(), "is"),
        more => (format!("{more} volumes"), "are"),
    };
    let (outcome, signs, brief) = match heartbeat.life() {
        Life::Silent => return,
        Life::Alive => (
            Outcome::DataLoss,
            format!("is alive ({heartbeat})"),
            format!("node {name} is alive and has {number} attached: two writers damage data"),
        ),
        Life::Unknown => (
            Outcome::Unknown,
            format!("may be alive, and there is no way to tell ({heartbeat})"),
            format!("it is not known whether node {name} is off; {number} {are} attached to it"),
        ),
    };
    let named = messages::some(volumes.iter().map(|volume| format!("\"{volume}\"")).collect());
    let seen = format!("it {signs}, and {number} {are} attached to it: {named}.");
    let drain = format!(
        "To take a machine that is on out of service, drain it: `kubectl drain {name} \
         --ignore-daemonsets --delete-emptydir-data`; a node without attached volumes can be \
         deleted."
    );
    let (field, what, instead) = match review.fencing {
        Fencing::Taint(_) => (
            "spec.taints",
            format!(
                "{seen} The taint {OUT_OF_SERVICE} says that the machine is off, so the volumes are \
                 detached even while pods on it write to them, and attached to other nodes."
            ),
            &*drain,
        ),
        Fencing::DeleteNode(_) => (
            "metadata.name",
            format!(
                "{seen} Without the Node object its pods are replaced and its volumes attached to \
                 other nodes, while the pods on the machine go on writing."
            ),
            &*drain,
        ),
        Fencing::DeleteAttachment(_) => (
            "metadata.name",
            format!(
                "node \"{name}\" {signs}, and volume {named} is attached to it. Without this object \
                 the volume is detached even while a pod writes to it, and attached to another node."
            ),
            "To get the volume off a machine that is on, delete the pod that uses it: once it is \
             unmounted, Kubernetes removes the VolumeAttachment itself.",
        ),
    };
    found.push(Hazard {
        field_path: field.to_owned(),
        excess: i64::try_from(volumes.len()).unwrap_or(i64::MAX),
        what: format!("{what} Two nodes that write to one volume damage its data."),
        advice: format!(
            "First make sure that the machine is off (by its power state at the cloud provider or \
             its management controller). Kubernetes knows only its last sign of life \
             (`kubectl get lease -n kube-node-lease {name} -o yaml`), and once that is too old this \
             passes. {instead}"
        ),
        brief,
        volumes,
        ..RULE.hazard(outcome)
    });
}

/// The volumes attached to a node, by names that a reader can use.
fn attached_to(node: &Node) -> Vec<Text> {
    node.status
        .volumes_attached
        .iter()
        .map(|volume| volume.name.strip_prefix(CSI).unwrap_or(&volume.name).into())
        .collect()
}

/// The volume of an attachment, unless it is not attached or nodes may share it.
fn of_attachment(attachment: &VolumeAttachment, view: View<'_>) -> Vec<Text> {
    if !attachment.attached {
        return Vec::new();
    }
    let name = &attachment.volume;
    if name.is_empty() {
        return vec![attachment.metadata.name.clone()];
    }
    match view.volume(name) {
        Lookup::Found(volume) if volume.spec.access_modes.is_shared() => Vec::new(),
        _ => vec![name.clone()],
    }
}
