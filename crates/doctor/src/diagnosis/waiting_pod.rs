//! Finding the pods that wait for a volume, and who has it.

use super::health::Examined;
use super::index::Index;
use engine::analysis::{AttachConstraint, UsedVolume};
use engine::analysis::{affinity, binding, volumes};
use engine::model::Text;
use engine::model::autoscaler::Autoscaler;
use engine::model::labels::Labels;
use engine::model::strategy::Strategy;
use engine::model::volume::VolumeSource;
use engine::model::workload::{Workload, WorkloadKind};
use engine::observed::{Pod, VolumeAttachment};
use engine::storage::Attach;

/// What the scheduler says of a pod whose ReadWriteOncePod claim is taken
/// (`ErrReasonReadWriteOncePodConflict` in `plugins/volumerestrictions`).
const TAKEN_BY_ANOTHER_POD: &str = "ReadWriteOncePod access mode already in-use";

/// What the scheduler says of a pod that must be beside others (`ErrReasonAffinityRulesNotMatch`
/// in `plugins/interpodaffinity/filtering.go`).
const NOT_BESIDE_ITS_LIKE: &str = "didn't match pod affinity rules";

/// What the attach-detach controller calls its Events (`pkg/kubelet/events/event.go`).
const ATTACH: &str = "FailedAttachVolume";

/// What kubelets call theirs, of file systems and of block devices.
const MOUNT: [&str; 2] = ["FailedMount", "FailedMapVolume"];

/// What a kubelet says of a claim that another pod of its node uses
/// (`GenerateMountVolumeFunc` in `pkg/volume/util/operationexecutor`).
const IN_USE_BY_ANOTHER_POD: &str = "ReadWriteOncePod access mode and is already in use";

/// How many seconds after its grace period a pod is overdue: what ends in time takes its
/// kubelet some of them, too.
const OVERDUE: i64 = 60;

/// A pod that waits for a volume.
pub(super) struct WaitingPod<'a> {
    pub(super) index: &'a Index<'a>,
    pub(super) pod: &'a Pod,
    pub(super) claim: &'a Text,
    pub(super) used: UsedVolume,
    /// The persistent volume's name.
    pub(super) volume: Option<Text>,
    pub(super) class: Option<Text>,
    /// What Kubernetes says of it.
    pub(super) said: Option<&'a str>,
    /// Other pods that have the volume.
    pub(super) holders: Vec<&'a Pod>,
    /// All attachments of the volume.
    pub(super) attachments: &'a [&'a VolumeAttachment],
    /// Whether the pod is not one that waits but one that cannot end, so that the one to
    /// come waits with it.
    stranded: bool,
}

impl<'a> WaitingPod<'a> {
    /// Every pod that waits for a volume, once for each.
    pub(super) fn all(index: &'a Index<'a>) -> Vec<Self> {
        let pods = index.facts.observed.pods.iter();
        pods.filter(|pod| pod.is_starting() || may_be_stranded(pod))
            .flat_map(|pod| pod.claims.iter().map(move |claim| (pod, claim)))
            .filter_map(|(pod, claim)| Self::of(index, pod, claim))
            .collect()
    }

    fn of(index: &'a Index<'a>, pod: &'a Pod, claim: &'a Text) -> Option<Self> {
        let namespace = &pod.meta.namespace;
        let objects = index.facts.objects;
        let found = objects.view.claim(namespace, claim).found();
        let volume = found.and_then(|found| {
            let named = Some(found.spec.volume_name.clone()).filter(|name| !name.is_empty());
            named.or_else(|| {
                let volume = objects.view.volume_of(&found.metadata)?;
                Some(volume.metadata.name.clone())
            })
        });
        let mut stuck = Self {
            index,
            pod,
            claim,
            used: volumes::of_claim(claim, namespace, objects),
            attachments: volume.as_deref().map_or(&[], |it| index.attachments(it)),
            class: found
                .and_then(|found| binding::class_of(found, objects).ok())
                .map(|class| class.metadata.name.clone())
                .or_else(|| found.and_then(|found| found.class().map(Text::from))),
            volume,
            said: None,
            holders: Vec::new(),
            stranded: pod.is_ending(),
        };
        stuck.holders = stuck.users().filter(|other| stuck.is_with(other)).collect();
        stuck.said = stuck.says();
        let waits = match pod.node {
            _ if stuck.stranded => stuck.is_stranded(),
            Some(_) => stuck.waits_for_attachment(),
            None => stuck.waits_for_a_node(),
        };
        waits.then_some(stuck)
    }

    /// Other pods that use the claim, those on a node only.
    pub(super) fn users(&self) -> impl Iterator<Item = &'a Pod> {
        let users = self.index.users(&self.pod.meta.namespace, self.claim);
        let own = &self.pod.meta.name;
        let users = users.iter().copied();
        users.filter(move |other| other.is_living() && other.meta.name != *own)
    }

    /// Whether a pod that uses the claim has the volume, and does not wait for it itself.
    fn is_with(&self, user: &Pod) -> bool {
        let mut attachments = self.attachments.iter();
        user.mounted
            || user.phase == "Running"
            || !self.is_attached()
            || attachments.any(|it| it.is_settled() && user.node.as_ref() == Some(&it.node))
    }

    /// What an Event or the scheduler says of the pod and this volume.
    fn says(&self) -> Option<&'a str> {
        if self.stranded {
            return Some("told to end; the next one is not created until it is gone");
        }
        if self.pod.node.is_none() {
            return self.pod.unschedulable.as_deref();
        }
        if self
            .own_attachment()
            .is_some_and(VolumeAttachment::is_settled)
        {
            return self.told(&MOUNT);
        }
        self.told(&[ATTACH]).or_else(|| {
            self.told(&MOUNT)
                .filter(|it| it.contains(IN_USE_BY_ANOTHER_POD))
        })
    }

    /// The latest Event of these reasons that names the volume.
    fn told(&self, reasons: &[&str]) -> Option<&'a str> {
        let named = self.volume.as_ref().map(|name| format!("\"{name}\""));
        let mut events = self.index.events(self.pod);
        let found = events.find(|event| {
            reasons.contains(&event.reason.as_str())
                && named
                    .as_ref()
                    .is_none_or(|named| event.message.contains(named))
        });
        found.map(|event| event.message.as_str())
    }

    /// What the kubelet says where the volume is attached to the pod's node and cannot be
    /// mounted there. Some drivers refuse a second node only then, Ceph's RBD for example.
    /// A claim for one pod that another one has is no fault of a driver.
    pub(super) fn mount_failed(&self) -> Option<&'a str> {
        let own = self.own_attachment()?;
        self.told(&MOUNT)
            .filter(|said| own.is_settled() && !said.contains(IN_USE_BY_ANOTHER_POD))
    }

    /// Whether a pod that is on a node waits until the volume is attached there, or until
    /// it can be mounted.
    fn waits_for_attachment(&self) -> bool {
        let own = self.own_attachment();
        if own.is_some_and(VolumeAttachment::is_settled) {
            return self.said.is_some() && self.used.attach_constraint != AttachConstraint::Free;
        }
        let refused = own.is_some_and(|it| it.attach_error.is_some());
        if refused || self.said.is_some() {
            return true;
        }
        // Of a volume of which too little is known it takes an Event to say that it is
        // refused: many nodes may have it.
        if self.used.attach_constraint == AttachConstraint::Free
            || self.is_unknown()
            || !self.is_attached()
        {
            return false;
        }
        let elsewhere = |holder: &&&Pod| holder.node != self.pod.node;
        self.foreign_attachments().next().is_some()
            || self.holders.iter().any(|holder| elsewhere(&holder))
            || own.is_some()
            || (self.is_csi() && self.index.facts.observed.has_read("volumeattachments"))
    }

    /// Whether a pod has no node because of the volume.
    fn waits_for_a_node(&self) -> bool {
        let says = |text: &str| self.said.is_some_and(|said| said.contains(text));
        match self.used.attach_constraint {
            AttachConstraint::SinglePod => says(TAKEN_BY_ANOTHER_POD),
            AttachConstraint::Exclusive { .. } | AttachConstraint::Unknown(_) => {
                (says(NOT_BESIDE_ITS_LIKE) && !self.holders.is_empty())
                    || self.may_be_first_of_its_like()
                    || (says(TAKEN_BY_ANOTHER_POD) && self.is_unknown())
            }
            AttachConstraint::Free | AttachConstraint::Driver(_) => false,
        }
    }

    /// Whether it keeps the volume on a node that does not answer, or longer than it may,
    /// and the next one is not made before it is gone.
    fn is_stranded(&self) -> bool {
        matches!(
            self.used.attach_constraint,
            AttachConstraint::Exclusive { .. } | AttachConstraint::SinglePod
        ) && self.is_attached()
            && self.is_succeeded_when_gone()
            && (self.lost_node().is_some() || self.overdue(self.pod).is_some())
    }

    /// The pod that should be gone long since, and has the volume: the one that cannot end,
    /// or another. For how many seconds, too.
    pub(super) fn overdue_pod(&self) -> Option<(&'a Pod, i64)> {
        let own = self.stranded.then_some(self.pod);
        // Only of a volume for a single pod are those of its own node in the way.
        let is_in_the_way = |pod: &&Pod| {
            self.used.attach_constraint == AttachConstraint::SinglePod || pod.node != self.pod.node
        };
        let holders = self.holders.iter().copied().filter(is_in_the_way);
        let mut pods = own.into_iter().chain(holders);
        pods.find_map(|pod| Some((pod, self.overdue(pod)?)))
    }

    /// For how many seconds the pod should have been gone.
    fn overdue(&self, pod: &Pod) -> Option<i64> {
        let due = pod.meta.deleted?;
        let late = self.index.facts.now.as_second() - due.as_second();
        (late > OVERDUE).then_some(late)
    }

    /// Whether the next pod is made only when this one is gone: a StatefulSet has no two
    /// pods of one name, and a Deployment that is recreated has no new pod beside an old
    /// one. What takes the place of a pod that is evicted is made at once.
    fn is_succeeded_when_gone(&self) -> bool {
        let of_its_workload = |other: &&Pod| {
            other.meta.name != self.pod.meta.name
                && !other.is_ending()
                && other.workload() == self.pod.workload()
        };
        let namespace = &self.pod.meta.namespace;
        let users = self.index.users(namespace, self.claim);
        if users.iter().any(of_its_workload) {
            return false;
        }
        match self.workload() {
            Some(workload) if workload.kind == WorkloadKind::Deployment => {
                workload.has_pods() && matches!(workload.strategy, Strategy::Recreate { .. })
            }
            _ => self.pod.workload().0 == WorkloadKind::StatefulSet.name(),
        }
    }

    fn is_unknown(&self) -> bool {
        matches!(self.used.attach_constraint, AttachConstraint::Unknown(_))
    }

    /// Whether it must be beside pods like it of which none has the volume any more, and may
    /// be the first of them anywhere.
    pub(super) fn may_be_first_of_its_like(&self) -> bool {
        let facts = self.index.facts.objects;
        let is_beside_itself = |workload: &Workload| {
            let terms = &workload.template.affinity;
            let mut terms = terms.iter();
            workload.kind != WorkloadKind::Pod
                && terms.all(|term| affinity::matches_itself(term, workload, facts))
        };
        self.holders.is_empty()
            && self.pod.node.is_none()
            && (self.said).is_some_and(|said| said.contains(NOT_BESIDE_ITS_LIKE))
            && self.workload().is_some_and(is_beside_itself)
    }

    /// Whether the driver attaches its volumes; a single-pod volume may be of one that
    /// does not.
    fn is_attached(&self) -> bool {
        let objects = self.index.facts.objects;
        let attach = objects
            .catalog
            .attach(&self.used.driver, |driver| objects.view.csi_driver(driver));
        !matches!(attach, Attach::NotRequired { .. })
    }

    fn is_csi(&self) -> bool {
        let volume = self.volume.as_deref();
        let found = volume.and_then(|name| self.index.facts.objects.view.volume(name).found());
        found.is_some_and(|volume| matches!(volume.spec.source, VolumeSource::Csi(_)))
    }

    /// What sentences call the driver.
    pub(super) fn driver(&self) -> &str {
        match self.used.driver.as_str() {
            "" => "the driver",
            driver => driver,
        }
    }

    /// Whether it is the pod that cannot end, and not one that waits.
    pub(super) const fn cannot_end(&self) -> bool {
        self.stranded
    }

    /// The attachment to the pod's own node.
    pub(super) fn own_attachment(&self) -> Option<&'a VolumeAttachment> {
        let mut attachments = self.attachments.iter().copied();
        attachments.find(|it| self.pod.node.as_ref() == Some(&it.node))
    }

    /// The attachments to other nodes.
    pub(super) fn foreign_attachments(&self) -> impl Iterator<Item = &'a VolumeAttachment> {
        let own = self.pod.node.clone();
        self.attachments
            .iter()
            .copied()
            .filter(move |it| own.as_ref() != Some(&it.node))
    }

    /// The other pods that use the claim and were not told to end.
    pub(super) fn staying(&self) -> impl Iterator<Item = &'a Pod> {
        let holders = self.holders.iter().copied();
        holders.filter(|holder| !holder.is_ending())
    }

    /// Those of them that are of the same workload.
    pub(super) fn siblings(&self) -> impl Iterator<Item = &'a Pod> {
        let own = self.pod.workload();
        self.staying().filter(move |other| other.workload() == own)
    }

    /// The names of the nodes that have the volume, or pods that use it, each once.
    pub(super) fn holding_nodes(&self) -> Vec<Text> {
        let attached = self.foreign_attachments().map(|it| it.node.clone());
        let mut nodes: Vec<Text> = attached.collect();
        let apart = self.holders.iter().filter(|it| it.node != self.pod.node);
        nodes.extend(apart.filter_map(|it| it.node.clone()));
        nodes.extend(self.pod.node.clone().filter(|_| self.stranded));
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The first of them that does not answer.
    pub(super) fn lost_node(&self) -> Option<Examined> {
        let nodes = self.holding_nodes().into_iter();
        nodes
            .map(|name| Examined::of(self.index, &name))
            .find(|node| node.health.is_lost())
    }

    /// The workload that made the pod.
    pub(super) fn workload(&self) -> Option<&'a Workload> {
        self.workload_of(self.pod)
    }

    /// The workload that made a pod of the same namespace.
    pub(super) fn workload_of(&self, pod: &Pod) -> Option<&'a Workload> {
        let (kind, name) = pod.workload();
        let kind = WorkloadKind::from_name(&kind)?;
        let view = self.index.facts.objects.view;
        view.workload(kind, &pod.meta.namespace, &name).found()
    }

    /// The autoscaler that may give the pod's workload more than one pod.
    pub(super) fn autoscaler(&self) -> Option<&'a Autoscaler> {
        let workload = self.workload()?;
        let metadata = &workload.metadata;
        let view = self.index.facts.objects.view;
        view.autoscalers_of(workload.kind, &metadata.namespace, &metadata.name)
            .into_iter()
            .find(|autoscaler| autoscaler.most(workload.replicas) > 1)
    }

    /// What the commands call the workload that made `pod`: `deployment/web`.
    pub(super) fn target_of(pod: &Pod) -> String {
        let (kind, name) = pod.workload();
        format!("{}/{name}", kind.to_lowercase())
    }

    /// The labels of a pod that its workload gives every pod.
    pub(super) fn common_labels(&self, pod: &Pod) -> Labels {
        self.workload_of(pod)
            .map(|workload| workload.template.labels.clone())
            .unwrap_or_default()
    }

    /// A kubectl command about the pod's namespace.
    pub(super) fn in_namespace(&self, arguments: &[&str]) -> String {
        let namespace = ["-n", self.pod.meta.namespace.as_str()];
        self.kubectl(&[&namespace, arguments].concat())
    }

    /// A kubectl command.
    pub(super) fn kubectl(&self, arguments: &[&str]) -> String {
        super::command::line(self.index.facts.kubectl, arguments)
    }
}

/// Whether the pod may be one that cannot end while its successor waits to be made.
fn may_be_stranded(pod: &Pod) -> bool {
    pod.is_ending() && pod.is_living()
}
