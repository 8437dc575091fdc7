//! What one judgement sees: a cluster, and what is known beside it.

use std::collections::HashSet;

use super::batch::{BatchOrder, Turn};
use super::key::{IndexKey, ObjectKey};
use super::live_lookups::LiveLookups;
use super::lookup::Lookup;
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
use crate::model::storage_class::{CsiDriver, StorageClass};
use crate::model::volume::Volume;
use crate::model::workload::{Workload, WorkloadKind};

/// Label pairs of which a wanted node has at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeHint<'a> {
    /// The label's key.
    pub key: &'a str,
    /// Its possible values.
    pub values: &'a [Text],
}

/// The one field that node selectors know, used as a hint's key.
const NODE_NAME: &str = "metadata.name";

/// What one judgement knows beside the cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overlay<'a> {
    /// Clusters whose objects count before those of the same kind and name in the
    /// cluster, the first of them most. They hold no nodes.
    pub nearer: &'a [&'a Snapshot],
    /// A claim that is about to be there.
    pub arriving: Option<&'a Claim>,
    /// What the API server was asked for on behalf of this judgement, to which
    /// it may add questions.
    pub lookups: Option<&'a LiveLookups>,
    /// The objects that are judged together with the present one, and its place
    /// among them.
    pub batch: Option<(&'a BatchOrder, usize)>,
    /// Whether there may be more in the cluster than is known here, as where files
    /// stand for it.
    pub partial: bool,
}

impl Overlay<'_> {
    /// Nothing is known beside the cluster.
    pub const NOTHING: Self = Self {
        nearer: &[],
        arriving: None,
        lookups: None,
        batch: None,
        partial: false,
    };
}

/// The facts of one judgement: those of one version of a cluster, and what is
/// known beside it. Every look-up is a hash or two, whatever the size of the
/// cluster. Names are exact.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    cluster: &'a Snapshot,
    overlay: &'a Overlay<'a>,
    /// `None` where the work is not bounded.
    steps: Option<&'a WorkBudget>,
}

impl Snapshot {
    /// The facts of this cluster, nothing beside them.
    #[must_use]
    pub const fn view(&self) -> View<'_> {
        View::new(self, &Overlay::NOTHING)
    }
}

impl<'a> View<'a> {
    /// What is known of `cluster`, with what is known `overlay` it.
    #[must_use]
    pub const fn new(cluster: &'a Snapshot, overlay: &'a Overlay<'a>) -> Self {
        Self {
            cluster,
            overlay,
            steps: None,
        }
    }

    /// The same, as far as `steps` lead.
    #[must_use]
    pub(crate) const fn within(self, steps: &'a WorkBudget) -> Self {
        Self {
            steps: Some(steps),
            ..self
        }
    }

    /// The same with something else known beside the cluster.
    #[must_use]
    pub const fn with(self, overlay: &'a Overlay<'a>) -> Self {
        Self { overlay, ..self }
    }

    /// Takes so many of the steps that a judgement may make; `false` where they have
    /// come to their end.
    pub(crate) fn step(&self, count: usize) -> bool {
        self.steps.is_none_or(|steps| steps.take(count))
    }

    /// The cluster itself.
    #[must_use]
    pub const fn cluster(&self) -> &'a Snapshot {
        self.cluster
    }

    /// What is known beside the cluster.
    #[must_use]
    pub(crate) const fn overlay(&self) -> &'a Overlay<'a> {
        self.overlay
    }

    /// Whether there may be more in the cluster than is in view.
    #[must_use]
    pub(crate) const fn is_partial(&self) -> bool {
        self.overlay.partial
    }

    /// The claim `name` in `namespace`.
    pub fn claim(&self, namespace: &str, name: &str) -> Lookup<&'a Claim> {
        match self.overlay.arriving {
            Some(claim) if claim.metadata.name == name && claim.metadata.namespace == namespace => {
                Lookup::Found(claim)
            }
            _ => self.find(ObjectKind::Claim, namespace, name),
        }
    }

    /// The namespaces, by name, in which the cluster has a claim called `name`.
    #[must_use]
    pub fn namespaces_with_claim(&self, name: &str) -> Vec<&'a str> {
        let claims = self.cluster.objects().filter_map(Claim::of);
        let mut namespaces: Vec<&str> = claims
            .filter(|claim| claim.metadata.name == name)
            .map(|claim| claim.metadata.namespace.as_str())
            .collect();
        namespaces.sort_unstable();
        namespaces
    }

    /// Whether a namespace of the cluster has a workload of that kind called `name`.
    #[must_use]
    pub fn has_workload(&self, kind: WorkloadKind, name: &str) -> bool {
        let mut workloads = self.cluster.objects().filter_map(Workload::of);
        workloads.any(|workload| workload.kind == kind && workload.metadata.name == name)
    }

    /// The persistent volume `name`.
    pub fn volume(&self, name: &str) -> Lookup<&'a Volume> {
        self.find(ObjectKind::Volume, "", name)
    }

    /// The persistent volumes of `class` (empty: of none) that no claim has taken.
    #[must_use]
    pub fn free_volumes(&self, class: &str) -> Vec<&'a Volume> {
        self.uses_all(ObjectKind::Volume, "");
        self.members(IndexKey::FreeOfClass(class))
            .filter(|volume: &&Volume| volume.spec.claim_ref.is_none() && volume.class() == class)
            .collect()
    }

    /// The persistent volume whose `claimRef` names the claim, whether or not the claim
    /// names it too. Of several the first by name.
    #[must_use]
    pub fn volume_of(&self, claim: &Metadata) -> Option<&'a Volume> {
        let claimed = IndexKey::ClaimedBy {
            namespace: &claim.namespace,
            claim: &claim.name,
        };
        self.uses_all(ObjectKind::Volume, "");
        self.members(claimed)
            .filter(|volume: &&Volume| volume.is_claimed_by(claim))
            .min_by(|a, b| a.metadata.name.cmp(&b.metadata.name))
    }

    /// The storage class `name`.
    pub fn storage_class(&self, name: &str) -> Lookup<&'a StorageClass> {
        self.find(ObjectKind::StorageClass, "", name)
    }

    /// The class that claims without one get. Where several say they are, the
    /// newest is, then the first by name (`GetDefaultClass` in the Kubernetes
    /// source).
    pub fn default_storage_class(&self) -> Lookup<&'a StorageClass> {
        let mut nearer = self.overlay.nearer.iter();
        if let Some(class) = nearer.find_map(|it| it.known_default_class()) {
            return Lookup::Found(class);
        }
        self.uses_all(ObjectKind::StorageClass, "");
        match self.overlay.lookups {
            Some(lookups) if lookups.has_heard_all(ObjectKind::StorageClass) => lookups
                .heard()
                .known_default_class()
                .map_or(Lookup::Absent, Lookup::Found),
            _ => match self.cluster.default_class() {
                Lookup::Found(class) => {
                    self.find(ObjectKind::StorageClass, "", &class.metadata.name)
                }
                missing => missing,
            },
        }
    }

    /// Every storage class, by name. They say what might help and decide nothing, so
    /// nobody is asked whether each is still as the cache has it.
    #[must_use]
    pub fn storage_classes(&self) -> Vec<&'a StorageClass> {
        let wanted = IndexKey::Kind(ObjectKind::StorageClass);
        let mut classes: Vec<&StorageClass> = self
            .with_nearer(wanted, self.cluster.with(wanted))
            .collect();
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

    /// The Lease that the kubelet of the node `name` renews. It is not followed: each
    /// would be news every ten seconds.
    pub(crate) fn node_lease(&self, name: &str) -> Lookup<&'a Lease> {
        self.find(ObjectKind::Lease, NODE_LEASES, name)
    }

    /// Calls `visit` for nodes until it returns `false`. `wanted` may narrow the
    /// nodes to those with one of the label pairs, and need not. `NotSynced`
    /// or `Absent` where no node is known.
    ///
    /// Most judgements use few of the nodes that they visit, so it is for them to say
    /// which: by [`Self::uses_node`] or [`Self::uses_nodes`].
    pub fn visit_nodes(
        &self,
        wanted: Option<&NodeHint<'_>>,
        visit: &mut dyn FnMut(&'a Node) -> bool,
    ) -> Lookup<()> {
        let known = self.cluster.nodes_known();
        if !matches!(known, Lookup::Found(())) {
            return known;
        }
        match wanted {
            None => {
                self.nodes(IndexKey::Kind(ObjectKind::Node)).all(visit);
            }
            Some(hint) if hint.key == NODE_NAME => {
                distinct(hint.values)
                    .filter_map(|name| self.find(ObjectKind::Node, "", name).found())
                    .all(visit);
            }
            Some(hint) => {
                let key = hint.key;
                distinct(hint.values)
                    .flat_map(|value| {
                        self.nodes(IndexKey::NodeLabel { key, value })
                            .filter(move |node| node.metadata.labels.get(key) == Some(value))
                    })
                    .all(visit);
            }
        }
        known
    }

    /// Says that a judgement uses that a node is as it is known.
    pub(crate) fn uses_node(&self, node: &Node) {
        if let Some(lookups) = self.answered() {
            lookups.uses(ObjectKey::global(ObjectKind::Node, &node.metadata.name));
        }
    }

    /// Says that a judgement uses that the wanted nodes are as they are known, and that
    /// there are no more.
    pub(crate) fn uses_nodes(&self, wanted: Option<&NodeHint<'_>>) {
        if let Some(lookups) = self.answered()
            && lookups.confirms_cached()
        {
            self.uses_all(ObjectKind::Node, "");
            // They have been visited before, for a step each.
            let view = View {
                steps: None,
                ..*self
            };
            view.visit_nodes(wanted, &mut |node| {
                self.uses_node(node);
                !lookups.has_nodes_enough(ObjectKind::Node)
            });
        }
    }

    /// The workload of that kind and name.
    pub fn workload(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Lookup<&'a Workload> {
        self.find(ObjectKind::Workload(kind), namespace, name)
    }

    /// The workloads that use the claim, by its name in their template or, for a
    /// StatefulSet, by the name its claim template makes. Workloads whose owner
    /// is judged are left out.
    #[must_use]
    pub fn workloads_using(&self, namespace: &str, claim: &str) -> Vec<&'a Workload> {
        let uses = |workload: &Workload| {
            workload.template.volumes.iter().any(
                |volume| matches!(&volume.source, PodVolumeSource::Claim { name } if name == claim),
            )
        };
        let by_name = self
            .members(IndexKey::Claim { namespace, claim })
            .filter(|workload| uses(workload));
        let stem = claim.rsplit_once('-').map(|(stem, _)| stem);
        let by_template = stem
            .into_iter()
            .flat_map(|stem| self.members(IndexKey::ClaimStem { namespace, stem }))
            .filter(|workload: &&Workload| workload.makes_claim(claim) && !uses(workload));
        by_name
            .chain(by_template)
            .filter(|workload| {
                workload.metadata.namespace == namespace && !workload.owner_is_judged()
            })
            .collect()
    }

    /// Calls `visit` for the workloads whose pods carry all the label pairs of
    /// `labels`, in `namespace` or, where that is `None`, in all of them, until
    /// it returns `false`. Workloads whose owner is judged are left out.
    pub fn visit_workloads(
        &self,
        namespace: Option<&str>,
        labels: &Labels,
        visit: &mut dyn FnMut(&'a Workload) -> bool,
    ) {
        for kind in WorkloadKind::ALL {
            self.uses_all(ObjectKind::Workload(kind), namespace.unwrap_or_default());
        }
        // The shortest list that holds them all.
        let traits = || {
            labels
                .iter()
                .map(|(key, value)| IndexKey::PodLabel { key, value })
                .chain(namespace.map(IndexKey::Namespace))
        };
        let lookups = self.answered();
        let heard = lookups
            .into_iter()
            .flat_map(|lookups| lookups.heard().with_all(traits()));
        let cached = self
            .cluster
            .with_all(traits())
            .filter(|object| lookups.is_none_or(|lookups| lookups.shows(object.key())));
        let nearer = self.nearer(|cluster| cluster.with_all(traits()));
        let further = heard.chain(cached);
        nearer
            .chain(further.filter(|object| !self.is_nearer(object)))
            .take_while(|_| self.step(1))
            .filter_map(Workload::of)
            .filter(|workload| {
                namespace.is_none_or(|namespace| workload.metadata.namespace == namespace)
                    && labels.is_subset(&workload.template.labels)
                    && !workload.owner_is_judged()
            })
            .all(visit);
    }

    /// The autoscalers whose target is that workload.
    #[must_use]
    pub fn autoscalers_of(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Vec<&'a Autoscaler> {
        let target = IndexKey::Target {
            namespace,
            kind: kind.name(),
            name,
        };
        self.members(target)
            .filter(|autoscaler: &&Autoscaler| {
                let target = &autoscaler.spec.scale_target_ref;
                autoscaler.metadata.namespace == namespace
                    && target.name == name
                    && target.kind == kind.name()
                    && target.group() == kind.group()
            })
            .collect()
    }

    /// When a workload of the view is judged, relative to the present object.
    #[must_use]
    pub(crate) fn workload_turn(&self, workload: &Workload) -> Turn {
        self.turn(ObjectKind::Workload(workload.kind), &workload.metadata)
    }

    /// When an autoscaler of the view is judged, relative to the present object.
    #[must_use]
    pub(crate) fn autoscaler_turn(&self, autoscaler: &Autoscaler) -> Turn {
        self.turn(ObjectKind::Autoscaler, &autoscaler.metadata)
    }

    fn turn(&self, kind: ObjectKind, metadata: &Metadata) -> Turn {
        self.overlay.batch.map_or(Turn::Never, |(order, current)| {
            order.turn(kind, metadata, current)
        })
    }

    fn find<T: Typed>(&self, kind: ObjectKind, namespace: &str, name: &str) -> Lookup<&'a T> {
        self.step(1);
        let key = ObjectKey {
            kind,
            namespace,
            name,
        };
        let nearer = self.overlay.nearer.iter().find_map(|it| it.get(key));
        if let Some(object) = nearer {
            return Lookup::Found(object);
        }
        let cached = self.cluster.look_up(key);
        match self.overlay.lookups {
            Some(lookups) => lookups.look_up(key, cached),
            None => cached,
        }
    }

    /// The objects that may have that trait, those that were asked for as they
    /// are now. A judgement uses each of them.
    fn members<T: Typed>(&self, wanted: IndexKey<'_>) -> impl Iterator<Item = &'a T> {
        let lookups = self.answered();
        let used = self.further(wanted).inspect(move |object| {
            if let Some(lookups) = lookups {
                lookups.uses(object.key());
            }
        });
        self.with_nearer(wanted, used)
    }

    fn nodes(&self, wanted: IndexKey<'_>) -> impl Iterator<Item = &'a Node> {
        self.with_nearer(wanted, self.further(wanted))
    }

    /// Of the cluster's own objects those that may have that trait.
    fn further(&self, wanted: IndexKey<'_>) -> impl Iterator<Item = &'a StoredObject> {
        let lookups = self.answered();
        let heard = lookups
            .into_iter()
            .flat_map(move |lookups| lookups.heard().with(wanted));
        let shown =
            move |object: &&StoredObject| lookups.is_none_or(|lookups| lookups.shows(object.key()));
        heard.chain(self.cluster.with(wanted).filter(shown))
    }

    /// The objects of the nearer clusters that may have that trait, and those `further`
    /// away that none of them defines, each for a step.
    fn with_nearer<T: Typed>(
        &self,
        wanted: IndexKey<'_>,
        further: impl Iterator<Item = &'a StoredObject>,
    ) -> impl Iterator<Item = &'a T> {
        self.nearer(move |cluster| cluster.with(wanted))
            .chain(further.filter(|object| !self.is_nearer(object)))
            .take_while(|_| self.step(1))
            .filter_map(T::of)
    }

    /// What is found in the nearer clusters, each object once.
    fn nearer<I: Iterator<Item = &'a StoredObject>>(
        &self,
        find: impl Fn(&'a Snapshot) -> I,
    ) -> impl Iterator<Item = &'a StoredObject> {
        let nearer = self.overlay.nearer;
        nearer.iter().enumerate().flat_map(move |(level, cluster)| {
            find(cluster).filter(move |object| holder(&nearer[..level], object).is_none())
        })
    }

    /// Whether a nearer cluster defines the same object.
    fn is_nearer(&self, object: &StoredObject) -> bool {
        holder(self.overlay.nearer, object).is_some()
    }

    /// Says that a judgement uses that there are no more objects of a kind than
    /// those known.
    fn uses_all(&self, kind: ObjectKind, namespace: &str) {
        if let Some(lookups) = self.answered()
            && self.cluster.is_synced(kind)
        {
            lookups.uses_all(kind, namespace);
        }
    }

    /// What was asked, where it can make a difference to the cluster's objects.
    fn answered(&self) -> Option<&'a LiveLookups> {
        self.overlay.lookups.filter(|lookups| !lookups.is_idle())
    }
}

/// The first of the clusters that holds an object of that kind and name.
fn holder<'c>(clusters: &[&'c Snapshot], object: &StoredObject) -> Option<&'c Snapshot> {
    clusters.iter().copied().find(|it| it.holds(object.key()))
}

/// Each of the values once: who listed one twice did not make two nodes of one.
fn distinct(values: &[Text]) -> impl Iterator<Item = &Text> {
    let mut seen = HashSet::new();
    values.iter().filter(move |value| seen.insert(*value))
}
