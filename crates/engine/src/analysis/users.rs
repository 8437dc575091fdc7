//! The other users of a volume, and whether they are on the same node.

use std::cell::LazyCell;

use super::affinity::{
    POD_NAME, follows_pod, is_follower, leaders, not_in_one_place, other_targets, same, wait_alike,
};
use super::eligible_nodes::{OneNode, one_node_of};
use super::whereabouts::attached_to;
use super::{Analysis, Facts, Placement, UsedVolume, volumes};
use crate::model::Text;
use crate::model::labels::Labels;
use crate::model::workload::{Workload, WorkloadKind};
use crate::snapshot::Turn;

/// The other users of `claim` that have pods: workloads, StatefulSets by their templates, bare pods
/// and pods of controllers that are not known here. If two of them are judged together, only one
/// names the other: the one that comes and goes (a Job, a CronJob, a bare pod), else the later one.
pub(crate) fn others<'a>(situation: &Analysis<'a>, claim: &str) -> Vec<&'a Workload> {
    let mut others = all_others(situation, claim);
    others.retain(|other| is_named(situation, other));
    others
}

/// Whether a finding about both is reported on the workload and names `other`.
pub(crate) fn is_named(situation: &Analysis<'_>, other: &Workload) -> bool {
    let workload = situation.workload;
    match situation.facts.view.workload_turn(other) {
        Turn::Never => true,
        Turn::Earlier => comes_and_goes(workload) || !comes_and_goes(other),
        Turn::Later => comes_and_goes(workload) && !comes_and_goes(other),
    }
}

/// Whether the controller of `owner` adopts `orphan`, which has no controller: it has all labels of
/// the owner's pods, and so matches its selector.
fn adopts(owner: &Workload, orphan: &Workload) -> bool {
    let takes = match owner.kind {
        // These choose pods by the hash of their template as well, so they adopt only ReplicaSets.
        WorkloadKind::Deployment | WorkloadKind::Rollout => WorkloadKind::ReplicaSet,
        WorkloadKind::DeploymentConfig => WorkloadKind::ReplicationController,
        WorkloadKind::ReplicaSet
        | WorkloadKind::ReplicationController
        | WorkloadKind::DaemonSet
        | WorkloadKind::CloneSet => WorkloadKind::Pod,
        // A StatefulSet chooses pods by their names, a Job by its uid.
        WorkloadKind::StatefulSet
        | WorkloadKind::Job
        | WorkloadKind::CronJob
        | WorkloadKind::ScaledJob
        | WorkloadKind::Pod => return false,
    };
    let labels = &owner.template.labels;
    orphan.kind == takes
        && orphan.metadata.controller.is_none()
        && orphan.metadata.namespace == owner.metadata.namespace
        && !labels.is_empty()
        && labels.is_subset(&orphan.template.labels)
}

/// Whether it runs for a while, unlike workloads that run forever.
pub(crate) fn comes_and_goes(workload: &Workload) -> bool {
    workload.ends() || workload.kind == WorkloadKind::Pod
}

/// The other users of `claim`, the claim of `volume`, whose pods may be on another node than the
/// workload's.
pub(crate) fn apart<'a>(
    situation: &Analysis<'a>,
    claim: &str,
    volume: &UsedVolume,
) -> Vec<&'a Workload> {
    let (workload, view) = (situation.workload, situation.facts.view);
    let all = all_others(situation, claim);
    let mut others = all.clone();
    others.retain(|other| is_named(situation, other));
    let mut apart = not_co_located(situation, others, volume);
    if view.overlay().batch.is_none() || comes_and_goes(workload) {
        return apart;
    }
    // If affinity keeps some of the workloads that are judged together in one place, the finding is
    // reported on the one that it does not keep there.
    if holds_together(workload, || all.clone(), situation.facts) {
        apart.retain(|other| view.workload_turn(other) != Turn::Earlier || comes_and_goes(other));
        return apart;
    }
    let mut later = all.clone();
    later.retain(|other| {
        let rest = || -> Vec<_> { all.iter().copied().filter(|user| !same(user, other)).collect() };
        view.workload_turn(other) == Turn::Later
            && !comes_and_goes(other)
            && holds_together(other, rest, situation.facts)
    });
    apart.extend(not_co_located(situation, later, volume));
    apart
}

/// The other users of `claim` that have pods, whenever they are judged.
pub(crate) fn all_others<'a>(situation: &Analysis<'a>, claim: &str) -> Vec<&'a Workload> {
    users_of(situation, &situation.workload.metadata.namespace, claim)
}

/// As `all_others`, for a claim in `namespace`.
pub(crate) fn users_of<'a>(
    situation: &Analysis<'a>,
    namespace: &str,
    claim: &str,
) -> Vec<&'a Workload> {
    let workload = situation.workload;
    let mut users = situation.facts.view.workloads_using(namespace, claim);
    users.retain(|other| {
        other.has_pods()
            && !same(other, workload)
            && !owns(workload, other)
            && !adopts(workload, other)
            && !adopts(other, workload)
    });
    users
}

/// Whether `owner` controls `owned`.
fn owns(owner: &Workload, owned: &Workload) -> bool {
    owned.judged_owner().is_some_and(|(kind, controller)| {
        kind == owner.kind
            && controller.name == owner.metadata.name
            && !controller.uid.contradicts(owner.metadata.uid)
            && owned.metadata.namespace == owner.metadata.namespace
    })
}

/// Whether affinity keeps the workload in one place with one of `others`, which are only looked up
/// if it has affinity: most of many workloads on one claim have none.
pub(crate) fn holds_together<'a>(
    workload: &Workload,
    others: impl FnOnce() -> Vec<&'a Workload>,
    facts: Facts<'_>,
) -> bool {
    !workload.template.affinity.is_empty() && {
        let others = others();
        let count = others.len();
        not_in_one_place(workload, others, facts).len() < count
    }
}

/// The workloads of `others`, which use `volume` too, whose pods may be on another node.
pub(crate) fn not_co_located<'a>(
    situation: &Analysis<'a>,
    mut others: Vec<&'a Workload>,
    volume: &UsedVolume,
) -> Vec<&'a Workload> {
    if volume.stays_on_its_node {
        return Vec::new();
    }
    let (own, facts) = (situation.workload, situation.facts);
    others.retain(|other| !is_on_the_node(situation, other));
    let mut apart = not_in_one_place(own, others, facts);
    let claim = volume.claim.as_deref().unwrap_or_default();
    // Whether it goes to the node of the pod for which the StatefulSet makes the volume's claim.
    let follows_pod_of = |follower: &Workload, set: &Workload| {
        pod_of_claim(set, claim).is_some_and(|pod| follows_pod(follower, set, pod, facts))
    };
    let users = LazyCell::new(|| all_others(situation, claim));
    // The users whose pod for the claim the workload follows.
    let makers = LazyCell::new(|| -> Vec<&Workload> {
        users.iter().copied().filter(|set| follows_pod_of(own, set)).collect()
    });
    let own_leaders = LazyCell::new(|| followed(situation, own));
    // Whether `follower` goes to the node of `host`: to the pod that has the volume, or to all of
    // its pods, which are in one place.
    let joins = |follower: &Workload, host: &Workload| {
        follows_pod_of(follower, host) || follows(situation, follower, host)
    };
    let is_user = |leader: &&Workload| users.iter().any(|user| same(user, leader));
    // Whether a follower of these leaders goes to the node of `host`. If the host already has its
    // node, it and a leader that uses the volume decide between them which has the volume, and the
    // follower goes where the leader is.
    let lead_to = |leaders: &[&Workload], host: &Workload| {
        let is_placed = host.kind == WorkloadKind::Pod && host.template.node_name.is_some();
        are_led(situation, leaders, host) || is_placed && leaders.iter().any(is_user)
    };
    apart.retain(|other| {
        // One of the two runs to completion on the node of the other.
        let own_joins = own.ends() && (joins(own, other) || lead_to(&own_leaders, other));
        let other_joins =
            || other.ends() && (joins(other, own) || lead_to(&followed(situation, other), own));
        let both_follow = || {
            own.ends()
                && other.ends()
                && (wait_alike(own, other, facts)
                    || makers.iter().any(|set| follows_pod_of(other, set)))
        };
        !(own_joins || other_joins() || both_follow())
    });
    apart
}

/// Whether the pods of both workloads are on one node without regard to each other.
fn is_on_the_node(situation: &Analysis<'_>, other: &Workload) -> bool {
    let Some(ours) = &situation.placement.one_node else {
        return false;
    };
    match (ours, one_node_of(other, situation.facts)) {
        (OneNode::Nowhere | OneNode::Assumed, Some(_))
        | (_, Some(OneNode::Nowhere | OneNode::Assumed)) => true,
        // Two volumes that stay where they are may be on two nodes.
        (ours, theirs) => theirs.as_ref() == Some(ours),
    }
}

/// Whether `follower` goes where `companion` is: it follows the companion, or a leader that is in
/// one place with the companion or that the companion follows as well.
fn is_beside(situation: &Analysis<'_>, follower: &Workload, companion: &Workload) -> bool {
    follows(situation, follower, companion)
        || are_led(situation, &followed(situation, follower), companion)
}

/// The most leaders that are examined.
const MOST_LEADERS: usize = 16;

/// The leaders that `follower` follows: its affinity leads it to each of them and nowhere else.
fn followed<'a>(situation: &Analysis<'a>, follower: &Workload) -> Vec<&'a Workload> {
    if !is_follower(follower, situation.facts) {
        return Vec::new();
    }
    leaders(follower, situation.facts)
        .take(MOST_LEADERS)
        .filter(|leader| follows(situation, follower, leader))
        .collect()
}

/// Whether `follower` goes where the pods of `leader` are, which are in one place, and nowhere
/// else.
fn follows(situation: &Analysis<'_>, follower: &Workload, leader: &Workload) -> bool {
    let facts = situation.facts;
    is_follower(follower, facts)
        && other_targets(follower, leader, facts).is_some_and(|targets| targets.leaders.is_empty())
        && stays_together(situation, leader)
}

/// Whether `companion` is where one of the `leaders` is: in one place with it, or as its follower.
fn are_led(situation: &Analysis<'_>, leaders: &[&Workload], companion: &Workload) -> bool {
    leaders.iter().any(|leader| {
        not_in_one_place(leader, vec![companion], situation.facts).is_empty()
            || comes_and_goes(companion) && follows(situation, companion, leader)
    })
}

/// Whether all pods of `workload`, the one judged or another one, are in one place.
pub(crate) fn stays_together(situation: &Analysis<'_>, workload: &Workload) -> bool {
    let facts = situation.facts;
    workload.replicas <= 1
        || if same(workload, situation.workload) {
            situation.placement.pins_replicas()
        } else {
            Placement::of(workload, None, &volumes::of(workload, facts), facts).pins_replicas()
        }
}

/// The way in which a Job or a bare pod gets its node while a lasting workload uses the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    /// It goes where the pod of that workload is.
    Beside,
    /// It goes to this node, which has the volume.
    ToTheVolume(Text),
    /// It goes to this node; the node of the volume is not known.
    To(Text),
}

/// The visit of one of the two to the other, if there is one: the visitor first. A visitor on the
/// node of the volume starts at once, and the host blocks nobody as long as it stays there.
pub(crate) fn visit<'w>(
    situation: &Analysis<'w>,
    other: &'w Workload,
    volume: &UsedVolume,
) -> Option<(Visit, &'w Workload, &'w Workload)> {
    let (own, facts) = (situation.workload, situation.facts);
    let is_visitor = |user: &Workload| matches!(user.kind, WorkloadKind::Job | WorkloadKind::Pod);
    let is_owned_pod =
        |user: &Workload| user.kind == WorkloadKind::Pod && user.metadata.controller.is_some();
    // An existing pod may stay for good, as one of an unknown controller does.
    let (visitor, host) = if is_visitor(own) && !other.ends() {
        (own, other)
    } else if is_visitor(other) && other.ends() && !is_owned_pod(other) && !own.ends() {
        (other, own)
    } else {
        return None;
    };
    if visitor.kind == WorkloadKind::Pod && is_beside(situation, visitor, host) {
        return Some((Visit::Beside, visitor, host));
    }
    let Some(OneNode::Named(node)) = one_node_of(visitor, facts) else {
        return None;
    };
    if one_node_of(host, facts).is_some() || !stays_together(situation, host) {
        return None;
    }
    let attached = attached_to(volume, &own.metadata.namespace, facts);
    let visit = match &*attached {
        [] => Visit::To(node),
        nodes if nodes.contains(&node) => Visit::ToTheVolume(node),
        _ => return None,
    };
    Some((visit, visitor, host))
}

/// Whether `workload` follows one of `leaders`, and goes nowhere else.
pub(crate) fn follows_one(
    situation: &Analysis<'_>,
    workload: &Workload,
    leaders: &[&Workload],
) -> bool {
    leaders
        .iter()
        .filter(|leader| !same(leader, workload))
        .any(|leader| is_beside(situation, workload, leader))
}

/// The labels by which the pods of `workload` that hold `claim` are found.
pub(crate) fn marks(workload: &Workload, claim: &str) -> Labels {
    match pod_of_claim(workload, claim) {
        Some(pod) => [(POD_NAME, pod)].into_iter().collect(),
        None => workload.template.labels.clone(),
    }
}

/// The pod for which the StatefulSet `set` makes `claim`.
fn pod_of_claim<'a>(set: &Workload, claim: &'a str) -> Option<&'a str> {
    let template = set.template_of_claim(claim)?;
    claim.strip_prefix(template.metadata.name.as_str())?.strip_prefix('-')
}
