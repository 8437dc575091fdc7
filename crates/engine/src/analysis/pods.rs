//! The number of pods that want a workload's volumes at the same time, and the effect of a rolling
//! update on them.

use std::ops::Range;

use super::Analysis;
use crate::model::strategy::Room;
use crate::model::workload::WorkloadKind;

impl Analysis<'_> {
    /// The number of pods that want the volumes at the same time when no pod is being replaced. A
    /// DaemonSet has one on each of its nodes.
    pub(crate) fn pods(&self) -> i64 {
        if !self.workload.has_pods() {
            return 0;
        }
        match self.workload.kind {
            WorkloadKind::DaemonSet => self.placement.daemon_pods(),
            _ => self.workload.replicas,
        }
    }

    /// Whether pods of one revision may be on several nodes and want the same exclusive volume.
    pub(crate) fn replicas_share_exclusive(&self) -> bool {
        self.pods() > 1 && self.exclusive().next().is_some() && !self.holds_replicas_together()
    }

    /// Whether the pods of one revision can be on one node only. Affinity does not help a
    /// DaemonSet, whose pods are bound to their nodes.
    pub(crate) fn holds_replicas_together(&self) -> bool {
        match self.workload.kind {
            WorkloadKind::DaemonSet => self.placement.one_node.is_some(),
            _ => self.pins_replicas(),
        }
    }

    /// The pods that a rolling update may add and remove, if they can block each other; `None` if
    /// there are no pods, or none that are replaced that way. A StatefulSet stops a pod before it
    /// starts the replacement, so only its other pods can block that one, and only if they must be
    /// on another node.
    pub(crate) fn rolling_update(&self) -> Option<Room> {
        let workload = self.workload;
        let rolls = match workload.kind {
            WorkloadKind::Deployment
            | WorkloadKind::Rollout
            | WorkloadKind::DeploymentConfig
            | WorkloadKind::CloneSet => workload.has_pods(),
            WorkloadKind::StatefulSet => {
                // The pods of each revision are held on one node, and those of the next may be held
                // on another.
                let are_held_apart = self.pins_replicas() && !self.pins_rollouts();
                workload.has_pods() && workload.replicas > 1 && are_held_apart
            }
            _ => false,
        };
        // The pods that an update replaces are those of which it takes a percentage.
        let Range { start, end } = workload.updated_ordinals();
        rolls.then(|| workload.strategy.room(end - start))?
    }

    /// Whether a rolling update starts a new pod and stops no old one before the new one is ready.
    /// That of a DaemonSet does so on each node.
    pub(crate) fn starts_before_it_stops(&self) -> bool {
        let room = match self.workload.kind {
            WorkloadKind::DaemonSet if self.workload.has_pods() => self.workload.strategy.room(1),
            _ => self.rolling_update(),
        };
        room.is_some_and(|room| room.unavailable == 0)
    }

    /// Whether a rolling update waits for a new pod while an old one keeps an exclusive volume that
    /// the new one needs on another node, or on none. Old pods that are together on a node must all
    /// be gone before the volume is free; if the new pod must be there too, it is enough that one
    /// of them makes room for it.
    pub(crate) fn rolling_update_deadlocks(&self, room: Room) -> bool {
        let holders = if self.pins_rollouts() { 1 } else { self.workload.replicas.max(1) };
        room.unavailable < holders && (room.surge >= 1 || room.unavailable >= 1)
    }
}
