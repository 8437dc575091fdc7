//! Other workloads on the same volume, and whether they are on the same node.

use std::sync::Arc;

use super::affinity::{by_revision, covers, follows, matches_itself, same, selects};
use super::placement::OneNode;
use super::{Placement, Situation, UsedVolume, World};
use crate::model::cluster::Turn;
use crate::model::pod::HOSTNAME;
use crate::model::workload::{Workload, WorkloadKind};

/// The other workloads with pods that use `claim`, those left out that are
/// judged later and will name this one then.
#[must_use]
pub fn others(situation: &Situation<'_>, claim: &str) -> Vec<Arc<Workload>> {
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
    let (to_other, to_own) = (follows(own, other, world), follows(other, own, world));
    (to_other && to_own)
        || (to_other && passes(own) && stays_together(other, &theirs))
        || (to_own && passes(other) && stays_together(own, &situation.placement))
        || to_common_place(own, other, world)
}

/// Whether both are held by one and the same affinity, which matches both.
fn to_common_place(own: &Workload, other: &Workload, world: World<'_>) -> bool {
    own.template.affinity.iter().any(|term| {
        term.topology_key == HOSTNAME
            && !by_revision(term, own)
            && matches_itself(term, own, world)
            && other.template.affinity.iter().any(|theirs| {
                theirs.topology_key == HOSTNAME
                    && theirs.label_selector == term.label_selector
                    && !by_revision(theirs, other)
                    && matches_itself(theirs, other, world)
                    && covers(
                        theirs,
                        &other.metadata.namespace,
                        &own.metadata.namespace,
                        world,
                    )
                    && selects(theirs, other, &own.template.labels)
            })
    })
}

/// Whether the workload's pods run to an end, so that they do not hold the
/// volume for good when the workload they follow moves on.
const fn passes(workload: &Workload) -> bool {
    matches!(workload.kind, WorkloadKind::Job | WorkloadKind::CronJob)
}

/// Whether the workload's own pods are in one place, so that following them
/// leads to one node.
fn stays_together(workload: &Workload, placement: &Placement) -> bool {
    workload.replicas <= 1 || placement.pins_replicas()
}
