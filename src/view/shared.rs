//! An index that one side fills while others ask it.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::model::autoscaler::Autoscaler;
use crate::model::claim::Claim;
use crate::model::cluster::{ClusterView, Lookup, NodeHint};
use crate::model::labels::Labels;
use crate::model::node::Node;
use crate::model::object::{Namespace, Object, ObjectKind};
use crate::model::storage_class::{CsiDriver, StorageClass};
use crate::model::volume::Volume;
use crate::model::workload::{Workload, WorkloadKind};

use super::index::{Index, visit_nodes};

/// An [`Index`] behind a lock that is held for one look-up or one change, never
/// while somebody's code runs on what was found: readers cannot wait for each
/// other, and a visit may itself ask the view.
#[derive(Debug, Default)]
pub struct SharedIndex(RwLock<Index>);

/// How many workloads are handed out under one lock during a visit. Most visits
/// end at the first, so the first helping is small.
const HELPINGS: [usize; 4] = [2, 8, 32, 128];

impl SharedIndex {
    /// Shares `index`.
    #[must_use]
    pub fn new(index: Index) -> Self {
        Self(RwLock::new(index))
    }

    /// As [`Index::apply`]. Where no fact changes, as in a heartbeat, readers
    /// are not disturbed at all.
    pub fn apply(&self, mut object: Object) -> bool {
        if self.read().knows(&mut object) {
            return false;
        }
        self.write().apply(object)
    }

    /// As [`Index::remove`].
    pub fn remove(&self, kind: ObjectKind, namespace: &str, name: &str) -> bool {
        self.write().remove(kind, namespace, name)
    }

    /// As [`Index::list_begins`].
    pub fn list_begins(&self, kind: ObjectKind) {
        self.write().list_begins(kind);
    }

    /// As [`Index::synced`].
    pub fn synced(&self, kind: ObjectKind) {
        self.write().synced(kind);
    }

    /// As [`Index::is_synced`].
    #[must_use]
    pub fn is_synced(&self, kind: ObjectKind) -> bool {
        self.read().is_synced(kind)
    }

    /// As [`Index::count`].
    #[must_use]
    pub fn count(&self, kind: ObjectKind) -> usize {
        self.read().count(kind)
    }

    /// Takes everything out.
    pub(super) fn take(&self) -> Index {
        std::mem::take(&mut *self.write())
    }

    // A panic while the lock is held cannot leave a half-made change that
    // matters more than no answer at all: every look-up checks what it finds.
    fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Index> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClusterView for SharedIndex {
    fn claim(&self, namespace: &str, name: &str) -> Lookup<Arc<Claim>> {
        self.read().claim(namespace, name)
    }

    fn volume(&self, name: &str) -> Lookup<Arc<Volume>> {
        self.read().volume(name)
    }

    fn free_volumes(&self, class: &str) -> Vec<Arc<Volume>> {
        self.read().free_volumes(class)
    }

    fn storage_class(&self, name: &str) -> Lookup<Arc<StorageClass>> {
        self.read().storage_class(name)
    }

    fn default_storage_class(&self) -> Lookup<Arc<StorageClass>> {
        self.read().default_storage_class()
    }

    fn storage_classes(&self) -> Vec<Arc<StorageClass>> {
        self.read().storage_classes()
    }

    fn csi_driver(&self, name: &str) -> Lookup<Arc<CsiDriver>> {
        self.read().csi_driver(name)
    }

    fn namespace(&self, name: &str) -> Lookup<Arc<Namespace>> {
        self.read().namespace(name)
    }

    fn visit_nodes(
        &self,
        wanted: Option<&NodeHint<'_>>,
        visit: &mut dyn FnMut(&Node) -> bool,
    ) -> Lookup<()> {
        let (known, nodes) = {
            let index = self.read();
            (index.nodes_known(), Arc::clone(&index.nodes))
        };
        if matches!(known, Lookup::Found(())) {
            visit_nodes(&nodes, wanted, visit);
        }
        known
    }

    fn workload(&self, kind: WorkloadKind, namespace: &str, name: &str) -> Lookup<Arc<Workload>> {
        self.read().workload(kind, namespace, name)
    }

    fn workloads_using(&self, namespace: &str, claim: &str) -> Vec<Arc<Workload>> {
        self.read().workloads_using(namespace, claim)
    }

    fn visit_workloads(
        &self,
        namespace: Option<&str>,
        labels: &Labels,
        visit: &mut dyn FnMut(&Arc<Workload>) -> bool,
    ) {
        let candidates = self.read().candidates(namespace, labels);
        let mut rest = candidates.as_slice();
        let last = HELPINGS[HELPINGS.len() - 1];
        let mut helpings = HELPINGS.into_iter().chain(std::iter::repeat(last));
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(helpings.next().unwrap_or(last)));
            rest = later;
            // A slot may hold another workload by now: it is compared again.
            let found: Vec<_> = {
                let index = self.read();
                now.iter()
                    .filter_map(|slot| index.matching_workload(*slot, namespace, labels))
                    .cloned()
                    .collect()
            };
            if !found.iter().all(&mut *visit) {
                return;
            }
        }
    }

    fn autoscalers_of(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Vec<Arc<Autoscaler>> {
        self.read().autoscalers_of(kind, namespace, name)
    }
}
