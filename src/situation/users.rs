//! Who else uses a volume, and whether they are on the same node.

use super::affinity::{follows, in_one_place, same};
use super::placement::OneNode;
use super::{Placement, Situation, UsedVolume};
use crate::cluster::Turn;
use crate::model::workload::{Workload, WorkloadKind};

/// The other workloads with pods that use `claim`, those left out that are
/// judged later and will name this one then.
#[must_use]
pub fn others<'a>(situation: &Situation<'a>, claim: &str) -> Vec<&'a Workload> {
    let workload = situation.workload;
    let view = situation.world.view;
    view.workloads_using(&workload.metadata.namespace, claim)
        .into_iter()
        .filter(|other| {
            other.has_pods()
                && !same(other, workload)
                && !other.owner_is_judged()
                && view.workload_turn(other) != Turn::Later
        })
        .collect()
}

/// Whether the pods of two workloads that share `volume` are always on one node.
#[must_use]
pub fn together(situation: &Situation<'_>, other: &Workload, volume: &UsedVolume) -> bool {
    let (own, world) = (situation.workload, situation.world);
    if volume.stays_on_its_node {
        return true;
    }
    let theirs = Situation::of(other, None, world).placement;
    if let (Some(a), Some(b)) = (&situation.placement.one_node, &theirs.one_node) {
        match (a, b) {
            (OneNode::Named(a), OneNode::Named(b)) if a != b => {}
            _ => return true,
        }
    }
    in_one_place(own, other, world)
        || (passes(own) && stays_together(other, &theirs) && follows(own, other, world))
        || (passes(other)
            && stays_together(own, &situation.placement)
            && follows(other, own, world))
}

/// Whether the workload's pods run to an end, so that they do not hold the
/// volume for good when the workload they follow moves on.
pub const fn passes(workload: &Workload) -> bool {
    matches!(workload.kind, WorkloadKind::Job | WorkloadKind::CronJob)
}

/// Whether the workload's own pods are in one place, so that following them
/// leads to one node.
fn stays_together(workload: &Workload, placement: &Placement) -> bool {
    workload.replicas <= 1 || placement.pins_replicas()
}
