//! Who else uses a volume, and whether they are on the same node.

use super::affinity::{follows, in_one_place, same};
use super::placement::OneNode;
use super::{Placement, Situation, UsedVolume};
use crate::cluster::Turn;
use crate::model::workload::Workload;

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
    match (&situation.placement.one_node, &theirs.one_node) {
        (Some(OneNode::Nowhere | OneNode::Assumed), Some(_))
        | (Some(_), Some(OneNode::Nowhere | OneNode::Assumed)) => return true,
        // Two volumes that stay where they are may be on two nodes.
        (Some(ours), Some(theirs)) if ours == theirs => return true,
        _ => {}
    }
    in_one_place(own, other, world)
        || (own.ends() && stays_together(other, &theirs) && follows(own, other, world))
        || (other.ends() && stays_together(own, &situation.placement) && follows(other, own, world))
}

/// Whether the workload's own pods are in one place, so that following them
/// leads to one node.
fn stays_together(workload: &Workload, placement: &Placement) -> bool {
    workload.replicas <= 1 || placement.pins_replicas()
}
