//! The facts of one judgement: a snapshot, and an overlay with further facts.

use std::borrow::Cow;
use std::cmp::Reverse;

use hashbrown::{HashMap, HashSet};

use super::batch::Turn;
use super::key::{IndexKey, ObjectKey};
use super::lookup::Lookup;
use super::overlay::Overlay;
use super::store::Snapshot;
use super::stored::{StoredObject, Typed};
use super::work_budget::WorkBudget;
use crate::model::Text;
use crate::model::autoscaler::Autoscaler;
use crate::model::claim::Claim;
use crate::model::labels::Labels;
use crate::model::lease::{Lease, NODE_LEASES};
use crate::model::metadata::Metadata;
use crate::model::node::Node;
use crate::model::object::{Namespace, ObjectKind};
use crate::model::pod::PodVolumeSource;
use crate::model::runtime_class::RuntimeClass;
use crate::model::server_version::ServerVersion;
use crate::model::storage_class::{CsiDriver, CsiNode, StorageClass};
use crate::model::uid::Uid;
use crate::model::volume::Volume;
use crate::model::volume_attachment::VolumeAttachment;
use crate::model::workload::{Workload, WorkloadKind};

/// The only field that node selectors match, used as a hint's key.
const NODE_NAME: &str = "metadata.name";

/// Label pairs. Each wanted node has at least one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeHint<'a> {
    /// The label's key.
    pub key: &'a str,
    /// Its possible values.
    pub values: Cow<'a, [Text]>,
}

impl<'a> NodeHint<'a> {
    /// The hint of one label pair.
    pub(crate) fn one(key: &'a str, value: &str) -> Self {
        Self { key, values: Cow::Owned(vec![value.into()]) }
    }
}

/// The facts of one judgement: one version of a snapshot, and an overlay. A look-up takes a few
/// hashes, whatever the size of the cluster. Names match exactly.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    cluster: &'a Snapshot,
    overlay: &'a Overlay<'a>,
    /// `None` if the work is not limited.
    budget: Option<&'a WorkBudget>,
    /// The users of claims for which the judgement would otherwise ask again and again.
    users: Option<&'a UsersOfClaims<'a>>,
}

/// The workloads that use each claim of one workload.
#[derive(Debug, Default)]
pub(crate) struct UsersOfClaims<'a> {
    namespace: Text,
    by_claim: HashMap<Text, Vec<&'a Workload>>,
}

/// The most volumes of a workload for whose users a rule asks each time.
const FEW_VOLUMES: usize = 8;

impl Snapshot {
    /// The facts of this cluster alone.
    pub const fn view(&self) -> View<'_> {
        View::new(self, &Overlay::NOTHING)
    }
}

impl<'a> View<'a> {
    /// The facts of `cluster` with `overlay`.
    pub const fn new(cluster: &'a Snapshot, overlay: &'a Overlay<'a>) -> Self {
        Self { cluster, overlay, budget: None, users: None }
    }

    /// This view with a limit on its work.
    pub(crate) const fn within(self, budget: &'a WorkBudget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// This view with the answers to [`Self::users_of_claims`].
    pub(crate) const fn with_users(self, users: &'a UsersOfClaims<'a>) -> Self {
        Self { users: Some(users), ..self }
    }

    /// This view with another overlay.
    #[must_use]
    pub const fn with(self, overlay: &'a Overlay<'a>) -> Self {
        Self { overlay, ..self }
    }

    /// Spends `count` steps of the work budget; `false` if none are left.
    pub(crate) fn spend(&self, count: usize) -> bool {
        self.budget.is_none_or(|budget| budget.spend(count))
    }

    /// The snapshot.
    pub const fn cluster(&self) -> &'a Snapshot {
        self.cluster
    }

    /// The version of the API server.
    pub const fn server(&self) -> ServerVersion {
        self.cluster.server
    }

    /// The overlay.
    pub(crate) const fn overlay(&self) -> &'a Overlay<'a> {
        self.overlay
    }

    /// The claim `name` in `namespace`.
    pub fn claim(&self, namespace: &str, name: &str) -> Lookup<&'a Claim> {
        self.find(ObjectKind::Claim, namespace, name)
    }

    /// The namespaces, sorted, that have a claim with this name.
    pub fn namespaces_with_claim(&self, name: &str) -> Vec<&'a str> {
        let mut namespaces: Vec<&str> = self
            .cluster
            .objects()
            .filter_map(Claim::of)
            .filter(|claim| claim.metadata.name == name)
            .map(|claim| claim.metadata.namespace.as_str())
            .collect();
        namespaces.sort_unstable();
        namespaces
    }

    /// Whether some namespace has a workload of this kind and name.
    pub fn has_workload(&self, kind: WorkloadKind, name: &str) -> bool {
        self.cluster
            .objects()
            .filter_map(Workload::of)
            .any(|workload| workload.kind == kind && workload.metadata.name == name)
    }

    /// The persistent volume `name`.
    pub fn volume(&self, name: &str) -> Lookup<&'a Volume> {
        self.find(ObjectKind::Volume, "", name)
    }

    /// The persistent volume that the claim names.
    pub(crate) fn bound_volume(&self, namespace: &str, claim: &str) -> Option<&'a Volume> {
        let claim = self.claim(namespace, claim).found()?;
        self.volume(&claim.spec.volume_name).found()
    }

    /// The persistent volumes of `class` (empty: without a class) that no claim is bound to.
    pub fn free_volumes(&self, class: &str) -> Vec<&'a Volume> {
        self.depends_on_all(ObjectKind::Volume, "");
        self.dependencies(IndexKey::FreeOfClass(class))
            .filter(|volume: &&Volume| volume.spec.claim_ref.is_none() && volume.class() == class)
            .collect()
    }

    /// The persistent volume whose `claimRef` names the claim, whether or not the claim names
    /// the volume; the first by name if there are several.
    pub fn volume_of(&self, claim: &Metadata) -> Option<&'a Volume> {
        let key = IndexKey::ClaimedBy { namespace: &claim.namespace, claim: &claim.name };
        self.depends_on_all(ObjectKind::Volume, "");
        self.dependencies(key)
            .filter(|volume: &&Volume| volume.is_claimed_by(claim))
            .min_by(|a, b| a.metadata.name.cmp(&b.metadata.name))
    }

    /// The other persistent volumes that are the same volume to the attach-detach controller,
    /// by name.
    pub fn twins(&self, volume: &Volume) -> Vec<&'a Volume> {
        // No conclusion is drawn from the absence of further ones.
        let handle = IndexKey::Handle(&volume.spec.handle);
        let is_twin = |other: &&Volume| {
            other.is_same_as(volume) && other.metadata.name != volume.metadata.name
        };
        let mut twins: Vec<&Volume> = self.dependencies(handle).filter(is_twin).collect();
        twins.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        twins
    }

    /// The nodes to which known attachments attach the persistent volume `name`.
    pub(crate) fn nodes_attached(&self, name: &str) -> Vec<Text> {
        self.dependencies(IndexKey::Attached(name))
            .filter(|attachment: &&VolumeAttachment| {
                attachment.attached && attachment.volume == name
            })
            .map(|attachment| attachment.node.clone())
            .collect()
    }

    /// The runtime class `name`.
    pub(crate) fn runtime_class(&self, name: &str) -> Lookup<&'a RuntimeClass> {
        self.find(ObjectKind::RuntimeClass, "", name)
    }

    /// The storage class `name`.
    pub fn storage_class(&self, name: &str) -> Lookup<&'a StorageClass> {
        self.find(ObjectKind::StorageClass, "", name)
    }

    /// The class of claims that name none: the newest of several default classes, then the first by
    /// name (`GetDefaultClass` in the Kubernetes source).
    pub fn default_storage_class(&self) -> Lookup<&'a StorageClass> {
        let nearer = self.overlay.nearer.map(|place| place.objects(&[IndexKey::DefaultClass]));
        let mut classes = nearer.into_iter().flatten().filter_map(StorageClass::of_object);
        if let Some(class) = classes.find(|class| class.is_default()) {
            return Lookup::Found(class);
        }
        let kind = ObjectKind::StorageClass;
        self.depends_on_all(kind, "");
        if let Some(lookups) = self.overlay.lookups
            && lookups.has_listed(kind)
        {
            let class = self.default_class_in(&lookups.received);
            return class.map_or(Lookup::Absent, Lookup::Found);
        }
        let is_synced = self.cluster.is_synced(kind);
        match self.default_class_in(self.cluster) {
            Some(class) if is_synced => self.find(kind, "", &class.metadata.name),
            _ => Lookup::of(None, is_synced),
        }
    }

    /// The default class among the known ones; one that is not synced yet may take precedence.
    fn default_class_in(&self, snapshot: &'a Snapshot) -> Option<&'a StorageClass> {
        snapshot
            .objects
            .with(IndexKey::DefaultClass)
            .iter()
            .take_while(|_| self.spend(1))
            .filter_map(StorageClass::of)
            .filter(|class| class.is_default())
            .max_by_key(|class| (&class.metadata.creation_timestamp, Reverse(&class.metadata.name)))
    }

    /// Every storage class, by name. They serve only for advice, so the cached ones are not
    /// confirmed.
    pub fn storage_classes(&self) -> Vec<&'a StorageClass> {
        let key = IndexKey::Kind(ObjectKind::StorageClass);
        let mut classes: Vec<&StorageClass> =
            self.with_nearer(&[key], self.cluster.objects.with(key).iter()).collect();
        classes.sort_unstable_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        classes
    }

    /// The CSI driver `name`.
    pub fn csi_driver(&self, name: &str) -> Lookup<&'a CsiDriver> {
        self.find(ObjectKind::CsiDriver, "", name)
    }

    /// The namespace `name`.
    pub fn namespace(&self, name: &str) -> Lookup<&'a Namespace> {
        self.find(ObjectKind::Namespace, "", name)
    }

    /// The node `name`.
    pub fn node(&self, name: &str) -> Lookup<&'a Node> {
        self.find(ObjectKind::Node, "", name)
    }

    /// Whether the node `name` lacks the CSI driver, as far as the drivers of nodes are known.
    /// Callers record the nodes on which the judgement depends, by `depends_on_drivers`.
    pub(crate) fn lacks_driver(&self, name: &str, driver: &str) -> bool {
        let key = ObjectKey::global(ObjectKind::CsiNode, name);
        let node: Option<&CsiNode> = self
            .overlay
            .lookups
            .filter(|lookups| lookups.supersedes(key))
            .map_or(self.cluster, |lookups| &lookups.received)
            .get(key);
        // Files without any CSINode do not show the drivers of nodes.
        let is_known = self.cluster.knows_any(ObjectKind::CsiNode);
        node.map_or(is_known, |node| !node.has(driver))
    }

    /// Records that the judgement depends on the drivers of the node `name`.
    pub(crate) fn depends_on_drivers(&self, name: &str) {
        self.depends_on(ObjectKey::global(ObjectKind::CsiNode, name));
    }

    /// The Lease that the kubelet of the node `name` renews. Leases are not watched, because each
    /// changes every ten seconds.
    pub(crate) fn node_lease(&self, name: &str) -> Lookup<&'a Lease> {
        self.find(ObjectKind::Lease, NODE_LEASES, name)
    }

    /// Whether any node is known.
    pub fn knows_nodes(&self) -> bool {
        self.cluster.knows_any(ObjectKind::Node)
    }

    /// The nodes, each once. `wanted` narrows them to those with one of the label pairs.
    ///
    /// Most judgements depend on few of the nodes that they look at, so callers have to record
    /// those by `depends_on_node` or `depends_on_nodes`.
    pub fn nodes<'h>(&self, wanted: Option<NodeHint<'h>>) -> Box<dyn Iterator<Item = &'a Node> + 'h>
    where
        'a: 'h,
    {
        let view = *self;
        let Some(NodeHint { key, values }) = wanted else {
            return Box::new(view.nodes_with(IndexKey::Kind(ObjectKind::Node)));
        };
        let mut seen = HashSet::new();
        let values = values
            .into_owned()
            .into_iter()
            .filter(move |value| view.knows_nodes() && seen.insert(value.clone()));
        if key == NODE_NAME {
            return Box::new(values.filter_map(move |name| view.node(&name).found()));
        }
        Box::new(values.flat_map(move |value| {
            let nodes = view.nodes_with(IndexKey::NodeLabel { key, value: &value });
            nodes.filter(move |node| node.metadata.labels.get(key) == Some(&*value))
        }))
    }

    /// The nodes with that index key, or another one with the same hash. The overlay has none.
    fn nodes_with(self, key: IndexKey<'_>) -> impl Iterator<Item = &'a Node> + use<'a> {
        let is_known = self.knows_nodes();
        self.further(&[key]).take_while(move |_| is_known && self.spend(1)).filter_map(Node::of)
    }

    /// Records that the judgement depends on a node.
    pub(crate) fn depends_on_node(&self, node: &Node) {
        self.depends_on(ObjectKey::global(ObjectKind::Node, &node.metadata.name));
    }

    /// Records that the judgement depends on the wanted nodes, and on the absence of others.
    pub(crate) fn depends_on_nodes(&self, wanted: Option<NodeHint<'_>>) {
        if let Some(lookups) = self.overlay.lookups
            && lookups.confirms_cached
        {
            self.depends_on_all(ObjectKind::Node, "");
            // The budget has already paid for a visit to them.
            let view = View { budget: None, ..*self };
            for node in view.nodes(wanted) {
                self.depends_on_node(node);
                if lookups.has_enough_nodes(ObjectKind::Node) {
                    break;
                }
            }
        }
    }

    /// The workload with this kind and name.
    pub fn workload(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Lookup<&'a Workload> {
        self.find(ObjectKind::Workload(kind), namespace, name)
    }

    /// The workloads that use the claim: their pod template names it, or a claim template of a
    /// StatefulSet or bare pod makes it. Excludes workloads whose owner uses it in their place.
    pub fn workloads_using(&self, namespace: &str, claim: &str) -> Vec<&'a Workload> {
        let known = self.users.filter(|known| known.namespace == namespace);
        match known.and_then(|known| known.by_claim.get(claim)) {
            Some(users) => {
                self.spend(users.len());
                users.clone()
            }
            None => self.find_users(namespace, claim),
        }
    }

    /// The users of all claims of a workload that names many of them; `None` if there are more than
    /// `most` in all. Rules and remedies ask for each several times, and each user may name as
    /// many.
    pub(crate) fn users_of_claims(
        &self,
        workload: &Workload,
        most: usize,
    ) -> Option<UsersOfClaims<'a>> {
        let mut users = UsersOfClaims::default();
        if workload.template.volumes.len() <= FEW_VOLUMES {
            return Some(users);
        }
        users.namespace.clone_from(&workload.metadata.namespace);
        let mut count = 0;
        for claim in workload.template.claims() {
            let found = self.find_users(&users.namespace, claim);
            count += found.len();
            if count > most {
                return None;
            }
            users.by_claim.insert(claim.clone(), found);
        }
        Some(users)
    }

    fn find_users(&self, namespace: &str, claim: &str) -> Vec<&'a Workload> {
        let uses = |workload: &Workload| {
            workload.names_claim(claim) || workload.ephemeral_claim(claim).is_some()
        };
        let is_covered = |workload: &Workload| self.is_covered(workload, claim);
        let by_name = self
            .dependencies_but(IndexKey::Claim { namespace, claim }, is_covered)
            .filter(|workload: &&Workload| uses(workload) || workload.makes_claim(claim));
        let by_template = claim
            .rsplit_once('-')
            .into_iter()
            .flat_map(|(stem, _)| self.dependencies(IndexKey::ClaimStem { namespace, stem }))
            .filter(|workload: &&Workload| workload.makes_claim(claim) && !uses(workload));
        by_name
            .flat_map(|workload| std::iter::once(workload).chain(self.rollouts_of(workload)))
            .chain(by_template)
            .filter(|workload| workload.metadata.namespace == namespace && !is_covered(workload))
            .collect()
    }

    /// Whether the owner of the workload is judged in its place as a user of the claim.
    ///
    /// Anybody can write an owner reference, but a false one does not last. The garbage collector
    /// deletes objects whose owner does not exist or has another uid. Controllers release objects
    /// that their selector does not match, and replace most objects of another template. The
    /// remaining case is an owner that does not use the claim and keeps an object that does.
    fn is_covered(&self, workload: &Workload, claim: &str) -> bool {
        let Some((kind, controller)) =
            workload.judged_owner().filter(|(kind, _)| kind.is_built_in())
        else {
            return self.owner_is_judged(workload);
        };
        let owner = self.workload(kind, &workload.metadata.namespace, &controller.name);
        owner.found().is_none_or(|owner| {
            owner.metadata.uid.contradicts(controller.uid)
                || owner.names_claim(claim)
                || owner.makes_claim(claim)
                || owner.replaces_others()
        })
    }

    /// The Rollouts that take their pod template from the workload.
    pub(crate) fn rollouts_of(&self, workload: &Workload) -> Vec<&'a Workload> {
        let is_source = |rollout: &&Workload| {
            rollout.metadata.namespace == workload.metadata.namespace
                && rollout
                    .template_source
                    .as_ref()
                    .is_some_and(|source| source.is(workload.kind, &workload.metadata.name))
        };
        let target = IndexKey::Target {
            namespace: &workload.metadata.namespace,
            kind: workload.kind.name(),
            name: &workload.metadata.name,
        };
        self.dependencies(target).filter(is_source).collect()
    }

    /// The workload with the pod template that its pods get, which may be in another object; `None`
    /// if that is not known.
    pub(crate) fn with_template<'w>(&self, workload: &'w Workload) -> Option<Cow<'w, Workload>> {
        let Some(source) = &workload.template_source else {
            return Some(Cow::Borrowed(workload));
        };
        let kind = source.workload_kind()?;
        let named = self.workload(kind, &workload.metadata.namespace, &source.name).found()?;
        Some(Cow::Owned(Workload { template: named.template.clone(), ..workload.clone() }))
    }

    /// Whether the workload's owner is judged in its place: every cluster has its kind, or it
    /// is known. A suspended CronJob is judged as if it had no pods, so its Job is made by hand.
    pub(crate) fn owner_is_judged(&self, workload: &Workload) -> bool {
        let Some((kind, controller)) = workload.judged_owner() else {
            return false;
        };
        let (namespace, name) = (&workload.metadata.namespace, &controller.name);
        let is_suspended = kind == WorkloadKind::CronJob
            && self.workload(kind, namespace, name).found().is_some_and(|owner| owner.suspended);
        !is_suspended
            && (kind.is_built_in() || self.is_known(ObjectKind::Workload(kind), namespace, name))
    }

    /// Whether the owner that is judged in the workload's place has its volumes and at least as
    /// many pods, as far as the owner is known.
    pub(crate) fn owner_stands_for(&self, workload: &Workload) -> bool {
        let Some(owner) = workload
            .judged_owner()
            .and_then(|(kind, controller)| {
                self.workload(kind, &workload.metadata.namespace, &controller.name).found()
            })
            .and_then(|owner| self.with_template(owner))
        else {
            return true;
        };
        let has = |source: &PodVolumeSource| {
            owner.template.volumes.iter().any(|volume| volume.source == *source)
                || matches!(source, PodVolumeSource::Claim { name } if owner.makes_claim(name))
        };
        workload.replicas <= owner.replicas.max(1)
            && workload.template.volumes.iter().all(|volume| has(&volume.source))
    }

    /// The workloads whose pods have all the `labels`, in `namespace` or, if that is `None`, in
    /// all namespaces. Excludes workloads whose owner is judged.
    pub fn workloads_with<'n>(
        &self,
        namespace: Option<&'n str>,
        labels: Labels,
    ) -> impl Iterator<Item = &'a Workload> + use<'a, 'n> {
        let view = *self;
        for kind in WorkloadKind::ALL {
            self.depends_on_all(ObjectKind::Workload(kind), namespace.unwrap_or_default());
        }
        let keys: Vec<IndexKey<'_>> = labels
            .iter()
            .map(|(key, value)| IndexKey::PodLabel { key, value })
            .chain(namespace.map(IndexKey::Namespace))
            .collect();
        view.with_nearer(&keys, view.further(&keys)).filter(move |workload: &&Workload| {
            namespace.is_none_or(|namespace| workload.metadata.namespace == namespace)
                && labels.is_subset(&workload.template.labels)
                && !view.owner_is_judged(workload)
        })
    }

    /// The autoscalers that scale the workload.
    pub fn autoscalers(&self, workload: &Workload) -> Vec<&'a Autoscaler> {
        let metadata = &workload.metadata;
        self.autoscalers_of(workload.kind, &metadata.namespace, &metadata.name)
    }

    /// The autoscalers that scale the workload of that kind and name.
    pub fn autoscalers_of(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Vec<&'a Autoscaler> {
        let target = IndexKey::Target { namespace, kind: kind.name(), name };
        self.dependencies(target)
            .filter(|autoscaler: &&Autoscaler| {
                autoscaler.metadata.namespace == namespace
                    && autoscaler.spec.scale_target_ref.is(kind, name)
            })
            .collect()
    }

    /// Whether there is such an object in the cache or the overlay; no live look-up is made.
    pub fn is_known(&self, kind: ObjectKind, namespace: &str, name: &str) -> bool {
        let key = ObjectKey::new(kind, namespace, name);
        self.cluster.objects.get(key).is_some() || self.is_nearer(key)
    }

    /// The uid of an object in the cache; unknown if the cache lacks it.
    pub fn uid(&self, kind: ObjectKind, namespace: &str, name: &str) -> Uid {
        let cached = self.cluster.objects.get(ObjectKey::new(kind, namespace, name));
        cached.map(|object| object.metadata().uid).unwrap_or_default()
    }

    /// The turn of a workload, relative to the current object.
    pub(crate) fn workload_turn(&self, workload: &Workload) -> Turn {
        self.turn(ObjectKind::Workload(workload.kind), &workload.metadata)
    }

    /// The turn of an object, relative to the current one.
    pub(crate) fn turn(&self, kind: ObjectKind, metadata: &Metadata) -> Turn {
        self.overlay.batch.map_or(Turn::Never, |(order, current)| {
            Turn::of(order.position(kind, metadata), current)
        })
    }

    fn find<T: Typed>(&self, kind: ObjectKind, namespace: &str, name: &str) -> Lookup<&'a T> {
        self.spend(1);
        let key = ObjectKey::new(kind, namespace, name);
        let nearer = self.overlay.nearer.and_then(|place| place.object(key));
        if let Some(object) = nearer.and_then(T::of_object) {
            return Lookup::Found(object);
        }
        let cached = self.cluster.look_up(key);
        self.overlay.lookups.map_or(cached, |lookups| lookups.look_up(key, cached))
    }

    /// A superset of the objects with that index key. The judgement depends on each of them.
    fn dependencies<T: Typed>(&self, key: IndexKey<'_>) -> impl Iterator<Item = &'a T> {
        self.dependencies_but(key, |_| false)
    }

    /// As `dependencies`, without the cluster's objects that are `left_out`.
    fn dependencies_but<T: Typed>(
        &self,
        key: IndexKey<'_>,
        left_out: impl Fn(&T) -> bool,
    ) -> impl Iterator<Item = &'a T> {
        let used = self
            .further(&[key])
            .filter(move |object| !T::of(object).is_some_and(&left_out))
            .inspect(|object| self.depends_on(object.key()));
        self.with_nearer(&[key], used)
    }

    /// A superset of the cluster's own objects with these index keys.
    fn further(self, keys: &[IndexKey<'_>]) -> impl Iterator<Item = &'a StoredObject> + use<'a> {
        let lookups = self.overlay.lookups;
        let received = lookups.map(|lookups| lookups.received.objects.with_all(keys));
        let cached =
            self.cluster.objects.with_all(keys).filter(move |object| {
                lookups.is_none_or(|lookups| !lookups.supersedes(object.key()))
            });
        received.into_iter().flatten().chain(cached)
    }

    /// A superset of the objects with these index keys in the overlay, and the `further` ones that
    /// the overlay does not define. Each costs a step.
    fn with_nearer<T: Typed, F: Iterator<Item = &'a StoredObject>>(
        self,
        keys: &[IndexKey<'_>],
        further: F,
    ) -> impl Iterator<Item = &'a T> + use<'a, T, F> {
        let nearer = self.overlay.nearer.map(|place| place.objects(keys));
        let further = further.filter(move |object| !self.is_nearer(object.key()));
        nearer
            .into_iter()
            .flatten()
            .map(T::of_object)
            .chain(further.map(T::of))
            .take_while(move |_| self.spend(1))
            .flatten()
    }

    /// Whether the overlay defines the object.
    fn is_nearer(&self, key: ObjectKey<'_>) -> bool {
        self.overlay.nearer.is_some_and(|place| place.object(key).is_some())
    }

    /// Records that the judgement depends on an object.
    fn depends_on(&self, key: ObjectKey<'_>) {
        if let Some(lookups) = self.overlay.lookups {
            lookups.depends_on(key);
        }
    }

    /// Records that the judgement depends on the absence of other objects of a kind.
    fn depends_on_all(&self, kind: ObjectKind, namespace: &str) {
        if let Some(lookups) = self.overlay.lookups
            && self.cluster.is_synced(kind)
        {
            lookups.depends_on_all(kind, namespace);
        }
    }
}
