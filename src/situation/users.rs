//! Who else uses a volume, and whether they are on the same node.

use super::affinity::{POD_NAME, follows, follows_pod, in_one_place, same};
use super::placement::OneNode;
use super::{Facts, Placement, Situation, UsedVolume, volumes};
use crate::cluster::Turn;
use crate::model::workload::Workload;

/// So many claims of a StatefulSet's pods are looked up: a bound to the work that
/// one object can ask for.
const MADE: usize = 256;

/// The claims that a StatefulSet's templates make for its pods: the number of
/// the template, and the claim's name.
pub fn made_claims(workload: &Workload) -> impl Iterator<Item = (usize, String)> {
    let templates = workload.claim_templates.iter().enumerate();
    let claims = templates.flat_map(|(at, template)| {
        let stem = format!("{}-{}", template.metadata.name, workload.metadata.name);
        workload
            .ordinals()
            .map(move |ordinal| (at, format!("{stem}-{ordinal}")))
    });
    claims.take(MADE)
}

/// The other users of `claim` that have pods: workloads, StatefulSets by their
/// templates, bare pods and those of controllers that are not known here. Of two
/// that are judged together, one names the other: the one that runs to an end,
/// else the later one.
#[must_use]
pub fn others<'a>(situation: &Situation<'a>, claim: &str) -> Vec<&'a Workload> {
    let workload = situation.workload;
    let view = situation.facts.view;
    view.workloads_using(&workload.metadata.namespace, claim)
        .into_iter()
        .filter(|other| {
            other.has_pods()
                && !same(other, workload)
                && !other.owner_is_judged()
                && match view.workload_turn(other) {
                    Turn::Never => true,
                    Turn::Earlier => workload.ends() || !other.ends(),
                    Turn::Later => workload.ends() && !other.ends(),
                }
        })
        .collect()
}

/// Whether the pods of two workloads that share `volume` are always on one node.
#[must_use]
pub fn together(situation: &Situation<'_>, other: &Workload, volume: &UsedVolume) -> bool {
    let (own, facts) = (situation.workload, situation.facts);
    if volume.stays_on_its_node {
        return true;
    }
    let theirs = Placement::of(other, None, &volumes::of(other, facts), facts);
    match (&situation.placement.one_node, &theirs.one_node) {
        (Some(OneNode::Nowhere | OneNode::Assumed), Some(_))
        | (Some(_), Some(OneNode::Nowhere | OneNode::Assumed)) => return true,
        // Two volumes that stay where they are may be on two nodes.
        (Some(ours), Some(theirs)) if ours == theirs => return true,
        _ => {}
    }
    in_one_place(own, other, facts)
        || (own.ends() && follows_maker(own, other, volume, facts))
        || (other.ends() && follows_maker(other, own, volume, facts))
        || (own.ends() && stays_together(other, &theirs) && follows(own, other, facts))
        || (other.ends() && stays_together(own, &situation.placement) && follows(other, own, facts))
}

/// The labels by which the pods of `workload` that hold `claim` are found, as text;
/// `None` where they have none, or too many for a sentence.
#[must_use]
pub fn marks(workload: &Workload, claim: &str) -> Option<String> {
    if let Some(pod) = pod_of_claim(workload, claim) {
        return Some(format!("{POD_NAME}={pod}"));
    }
    let labels = workload.template.labels.iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    (1..=3).contains(&labels.len()).then(|| labels.join(","))
}

/// The pod for which the StatefulSet `set` makes `claim`.
fn pod_of_claim<'a>(set: &Workload, claim: &'a str) -> Option<&'a str> {
    let template = set.template_of_claim(claim)?;
    claim
        .strip_prefix(template.metadata.name.as_str())?
        .strip_prefix('-')
}

/// Whether `follower` goes to the node of the pod for which the StatefulSet makes
/// the volume's claim.
fn follows_maker(
    follower: &Workload,
    set: &Workload,
    volume: &UsedVolume,
    facts: Facts<'_>,
) -> bool {
    let claim = volume.claim.as_deref().unwrap_or_default();
    pod_of_claim(set, claim).is_some_and(|pod| follows_pod(follower, set, pod, facts))
}

/// Whether the workload's own pods are in one place, so that following them
/// leads to one node.
fn stays_together(workload: &Workload, placement: &Placement) -> bool {
    workload.replicas <= 1 || placement.pins_replicas()
}
