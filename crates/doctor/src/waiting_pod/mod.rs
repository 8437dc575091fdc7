//! Finds the pods that wait for a volume, and the pods that have it.

mod waits;

use std::collections::BTreeSet;

use serde_json::Value;

use super::cause::{Documents, kind_of};
use super::health::{Examined, Health};
use super::index::Index;
use super::messages::Statement;
use engine::analysis::{AttachConstraint, UsedVolume, affinity, binding, volumes};
use engine::model::Text;
use engine::model::autoscaler::Autoscaler;
use engine::model::claim::{Claim, ClaimPhase};
use engine::model::event::Event;
use engine::model::live_pod::Pod;
use engine::model::object::ObjectRef;
use engine::model::storage_class::StorageClass;
use engine::model::volume::Volume;
use engine::model::volume_attachment::VolumeAttachment;
use engine::model::workload::{Workload, WorkloadKind};
use engine::snapshot::View;
use engine::storage::Attach;

/// The reason in Events of the attach-detach controller (`pkg/kubelet/events/event.go`).
const ATTACH: &str = "FailedAttachVolume";

/// The reasons in Events of kubelets, for file systems and for block devices.
const MOUNT: [&str; 2] = ["FailedMount", "FailedMapVolume"];

/// The number of seconds after its grace period from which a pod is overdue: even for a pod that
/// ends in time, its kubelet needs a few.
const OVERDUE: i64 = 60;

/// A pod that waits for a volume, or one that is terminating and cannot end, so that its successor
/// waits.
pub(super) struct WaitingPod<'a> {
    pub(super) index: &'a Index<'a>,
    pub(super) pod: &'a Pod,
    pub(super) claim: &'a Text,
    pub(super) used: UsedVolume,
    /// The persistent volume's name.
    pub(super) volume: Option<Text>,
    /// The message of Kubernetes about the wait.
    pub(super) said: Option<&'a str>,
    /// Other pods that have the volume and are in the way of this one.
    pub(super) holders: Vec<&'a Pod>,
    /// All attachments of the volume.
    attachments: &'a [&'a VolumeAttachment],
    /// Whether something shows that the pod waits for this volume.
    pub(super) is_certain: bool,
    /// The documents of the objects that the steps change, once they have been read.
    pub(super) documents: Option<&'a Documents>,
}

impl<'a> WaitingPod<'a> {
    /// Every pod that waits for a volume, once for each volume. If nothing shows which volume keeps
    /// a pod from starting, its first one stands for all.
    pub(super) fn all(index: &'a Index<'a>) -> Vec<Self> {
        index
            .facts
            .observed
            .pods
            .iter()
            // A pod that cannot end may keep its successor from being created.
            .filter(|pod| {
                pod.is_starting()
                    || (pod.is_ending() && pod.is_living())
                    || Statement::DeadMount.is_in(&pod.held_up_message)
            })
            .flat_map(|pod| Self::of_pod(index, pod))
            .collect()
    }

    fn of_pod(index: &'a Index<'a>, pod: &'a Pod) -> Vec<Self> {
        let (certain, others): (Vec<_>, Vec<_>) = pod
            .claims
            .iter()
            .map(|claim| Self::of(index, pod, claim))
            .partition(|waiting| waiting.is_certain);
        if certain.is_empty() && !pod.is_ending() {
            others.into_iter().take(1).collect()
        } else {
            certain
        }
    }

    fn of(index: &'a Index<'a>, pod: &'a Pod, claim: &'a Text) -> Self {
        let namespace = &pod.meta.namespace;
        let objects = index.facts.objects;
        let volume = objects.view.claim(namespace, claim).found().and_then(|found| {
            Some(found.spec.volume_name.clone())
                .filter(|name| !name.is_empty())
                .or_else(|| Some(objects.view.volume_of(&found.metadata)?.metadata.name.clone()))
        });
        let mut waiting = Self {
            index,
            pod,
            claim,
            used: volumes::of_claim(claim, namespace, objects),
            attachments: volume.as_deref().map_or(&[], |name| index.attachments(name)),
            volume,
            said: None,
            holders: Vec::new(),
            is_certain: false,
            documents: None,
        };
        waiting.said = waiting.says();
        if waiting.is_for_one_node() {
            waiting.holders = waiting.users().filter(|other| waiting.holds_volume(other)).collect();
        }
        waiting.is_certain = match pod.node {
            _ if waiting.pod.is_ending() => waiting.is_stranded(),
            _ if waiting.has_no_volume() => waiting.waits_for_its_claim(),
            Some(_) => waiting.waits_for_attachment(),
            None => waiting.waits_for_a_node(),
        };
        waiting
    }

    /// Whether other nodes keep the volume from this one. If the volume is already attached here
    /// and no message reports a problem, they do not.
    fn is_for_one_node(&self) -> bool {
        let is_here = self.is_attached_to_its_node() && self.said.is_none();
        match self.used.attach_constraint {
            AttachConstraint::SinglePod => true,
            AttachConstraint::Exclusive { .. } => !is_here || self.pod.is_ending(),
            AttachConstraint::Free | AttachConstraint::Driver(_) => {
                self.mislabelled().is_some() || self.refuses_second_mount()
            }
            AttachConstraint::Unknown(_) => self.said.is_some() || self.refusal().is_some(),
        }
    }

    /// The other pods that use the claim and have a node.
    pub(super) fn users(&self) -> impl Iterator<Item = &'a Pod> {
        let own = &self.pod.meta.name;
        self.index
            .users(&self.pod.meta.namespace, self.claim)
            .iter()
            .copied()
            .filter(move |other| other.is_living() && other.meta.name != *own)
    }

    /// Whether a pod that uses the claim has the volume, rather than waiting for it itself.
    fn holds_volume(&self, user: &Pod) -> bool {
        user.mounted
            || user.phase == "Running"
            || !self.is_attached()
            || self.attachments.iter().any(|attachment| {
                attachment.is_settled() && user.node.as_ref() == Some(&attachment.node)
            })
    }

    /// The message of an Event or of the scheduler about the pod and this volume.
    fn says(&self) -> Option<&'a str> {
        if self.pod.is_ending() {
            return Some("terminating; the next one is not created until it is gone");
        }
        if self.pod.node.is_none() {
            return self.pod.unschedulable.as_deref();
        }
        if let Some(said) = self.dead_mount() {
            return Some(said);
        }
        if self.is_attached_to_its_node() {
            return self.event(&MOUNT);
        }
        self.event(&[ATTACH]).or_else(|| {
            self.event(&MOUNT).filter(|said| {
                Statement::InUseByAnotherPod.is_in(said)
                    || !self.is_attached()
                    || self.volume.is_none()
            })
        })
    }

    /// Whether Kubernetes makes this statement about the pod and this volume.
    pub(super) fn is_said(&self, statement: Statement) -> bool {
        self.said.is_some_and(|said| statement.is_in(said))
    }

    /// The message of Kubernetes about the pod, even if it is not about this volume.
    pub(super) fn words(&self) -> Option<&'a str> {
        let of_claim = || Some(self.claim_warning()?.message.as_str());
        self.said.or_else(of_claim).or_else(|| {
            self.index
                .events(self.pod)
                .next()
                .map(|event| event.message.as_str())
                .filter(|_| !self.is_certain)
        })
    }

    /// The pod that owns the claim of its generic ephemeral volume: the claim is deleted together
    /// with the pod.
    pub(super) fn owner_pod(&self) -> Option<&'a str> {
        let owner = self.found_claim()?.metadata.controller.as_deref()?;
        (owner.kind == "Pod").then_some(owner.name.as_str())
    }

    /// The latest Event with one of these reasons that names the volume; any, if the volume is not
    /// known.
    fn event(&self, reasons: &[&str]) -> Option<&'a str> {
        let named = self.volume.as_ref().map(|name| format!("\"{name}\""));
        self.index
            .events(self.pod)
            .find(|event| {
                reasons.contains(&event.reason.as_str())
                    && named.as_ref().is_none_or(|named| event.message.contains(named))
            })
            .map(|event| event.message.as_str())
    }

    /// The kubelet's message if the volume could be mounted on the pod's node but the mount fails.
    /// Some drivers, such as Ceph's RBD, refuse a second node only at this point. A
    /// ReadWriteOncePod claim that another pod uses is not an error of the driver.
    pub(super) fn mount_failed(&self) -> Option<&'a str> {
        let may_mount = self.is_attached_to_its_node() || !self.is_attached();
        self.event(&MOUNT).filter(|said| may_mount && !Statement::InUseByAnotherPod.is_in(said))
    }

    /// The kubelet's message if a mount of the volume on the pod's node is dead.
    pub(super) fn dead_mount(&self) -> Option<&'a str> {
        let folder = self.volume.as_ref().map(|name| format!("/{name}/"));
        let is_named = |said: &&str| {
            self.pod.claims.len() == 1 || folder.as_ref().is_some_and(|name| said.contains(name))
        };
        Some(self.pod.held_up_message.as_str())
            .filter(is_named)
            .into_iter()
            .chain(self.event(&MOUNT))
            .find(|said| Statement::DeadMount.is_in(said))
    }

    /// The driver's message if it refuses to attach the volume to the pod's node.
    pub(super) fn refusal(&self) -> Option<&'a str> {
        self.own_attachment().and_then(|attachment| attachment.attach_error.as_deref())
    }

    /// Another attachment that has the volume, if the driver refuses a second one although the
    /// volume's access modes promise it.
    pub(super) fn mislabelled(&self) -> Option<&'a VolumeAttachment> {
        let refused = self.refusal().or(self.said)?;
        let is_promised = matches!(
            self.used.attach_constraint,
            AttachConstraint::Free | AttachConstraint::Driver(_)
        );
        self.other_attachments().find(|attachment| {
            is_promised && attachment.is_settled() && Statement::AttachedElsewhere.is_in(refused)
        })
    }

    /// Whether the driver refuses to mount the volume twice on one node.
    pub(super) fn refuses_second_mount(&self) -> bool {
        self.pod.node.is_some() && self.is_said(Statement::MountedAlready)
    }

    /// The object as the API server returned it, if it was read.
    pub(super) fn document(&self, object: &ObjectRef) -> Option<&'a Value> {
        self.documents?.get(object)
    }

    /// The objects of the cluster.
    pub(super) fn view(&self) -> View<'a> {
        self.index.facts.objects.view
    }

    /// The claim, if it can be seen.
    pub(super) fn found_claim(&self) -> Option<&'a Claim> {
        let namespace = &self.pod.meta.namespace;
        self.view().claim(namespace, self.claim).found()
    }

    /// The volume, if it can be seen.
    pub(super) fn found_volume(&self) -> Option<&'a Volume> {
        self.view().volume(self.volume.as_deref()?).found()
    }

    /// The class of the claim, if both can be seen.
    pub(super) fn storage_class(&self) -> Option<&'a StorageClass> {
        binding::class_of(self.found_claim()?, self.index.facts.objects).ok()
    }

    /// The name of the class, if it is known.
    pub(super) fn class(&self) -> Option<&'a str> {
        self.storage_class()
            .map(|class| class.metadata.name.as_str())
            .or_else(|| self.found_claim()?.class())
    }

    /// The volume that the claim requests by name, if that volume belongs to another claim or to an
    /// earlier claim of the same name.
    pub(super) fn volume_of_another_claim(&self) -> Option<&'a Volume> {
        let claim = self.found_claim()?;
        let volume = self.found_volume()?;
        let owner = volume.spec.claim_ref.as_ref()?;
        let is_own = owner.namespace == claim.metadata.namespace
            && owner.name == claim.metadata.name
            && !owner.uid.contradicts(claim.metadata.uid);
        let is_unbound =
            claim.status.access_modes.is_empty() || claim.status.phase == ClaimPhase::Lost;
        (is_unbound && !is_own).then_some(volume)
    }

    /// The volume that the claim requests by name, or that is reserved for the claim, if the claim
    /// is not bound to it.
    pub(super) fn unbound_volume(&self) -> Option<&'a Volume> {
        let claim = self.found_claim()?;
        self.found_volume().filter(|_| claim.status.phase != ClaimPhase::Other)
    }

    /// Whether the claim gets its volume only once the scheduler has chosen a node for the pod.
    pub(super) fn binds_late(&self) -> bool {
        self.storage_class().is_some_and(StorageClass::binds_late)
    }

    /// The latest warning among the Events about the claim.
    pub(super) fn claim_warning(&self) -> Option<&'a Event> {
        self.claim_event(Event::is_warning)
    }

    /// The latest Event about the claim that `is_meant` accepts.
    pub(super) fn claim_event(&self, is_meant: impl Fn(&Event) -> bool) -> Option<&'a Event> {
        let claim = self.found_claim()?;
        self.index
            .events_of(&claim.metadata)
            .find(|event| event.is_about_claim(&claim.metadata) && is_meant(event))
    }

    /// The first pod that has the volume and is overdue, and for how many seconds: the pod that
    /// cannot end, or another one.
    pub(super) fn overdue_pod(&self) -> Option<(&'a Pod, i64)> {
        let own = self.pod.is_ending().then_some(self.pod);
        // Pods on the waiting pod's own node are in the way only of a volume for a single pod.
        let is_in_the_way = |pod: &&Pod| {
            self.used.attach_constraint == AttachConstraint::SinglePod || pod.node != self.pod.node
        };
        own.into_iter()
            .chain(self.holders.iter().copied().filter(is_in_the_way))
            .find_map(|pod| Some((pod, self.overdue(pod)?)))
    }

    /// The number of seconds for which the pod has waited, if that is known.
    pub(super) fn waited(&self) -> Option<i64> {
        self.pod.waits_since().map(|since| self.index.since(since))
    }

    /// The number of seconds by which the pod is overdue, if it is.
    fn overdue(&self, pod: &Pod) -> Option<i64> {
        let late = pod.meta.deletion_timestamp.map(|due| self.index.since(due));
        late.filter(|late| *late > OVERDUE)
    }

    /// Whether its pod affinity selects pods like itself and no such pod has the volume any more:
    /// it may start on any node as the first of them.
    pub(super) fn may_be_first_of_its_like(&self) -> bool {
        self.users().next().is_none()
            && self.pod.node.is_none()
            && self.is_said(Statement::NoPodToFollow)
            && self.matches_itself()
    }

    /// Whether pods of the workload match the affinity of its template, so that the first of them
    /// may run on any node.
    pub(super) fn matches_itself(&self) -> bool {
        let facts = self.index.facts.objects;
        self.workload().is_some_and(|workload| {
            let mut terms = workload.template.affinity.iter();
            workload.kind != WorkloadKind::Pod
                && terms.all(|term| affinity::matches_itself(term, workload, facts))
        })
    }

    /// Whether the driver attaches its volumes. A single-pod volume may belong to a driver that
    /// does not.
    pub(super) fn is_attached(&self) -> bool {
        let attach = volumes::attach(&self.used.driver, self.index.facts.objects);
        !matches!(attach, Attach::NotRequired { .. })
    }

    /// Whether the volume has a VolumeAttachment that can be seen wherever it is attached.
    pub(super) fn has_known_attachments(&self) -> bool {
        self.found_volume().is_some_and(|volume| volume.csi_driver().is_some())
            && self.index.facts.observed.has_read("volumeattachments")
    }

    /// The attachment to the pod's own node.
    pub(super) fn own_attachment(&self) -> Option<&'a VolumeAttachment> {
        self.attachments
            .iter()
            .copied()
            .find(|attachment| self.pod.node.as_ref() == Some(&attachment.node))
    }

    /// Whether the volume is attached to the pod's own node and stays there.
    pub(super) fn is_attached_to_its_node(&self) -> bool {
        self.own_attachment().is_some_and(VolumeAttachment::is_settled)
    }

    /// The attachments to show: only that to the pod's node if several nodes can have the volume.
    pub(super) fn shown_attachments(&self) -> impl Iterator<Item = &'a VolumeAttachment> {
        self.own_attachment().into_iter().chain(self.foreign_attachments())
    }

    /// The attachments to other nodes, if they are in the way.
    pub(super) fn foreign_attachments(&self) -> impl Iterator<Item = &'a VolumeAttachment> {
        let is_exclusive = self.is_for_one_node();
        self.other_attachments().filter(move |_| is_exclusive)
    }

    fn other_attachments(&self) -> impl Iterator<Item = &'a VolumeAttachment> {
        let own = self.pod.node.as_ref();
        self.attachments.iter().copied().filter(move |attachment| own != Some(&attachment.node))
    }

    /// The other pods that have the volume and are not terminating.
    pub(super) fn staying(&self) -> impl Iterator<Item = &'a Pod> {
        self.holders.iter().copied().filter(|holder| !holder.is_ending())
    }

    /// Whether one of the staying pods is on the node.
    pub(super) fn stays_on(&self, node: &str) -> bool {
        self.staying().any(|pod| pod.node.as_deref() == Some(node))
    }

    /// The staying pods of the same workload.
    pub(super) fn siblings(&self) -> impl Iterator<Item = &'a Pod> {
        let own = self.pod.workload();
        self.staying().filter(move |other| other.workload() == own)
    }

    /// A staying pod of another workload.
    pub(super) fn other_workload(&self) -> Option<&'a Pod> {
        let own = self.pod.workload();
        self.staying().find(|other| other.workload() != own)
    }

    /// The names of the nodes that have the volume, each once. VolumeAttachments decide; if none is
    /// attached, the nodes of the holders count. A node does not have the volume while the driver
    /// has yet to attach it there.
    pub(super) fn holding_nodes(&self) -> BTreeSet<Text> {
        let mut nodes: BTreeSet<Text> =
            if self.attachments.iter().any(|attachment| attachment.attached) {
                self.foreign_attachments()
                    .filter(|attachment| attachment.attached)
                    .map(|attachment| attachment.node.clone())
                    .collect()
            } else {
                self.nodes_of_holders().collect()
            };
        nodes.extend(self.pod.node.clone().filter(|_| self.pod.is_ending()));
        nodes
    }

    fn nodes_of_holders(&self) -> impl Iterator<Item = Text> {
        self.holders
            .iter()
            .filter(|holder| holder.node != self.pod.node)
            .filter_map(|holder| holder.node.clone())
    }

    /// The names of the nodes to show, each once.
    pub(super) fn shown_nodes(&self) -> BTreeSet<Text> {
        self.shown_attachments()
            .map(|attachment| attachment.node.clone())
            .chain(self.nodes_of_holders())
            .chain(self.pod.node.clone())
            .collect()
    }

    /// The first of the holding nodes that `is_meant` accepts.
    pub(super) fn holding_node(&self, is_meant: impl Fn(&Examined) -> bool) -> Option<Examined> {
        self.holding_nodes().into_iter().map(|name| self.examined(&name)).find(is_meant)
    }

    /// The node with this name and its health.
    pub(super) fn examined(&self, node: &str) -> Examined {
        Examined::of(self.index, node)
    }

    /// The first of the holding nodes that does not answer or no longer exists.
    pub(super) fn lost_node(&self) -> Option<Examined> {
        self.holding_node(|node| matches!(node.health, Health::Lost | Health::Gone))
    }

    /// The workload that made the pod.
    pub(super) fn workload(&self) -> Option<&'a Workload> {
        self.workload_of(self.pod)
    }

    /// The workload that made a pod of the same namespace.
    pub(super) fn workload_of(&self, pod: &Pod) -> Option<&'a Workload> {
        let (_, name) = pod.workload();
        self.view().workload(kind_of(pod)?, &pod.meta.namespace, &name).found()
    }

    /// The ReplicaSets of a Deployment whose pods use the claim.
    pub(super) fn revisions_of(&self, deployment: &Workload) -> impl Iterator<Item = &'a Workload> {
        let own = &deployment.metadata;
        self.index.facts.observed.replica_sets.iter().filter(move |set| {
            set.metadata.namespace == own.namespace
                && set.template.claims().any(|claim| claim == self.claim)
                && set.metadata.controller.as_ref().is_some_and(|owner| {
                    owner.kind == WorkloadKind::Deployment.name() && owner.name == own.name
                })
        })
    }

    /// The autoscaler that may give the pod's workload more than one pod.
    pub(super) fn autoscaler(&self) -> Option<&'a Autoscaler> {
        let workload = self.workload()?;
        self.view()
            .autoscalers(workload)
            .into_iter()
            .find(|autoscaler| autoscaler.most(workload.replicas) > 1)
    }

    /// The workload that made `pod` as an argument for kubectl, such as `deployment/web`.
    pub(super) fn target_of(pod: &Pod) -> String {
        let (kind, name) = pod.workload();
        format!("{}/{name}", kind.to_lowercase())
    }
}
