//! The index: facts about a cluster, by everything they are looked up by.
//!
//! ```text
//! claim ──▶ workloads that name it ──▶ their autoscalers
//!   │       workloads whose claim template makes it
//!   ├──▶ its volume, or the free volumes of its class
//!   └──▶ its class, or the default one ──▶ CSI driver
//! pod labels (and namespace) ──▶ workloads
//! node label, node name ──▶ nodes
//! ```
//!
//! Every look-up is a hash or two, whatever the size of the cluster, and hands
//! out an `Arc`. The index is a plain value: whoever has facts puts them in.

use std::sync::Arc;

use crate::model::autoscaler::Autoscaler;
use crate::model::claim::Claim;
use crate::model::cluster::{ClusterView, Lookup, NodeHint};
use crate::model::labels::Labels;
use crate::model::node::Node;
use crate::model::object::{Namespace, Object, ObjectKind};
use crate::model::pod::PodVolumeSource;
use crate::model::storage_class::{CsiDriver, StorageClass};
use crate::model::volume::Volume;
use crate::model::workload::{Workload, WorkloadKind};

use super::stored::reduce;
use super::table::{Key, Stored, Table, Trait};

/// Facts about a cluster. Filled by hand, object by object; asked through
/// [`ClusterView`].
///
/// Of each object only what decides about *others* is kept. Workloads whose
/// owner is judged ([`Workload::owner_is_judged`]) and scales are not kept.
#[derive(Debug, Default)]
pub struct Index {
    claims: Table<Claim>,
    volumes: Table<Volume>,
    classes: Table<StorageClass>,
    drivers: Table<CsiDriver>,
    namespaces: Table<Namespace>,
    autoscalers: Table<Autoscaler>,
    pub(super) workloads: Table<Workload>,
    /// Shared with whoever walks the nodes at this moment.
    pub(super) nodes: Arc<Table<Node>>,
    default_class: Option<Arc<StorageClass>>,
    synced: Kinds,
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default)]
struct Kinds(u32);

impl Kinds {
    const fn bit(kind: ObjectKind) -> u32 {
        1 << match kind {
            ObjectKind::Workload(kind) => kind as u8,
            ObjectKind::Claim => 8,
            ObjectKind::Volume => 9,
            ObjectKind::StorageClass => 10,
            ObjectKind::CsiDriver => 11,
            ObjectKind::Node => 12,
            ObjectKind::Namespace => 13,
            ObjectKind::Autoscaler => 14,
            ObjectKind::Scale => 15,
        }
    }

    const fn has(self, kind: ObjectKind) -> bool {
        self.0 & Self::bit(kind) != 0
    }
}

impl Index {
    /// An index that knows nothing: every answer is `NotSynced`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An index of everything there is, still empty: what is not put in is absent.
    #[must_use]
    pub fn complete() -> Self {
        Self {
            synced: Kinds(u32::MAX),
            ..Self::default()
        }
    }

    /// Puts an object in, in place of the one of the same kind and name.
    /// Whether a fact changed: a heartbeat changes none.
    pub fn apply(&mut self, mut object: Object) -> bool {
        reduce(&mut object);
        match object {
            Object::Workload(workload) if workload.owner_is_judged() => {
                self.workloads.take(workload.key())
            }
            Object::Workload(workload) => self.workloads.put(workload),
            Object::Claim(claim) => self.claims.put(claim),
            Object::Volume(volume) => self.volumes.put(volume),
            Object::StorageClass(class) => {
                let changed = self.classes.put(class);
                self.choose_default_class();
                changed
            }
            Object::CsiDriver(driver) => self.drivers.put(driver),
            Object::Node(node) => {
                !self.nodes.knows(&node) && Arc::make_mut(&mut self.nodes).put(node)
            }
            Object::Namespace(namespace) => self.namespaces.put(namespace),
            Object::Autoscaler(autoscaler) => self.autoscalers.put(autoscaler),
            Object::Scale(_) => false,
        }
    }

    /// Whether `object` would change nothing. Asked before [`Self::apply`] by
    /// those who must lock the index for a change.
    pub(super) fn knows(&self, object: &mut Object) -> bool {
        reduce(object);
        match object {
            Object::Workload(workload) if workload.owner_is_judged() => {
                self.workloads.get(workload.key()).is_none()
            }
            Object::Workload(workload) => self.workloads.knows(workload),
            Object::Claim(claim) => self.claims.knows(claim),
            Object::Volume(volume) => self.volumes.knows(volume),
            Object::StorageClass(class) => self.classes.knows(class),
            Object::CsiDriver(driver) => self.drivers.knows(driver),
            Object::Node(node) => self.nodes.knows(node),
            Object::Namespace(namespace) => self.namespaces.knows(namespace),
            Object::Autoscaler(autoscaler) => self.autoscalers.knows(autoscaler),
            Object::Scale(_) => true,
        }
    }

    /// Takes an object out; `namespace` is empty for objects that have none.
    /// Whether it was there.
    pub fn remove(&mut self, kind: ObjectKind, namespace: &str, name: &str) -> bool {
        let key = Key {
            family: family(kind),
            namespace,
            name,
        };
        match kind {
            ObjectKind::Workload(_) => self.workloads.take(key),
            ObjectKind::Claim => self.claims.take(key),
            ObjectKind::Volume => self.volumes.take(key),
            ObjectKind::StorageClass => {
                let removed = self.classes.take(key);
                self.choose_default_class();
                removed
            }
            ObjectKind::CsiDriver => self.drivers.take(key),
            ObjectKind::Node => Arc::make_mut(&mut self.nodes).take(key),
            ObjectKind::Namespace => self.namespaces.take(key),
            ObjectKind::Autoscaler => self.autoscalers.take(key),
            ObjectKind::Scale => false,
        }
    }

    /// Says that a new list of all objects of `kind` begins. Until it is
    /// complete, what was known of the kind stays.
    pub fn list_begins(&mut self, kind: ObjectKind) {
        match kind {
            ObjectKind::Workload(_) => self.workloads.unlist(family(kind)),
            ObjectKind::Claim => self.claims.unlist(family(kind)),
            ObjectKind::Volume => self.volumes.unlist(family(kind)),
            ObjectKind::StorageClass => self.classes.unlist(family(kind)),
            ObjectKind::CsiDriver => self.drivers.unlist(family(kind)),
            ObjectKind::Node => Arc::make_mut(&mut self.nodes).unlist(family(kind)),
            ObjectKind::Namespace => self.namespaces.unlist(family(kind)),
            ObjectKind::Autoscaler => self.autoscalers.unlist(family(kind)),
            ObjectKind::Scale => {}
        }
    }

    /// Says that all objects of `kind` have been put in. Those that a list
    /// begun before did not name are dropped; from here on, what is not in the
    /// index is absent.
    pub fn synced(&mut self, kind: ObjectKind) {
        match kind {
            ObjectKind::Workload(_) => self.workloads.drop_unlisted(family(kind)),
            ObjectKind::Claim => self.claims.drop_unlisted(family(kind)),
            ObjectKind::Volume => self.volumes.drop_unlisted(family(kind)),
            ObjectKind::StorageClass => {
                self.classes.drop_unlisted(family(kind));
                self.choose_default_class();
            }
            ObjectKind::CsiDriver => self.drivers.drop_unlisted(family(kind)),
            ObjectKind::Node => Arc::make_mut(&mut self.nodes).drop_unlisted(family(kind)),
            ObjectKind::Namespace => self.namespaces.drop_unlisted(family(kind)),
            ObjectKind::Autoscaler => self.autoscalers.drop_unlisted(family(kind)),
            ObjectKind::Scale => {}
        }
        self.synced.0 |= Kinds::bit(kind);
    }

    /// Whether all objects of `kind` have been put in once.
    #[must_use]
    pub const fn is_synced(&self, kind: ObjectKind) -> bool {
        self.synced.has(kind)
    }

    /// How many objects of `kind` are held.
    #[must_use]
    pub fn count(&self, kind: ObjectKind) -> usize {
        let family = family(kind);
        match kind {
            ObjectKind::Workload(_) => self.workloads.count(family),
            ObjectKind::Claim => self.claims.count(family),
            ObjectKind::Volume => self.volumes.count(family),
            ObjectKind::StorageClass => self.classes.count(family),
            ObjectKind::CsiDriver => self.drivers.count(family),
            ObjectKind::Node => self.nodes.count(family),
            ObjectKind::Namespace => self.namespaces.count(family),
            ObjectKind::Autoscaler => self.autoscalers.count(family),
            ObjectKind::Scale => 0,
        }
    }

    /// Every claim, in no order.
    pub fn claims(&self) -> impl Iterator<Item = &Arc<Claim>> {
        self.claims.iter()
    }

    /// Every persistent volume, in no order.
    pub fn volumes(&self) -> impl Iterator<Item = &Arc<Volume>> {
        self.volumes.iter()
    }

    /// Every CSI driver, in no order.
    pub fn csi_drivers(&self) -> impl Iterator<Item = &Arc<CsiDriver>> {
        self.drivers.iter()
    }

    /// Every node, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.iter()
    }

    /// Every namespace, in no order.
    pub fn namespaces(&self) -> impl Iterator<Item = &Arc<Namespace>> {
        self.namespaces.iter()
    }

    /// Where several classes say they are the default one, the newest is, then
    /// the first by name (`GetDefaultClass` in the Kubernetes source).
    fn choose_default_class(&mut self) {
        self.default_class = self
            .classes
            .iter()
            .filter(|class| class.is_default)
            .max_by(|a, b| a.created.cmp(&b.created).then_with(|| b.name.cmp(&a.name)))
            .cloned();
    }

    fn lookup<T: Stored>(
        &self,
        kind: ObjectKind,
        table: &Table<T>,
        key: Key<'_>,
    ) -> Lookup<Arc<T>> {
        match table.get(key) {
            Some(object) => Lookup::Found(Arc::clone(object)),
            None => self.missing(kind),
        }
    }

    fn missing<T>(&self, kind: ObjectKind) -> Lookup<T> {
        if self.synced.has(kind) {
            Lookup::Absent
        } else {
            Lookup::NotSynced
        }
    }

    /// Whether nodes are known, as [`ClusterView::visit_nodes`] says it.
    pub(super) fn nodes_known(&self) -> Lookup<()> {
        if self.synced.has(ObjectKind::Node) && !self.nodes.is_empty() {
            Lookup::Found(())
        } else {
            self.missing(ObjectKind::Node)
        }
    }

    /// The slots of the workloads that may be in `namespace` and carry
    /// `labels`: the shortest list that holds them all, be it that of the
    /// namespace or that of a label in all namespaces.
    pub(super) fn candidates(&self, namespace: Option<&str>, labels: &Labels) -> Vec<u32> {
        let shortest = labels
            .iter()
            .map(|(key, value)| Trait::PodLabel { key, value })
            .chain(namespace.map(Trait::Namespace))
            .map(|wanted| self.workloads.slots_with(wanted))
            .min_by_key(|slots| slots.len());
        match shortest {
            Some(slots) => slots.to_vec(),
            None => self.workloads.all_slots().collect(),
        }
    }

    /// The workload in `slot`, where it is in `namespace` and carries `labels`.
    pub(super) fn matching_workload(
        &self,
        slot: u32,
        namespace: Option<&str>,
        labels: &Labels,
    ) -> Option<&Arc<Workload>> {
        self.workloads.at(slot).filter(|workload| {
            namespace.is_none_or(|namespace| workload.metadata.namespace == namespace)
                && labels.is_subset(&workload.template.labels)
        })
    }
}

/// Tells apart the kinds of workload, which share a table.
const fn family(kind: ObjectKind) -> u8 {
    match kind {
        ObjectKind::Workload(kind) => kind as u8,
        _ => 0,
    }
}

/// Calls `visit` for the nodes that may have one of the wanted labels.
pub(super) fn visit_nodes(
    nodes: &Table<Node>,
    wanted: Option<&NodeHint<'_>>,
    visit: &mut dyn FnMut(&Node) -> bool,
) {
    match wanted {
        None => {
            nodes.iter().all(|node| visit(node));
        }
        Some(hint) if hint.key == NODE_NAME => {
            hint.values
                .iter()
                .filter_map(|name| nodes.get(Key::global(name)))
                .all(|node| visit(node));
        }
        Some(hint) => {
            hint.values
                .iter()
                .flat_map(|value| {
                    let (key, value) = (hint.key, value.as_str());
                    nodes
                        .with(Trait::NodeLabel { key, value })
                        .filter(move |node| node.labels.get(key) == Some(value))
                })
                .all(|node| visit(node));
        }
    }
}

/// The one field that node selectors know, used as a hint's key.
const NODE_NAME: &str = "metadata.name";

impl ClusterView for Index {
    fn claim(&self, namespace: &str, name: &str) -> Lookup<Arc<Claim>> {
        let key = Key {
            family: 0,
            namespace,
            name,
        };
        self.lookup(ObjectKind::Claim, &self.claims, key)
    }

    fn volume(&self, name: &str) -> Lookup<Arc<Volume>> {
        self.lookup(ObjectKind::Volume, &self.volumes, Key::global(name))
    }

    fn free_volumes(&self, class: &str) -> Vec<Arc<Volume>> {
        self.volumes
            .with(Trait::FreeOfClass(class))
            .filter(|volume| volume.claim.is_none() && volume.class == class)
            .cloned()
            .collect()
    }

    fn storage_class(&self, name: &str) -> Lookup<Arc<StorageClass>> {
        self.lookup(ObjectKind::StorageClass, &self.classes, Key::global(name))
    }

    fn default_storage_class(&self) -> Lookup<Arc<StorageClass>> {
        match &self.default_class {
            Some(class) if self.synced.has(ObjectKind::StorageClass) => {
                Lookup::Found(Arc::clone(class))
            }
            _ => self.missing(ObjectKind::StorageClass),
        }
    }

    fn storage_classes(&self) -> Vec<Arc<StorageClass>> {
        let mut classes: Vec<_> = self.classes.iter().cloned().collect();
        classes.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        classes
    }

    fn csi_driver(&self, name: &str) -> Lookup<Arc<CsiDriver>> {
        self.lookup(ObjectKind::CsiDriver, &self.drivers, Key::global(name))
    }

    fn namespace(&self, name: &str) -> Lookup<Arc<Namespace>> {
        self.lookup(ObjectKind::Namespace, &self.namespaces, Key::global(name))
    }

    fn visit_nodes(
        &self,
        wanted: Option<&NodeHint<'_>>,
        visit: &mut dyn FnMut(&Node) -> bool,
    ) -> Lookup<()> {
        let known = self.nodes_known();
        if matches!(known, Lookup::Found(())) {
            visit_nodes(&self.nodes, wanted, visit);
        }
        known
    }

    fn workload(&self, kind: WorkloadKind, namespace: &str, name: &str) -> Lookup<Arc<Workload>> {
        let key = Key {
            family: kind as u8,
            namespace,
            name,
        };
        self.lookup(ObjectKind::Workload(kind), &self.workloads, key)
    }

    fn workloads_using(&self, namespace: &str, claim: &str) -> Vec<Arc<Workload>> {
        let uses = |workload: &Workload| {
            workload.template.volumes.iter().any(
                |volume| matches!(&volume.source, PodVolumeSource::Claim { name } if name == claim),
            )
        };
        let by_name = self
            .workloads
            .with(Trait::Claim { namespace, claim })
            .filter(|workload| uses(workload));
        let stem = claim.rsplit_once('-').map(|(stem, _)| stem);
        let by_template = stem
            .into_iter()
            .flat_map(|stem| self.workloads.with(Trait::ClaimStem { namespace, stem }))
            .filter(|workload| workload.makes_claim(claim) && !uses(workload));
        by_name
            .chain(by_template)
            .filter(|workload| workload.metadata.namespace == namespace)
            .cloned()
            .collect()
    }

    fn visit_workloads(
        &self,
        namespace: Option<&str>,
        labels: &Labels,
        visit: &mut dyn FnMut(&Arc<Workload>) -> bool,
    ) {
        self.candidates(namespace, labels)
            .into_iter()
            .filter_map(|slot| self.matching_workload(slot, namespace, labels))
            .all(visit);
    }

    fn autoscalers_of(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Vec<Arc<Autoscaler>> {
        let target = Trait::Target {
            namespace,
            kind: kind.name(),
            name,
        };
        self.autoscalers
            .with(target)
            .filter(|autoscaler| {
                autoscaler.metadata.namespace == namespace
                    && autoscaler.target_name == name
                    && autoscaler.target_kind == kind.name()
                    && autoscaler.target_group == kind.group()
            })
            .cloned()
            .collect()
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
