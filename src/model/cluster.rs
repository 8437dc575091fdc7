//! What the engine may ask about a cluster.

use std::sync::Arc;

use super::Text;
use super::autoscaler::Autoscaler;
use super::claim::Claim;
use super::node::Node;
use super::object::Namespace;
use super::storage_class::{CsiDriver, StorageClass};
use super::volume::Volume;
use super::workload::{Workload, WorkloadKind};

/// An answer that never guesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    /// The object is there.
    Found(T),
    /// The object is not there.
    Absent,
    /// It is not known whether the object is there: the cache has not yet
    /// heard of all objects of this kind, or a live question got no answer.
    NotSynced,
}

impl<T> Lookup<T> {
    /// The object, where it was found.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(object) => Some(object),
            Self::Absent | Self::NotSynced => None,
        }
    }
}

/// When another object of the same batch is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is not judged at all: it is a fact.
    Never,
    /// It was judged before the present one.
    Earlier,
    /// It is judged after the present one.
    Later,
}

/// Facts about a cluster, or about the files that stand for one.
///
/// Every answer is cheap: a look-up in an index, at most one live question for
/// a claim that is absent. Names are exact. All methods may be called from many
/// threads.
pub trait ClusterView: Sync {
    /// The claim `name` in `namespace`.
    fn claim(&self, namespace: &str, name: &str) -> Lookup<Arc<Claim>>;

    /// The persistent volume `name`.
    fn volume(&self, name: &str) -> Lookup<Arc<Volume>>;

    /// The persistent volumes of `class` (empty: of none) that no claim has taken.
    fn free_volumes(&self, class: &str) -> Vec<Arc<Volume>>;

    /// The storage class `name`.
    fn storage_class(&self, name: &str) -> Lookup<Arc<StorageClass>>;

    /// The class that claims without one get.
    fn default_storage_class(&self) -> Lookup<Arc<StorageClass>>;

    /// Every storage class, by name.
    fn storage_classes(&self) -> Vec<Arc<StorageClass>>;

    /// The CSI driver `name`.
    fn csi_driver(&self, name: &str) -> Lookup<Arc<CsiDriver>>;

    /// The namespace `name`.
    fn namespace(&self, name: &str) -> Lookup<Arc<Namespace>>;

    /// Calls `visit` for nodes until it returns `false`. `wanted` may narrow the
    /// nodes to those with one of the label pairs, and need not. `NotSynced`
    /// or `Absent` where no node is known.
    fn visit_nodes(
        &self,
        wanted: Option<&NodeHint<'_>>,
        visit: &mut dyn FnMut(&Node) -> bool,
    ) -> Lookup<()>;

    /// The workload of that kind and name.
    fn workload(&self, kind: WorkloadKind, namespace: &str, name: &str) -> Lookup<Arc<Workload>>;

    /// The workloads that use the claim, by its name in their template or, for a
    /// StatefulSet, by the name its claim template makes. Workloads whose owner
    /// is judged are left out.
    fn workloads_using(&self, namespace: &str, claim: &str) -> Vec<Arc<Workload>>;

    /// Calls `visit` for the workloads whose pods carry all the label pairs of
    /// `labels`, in `namespace` or, where that is `None`, in all of them, until
    /// it returns `false`. Workloads whose owner is judged are left out.
    fn visit_workloads(
        &self,
        namespace: Option<&str>,
        labels: &super::labels::Labels,
        visit: &mut dyn FnMut(&Arc<Workload>) -> bool,
    );

    /// The autoscalers whose target is that workload.
    fn autoscalers_of(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Vec<Arc<Autoscaler>>;

    /// When a workload of the view is judged, relative to the present object.
    /// Views of a live cluster answer [`Turn::Never`].
    fn workload_turn(&self, _workload: &Workload) -> Turn {
        Turn::Never
    }

    /// When an autoscaler of the view is judged, relative to the present object.
    fn autoscaler_turn(&self, _autoscaler: &Autoscaler) -> Turn {
        Turn::Never
    }
}

/// Label pairs of which a wanted node has at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeHint<'a> {
    /// The label's key.
    pub key: &'a str,
    /// Its possible values.
    pub values: &'a [Text],
}
