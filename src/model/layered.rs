//! Views that answer a question or two differently from the one beneath them.

use std::sync::Arc;

use super::autoscaler::Autoscaler;
use super::claim::Claim;
use super::cluster::{ClusterView, Lookup, NodeHint, Turn};
use super::labels::Labels;
use super::node::Node;
use super::object::Namespace;
use super::storage_class::{CsiDriver, StorageClass};
use super::volume::Volume;
use super::workload::{Workload, WorkloadKind};

/// A view on top of another one; a [`ClusterView`] by that.
pub(crate) trait Layered: Sync {
    /// The view beneath, which answers all that is not answered here.
    fn beneath(&self) -> &dyn ClusterView;

    /// As [`ClusterView::claim`].
    fn find_claim(&self, namespace: &str, name: &str) -> Lookup<Arc<Claim>> {
        self.beneath().claim(namespace, name)
    }

    /// As [`ClusterView::volume`].
    fn find_volume(&self, name: &str) -> Lookup<Arc<Volume>> {
        self.beneath().volume(name)
    }

    /// As [`ClusterView::namespace`].
    fn find_namespace(&self, name: &str) -> Lookup<Arc<Namespace>> {
        self.beneath().namespace(name)
    }

    /// As [`ClusterView::workload`].
    fn find_workload(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Lookup<Arc<Workload>> {
        self.beneath().workload(kind, namespace, name)
    }

    /// As [`ClusterView::workload_turn`].
    fn turn_of_workload(&self, workload: &Workload) -> Turn {
        self.beneath().workload_turn(workload)
    }

    /// As [`ClusterView::autoscaler_turn`].
    fn turn_of_autoscaler(&self, autoscaler: &Autoscaler) -> Turn {
        self.beneath().autoscaler_turn(autoscaler)
    }
}

impl<T: Layered> ClusterView for T {
    fn claim(&self, namespace: &str, name: &str) -> Lookup<Arc<Claim>> {
        self.find_claim(namespace, name)
    }

    fn volume(&self, name: &str) -> Lookup<Arc<Volume>> {
        self.find_volume(name)
    }

    fn free_volumes(&self, class: &str) -> Vec<Arc<Volume>> {
        self.beneath().free_volumes(class)
    }

    fn storage_class(&self, name: &str) -> Lookup<Arc<StorageClass>> {
        self.beneath().storage_class(name)
    }

    fn default_storage_class(&self) -> Lookup<Arc<StorageClass>> {
        self.beneath().default_storage_class()
    }

    fn storage_classes(&self) -> Vec<Arc<StorageClass>> {
        self.beneath().storage_classes()
    }

    fn csi_driver(&self, name: &str) -> Lookup<Arc<CsiDriver>> {
        self.beneath().csi_driver(name)
    }

    fn namespace(&self, name: &str) -> Lookup<Arc<Namespace>> {
        self.find_namespace(name)
    }

    fn visit_nodes(
        &self,
        wanted: Option<&NodeHint<'_>>,
        visit: &mut dyn FnMut(&Node) -> bool,
    ) -> Lookup<()> {
        self.beneath().visit_nodes(wanted, visit)
    }

    fn workload(&self, kind: WorkloadKind, namespace: &str, name: &str) -> Lookup<Arc<Workload>> {
        self.find_workload(kind, namespace, name)
    }

    fn workloads_using(&self, namespace: &str, claim: &str) -> Vec<Arc<Workload>> {
        self.beneath().workloads_using(namespace, claim)
    }

    fn visit_workloads(
        &self,
        namespace: Option<&str>,
        labels: &Labels,
        visit: &mut dyn FnMut(&Arc<Workload>) -> bool,
    ) {
        self.beneath().visit_workloads(namespace, labels, visit);
    }

    fn autoscalers_of(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Vec<Arc<Autoscaler>> {
        self.beneath().autoscalers_of(kind, namespace, name)
    }

    fn workload_turn(&self, workload: &Workload) -> Turn {
        self.turn_of_workload(workload)
    }

    fn autoscaler_turn(&self, autoscaler: &Autoscaler) -> Turn {
        self.turn_of_autoscaler(autoscaler)
    }
}
