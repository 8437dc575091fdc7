//! A claim that arrives after the workloads that wait for it.

use std::sync::Arc;

use crate::model::autoscaler::Autoscaler;
use crate::model::claim::Claim;
use crate::model::cluster::{ClusterView, Lookup, NodeHint, Turn};
use crate::model::labels::Labels;
use crate::model::node::Node;
use crate::model::object::Namespace;
use crate::model::storage_class::{CsiDriver, StorageClass};
use crate::model::volume::Volume;
use crate::model::workload::{Workload, WorkloadKind};

/// A view in which the claim is already there.
pub(super) struct WithClaim<'a> {
    base: &'a dyn ClusterView,
    claim: Arc<Claim>,
}

impl<'a> WithClaim<'a> {
    pub(super) fn new(base: &'a dyn ClusterView, claim: &Claim) -> Self {
        Self {
            base,
            claim: Arc::new(claim.clone()),
        }
    }
}

impl ClusterView for WithClaim<'_> {
    fn claim(&self, namespace: &str, name: &str) -> Lookup<Arc<Claim>> {
        let metadata = &self.claim.metadata;
        if metadata.name == name && metadata.namespace == namespace {
            return Lookup::Found(Arc::clone(&self.claim));
        }
        self.base.claim(namespace, name)
    }

    fn volume(&self, name: &str) -> Lookup<Arc<Volume>> {
        self.base.volume(name)
    }

    fn free_volumes(&self, class: &str) -> Vec<Arc<Volume>> {
        self.base.free_volumes(class)
    }

    fn storage_class(&self, name: &str) -> Lookup<Arc<StorageClass>> {
        self.base.storage_class(name)
    }

    fn default_storage_class(&self) -> Lookup<Arc<StorageClass>> {
        self.base.default_storage_class()
    }

    fn storage_classes(&self) -> Vec<Arc<StorageClass>> {
        self.base.storage_classes()
    }

    fn csi_driver(&self, name: &str) -> Lookup<Arc<CsiDriver>> {
        self.base.csi_driver(name)
    }

    fn namespace(&self, name: &str) -> Lookup<Arc<Namespace>> {
        self.base.namespace(name)
    }

    fn visit_nodes(
        &self,
        wanted: Option<&NodeHint<'_>>,
        visit: &mut dyn FnMut(&Node) -> bool,
    ) -> Lookup<()> {
        self.base.visit_nodes(wanted, visit)
    }

    fn workload(&self, kind: WorkloadKind, namespace: &str, name: &str) -> Lookup<Arc<Workload>> {
        self.base.workload(kind, namespace, name)
    }

    fn workloads_using(&self, namespace: &str, claim: &str) -> Vec<Arc<Workload>> {
        self.base.workloads_using(namespace, claim)
    }

    fn visit_workloads(
        &self,
        namespace: Option<&str>,
        labels: &Labels,
        visit: &mut dyn FnMut(&Arc<Workload>) -> bool,
    ) {
        self.base.visit_workloads(namespace, labels, visit);
    }

    fn autoscalers_of(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Vec<Arc<Autoscaler>> {
        self.base.autoscalers_of(kind, namespace, name)
    }

    fn workload_turn(&self, workload: &Workload) -> Turn {
        self.base.workload_turn(workload)
    }

    fn autoscaler_turn(&self, autoscaler: &Autoscaler) -> Turn {
        self.base.autoscaler_turn(autoscaler)
    }
}
