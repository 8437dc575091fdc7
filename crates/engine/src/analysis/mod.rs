//! The facts about one workload in its cluster: the volumes that it uses, and how far apart its
//! pods can be. Rules read an `Analysis` and decide; nothing is judged here.

mod admission;
pub mod affinity;
pub mod attach_constraint;
pub mod binding;
mod certainty;
pub mod company;
pub mod constraints;
pub(crate) mod crowding;
pub mod eligibility;
pub mod eligible_nodes;
mod heartbeat;
pub mod mislabelled;
pub(crate) mod own_claims;
pub mod placement;
pub mod placement_change;
mod pods;
pub mod topology;
pub mod users;
pub mod volumes;
mod whereabouts;

use std::ops::Range;

use crate::model::autoscaler::Autoscaler;
use crate::model::workload::Workload;
use crate::snapshot::{Turn, View};
use crate::storage::Catalog;

pub use attach_constraint::AttachConstraint;
pub(crate) use attach_constraint::{Basis, ByDriver, Grounds};
pub use certainty::Certainty;
pub use heartbeat::{Heartbeat, Life};
pub(crate) use placement::Placement;
pub use volumes::UsedVolume;

/// Whether the cluster is assumed to have many nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeAssumption {
    /// The known nodes decide; if none is known, many are assumed.
    #[default]
    Auto,
    /// Many, even if only one node is known now: the cluster may grow.
    Always,
    /// Only the known nodes; if none is known, a single one.
    Never,
}

/// The facts on which a judgement rests besides the object.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The cluster, or the files that represent it.
    pub view: View<'a>,
    /// The abilities of storage.
    pub catalog: &'a Catalog,
    /// Whether many nodes are assumed.
    pub nodes: NodeAssumption,
    /// The code of the only rule that judges; `None` for all rules.
    pub rule: Option<&'static str>,
}

/// One workload in its cluster.
#[derive(Clone)]
pub(crate) struct Analysis<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The facts of its cluster.
    pub facts: Facts<'a>,
    /// Its volumes, in the order of the pod template.
    pub volumes: Vec<UsedVolume>,
    /// The placement of its pods.
    pub placement: Placement,
    /// The ordinals of a StatefulSet's pods that are made from the template: after an update, not
    /// those below its `partition`.
    pub new_pods: Range<i64>,
}

impl<'a> Analysis<'a> {
    /// Analyses `workload`. `previous` is the same workload before the update, if there is one:
    /// its pods are still running.
    pub(crate) fn of(
        workload: &'a Workload,
        previous: Option<&Workload>,
        facts: Facts<'a>,
    ) -> Self {
        let volumes = volumes::of(workload, facts);
        let placement = if volumes.iter().any(UsedVolume::may_hold_a_node) {
            Placement::of(workload, previous, &volumes, facts)
        } else {
            Placement::default()
        };
        // The status shows that there is an earlier revision.
        let is_update = previous.is_some() || workload.is_behind.is_some();
        let new_pods = if is_update { workload.updated_ordinals() } else { workload.ordinals() };
        Self { workload, facts, volumes, placement, new_pods }
    }

    /// The volumes that attach to one node at a time.
    pub(crate) fn exclusive(&self) -> impl Iterator<Item = &UsedVolume> {
        self.volumes.iter().filter(|volume| volume.is_exclusive())
    }

    /// The volumes that make pods share a node, or forbid it: exclusive ones, those that keep
    /// their pods on one node, and disks that the scheduler allows one pod per node.
    pub(crate) fn volumes_in_one_place(&self) -> impl Iterator<Item = &UsedVolume> {
        self.volumes.iter().filter(|volume| {
            volume.is_exclusive() || volume.one_pod_a_node || volume.keeps_its_node()
        })
    }

    /// The volumes that one pod may use at a time.
    pub(crate) fn single_pod(&self) -> impl Iterator<Item = &UsedVolume> {
        self.volumes
            .iter()
            .filter(|volume| matches!(volume.attach_constraint, AttachConstraint::SinglePod))
    }

    /// The analysis with only this volume.
    pub(crate) fn with_only(&self, volume: UsedVolume) -> Self {
        let volumes = vec![volume];
        Self {
            placement: Placement::of(self.workload, None, &volumes, self.facts),
            volumes,
            new_pods: self.new_pods.clone(),
            ..*self
        }
    }

    /// The analysis with every unknown volume taken as exclusive; `None` if all are known.
    pub(crate) fn with_unknown_as_exclusive(&self) -> Option<Self> {
        let is_unknown =
            |volume: &UsedVolume| matches!(volume.attach_constraint, AttachConstraint::Unknown(_));
        if !self.volumes.iter().any(is_unknown) {
            return None;
        }
        let mut assumed = self.clone();
        for volume in &mut assumed.volumes {
            if is_unknown(volume) {
                volume.attach_constraint =
                    AttachConstraint::Exclusive { basis: Basis::Forecast, grounds: Grounds::Known };
            }
        }
        Some(assumed)
    }

    /// Whether pods of one revision that exist together can use an exclusive volume: they can be
    /// neither on two nodes, nor on a node that allows one pod with the volume.
    pub(crate) fn pins_replicas(&self) -> bool {
        self.placement.pins_replicas() && !self.exclusive().any(|volume| volume.one_pod_a_node)
    }

    /// Whether the pods of one revision and the next can use an exclusive volume together.
    pub(crate) fn pins_rollouts(&self) -> bool {
        self.placement.pins_rollouts() && !self.exclusive().any(|volume| volume.one_pod_a_node)
    }

    /// The autoscaler that allows the workload the most pods, among those that exist before it.
    pub(crate) fn highest_autoscaler(&self) -> Option<&'a Autoscaler> {
        let (workload, view) = (self.workload, self.facts.view);
        view.autoscalers(workload)
            .into_iter()
            .filter(|autoscaler| view.turn(autoscaler.kind(), &autoscaler.metadata) == Turn::Never)
            .max_by_key(|autoscaler| autoscaler.most(workload.replicas))
    }

    /// The field of the object that names a volume, `spec.template.spec.volumes[0]`.
    pub(crate) fn volume_path(&self, volume: &UsedVolume) -> String {
        let path = self.workload.kind.pod_spec_path();
        format!("{path}.volumes[{}]", volume.index)
    }
}
