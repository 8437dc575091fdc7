//! When required pod affinity really keeps pods on one node.
//!
//! A term keeps a workload's pods together only if it matches those pods
//! themselves, and if every other workload it matches is held to the same node:
//! otherwise a new pod may follow the wrong one. Terms over other topologies
//! than the host name, and preferred terms, keep nothing together.

use std::sync::Arc;

use super::World;
use crate::model::Text;
use crate::model::cluster::Lookup;
use crate::model::labels::{LabelSelector, Labels};
use crate::model::pod::{HOSTNAME, PodAffinityTerm};
use crate::model::workload::Workload;

/// What a workload's affinity to its own pods keeps on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// The pods of one revision.
    pub replicas: bool,
    /// The pods of one revision and those of the next.
    pub rollouts: bool,
}

/// What the workload's own required affinity keeps together. `previous` is the
/// workload before the update: its pods must be matched too.
#[must_use]
pub fn self_affinity(
    workload: &Workload,
    previous: Option<&Workload>,
    world: World<'_>,
) -> Together {
    let mut together = Together::default();
    for term in &workload.template.affinity {
        if term.topology_key != HOSTNAME || !matches_itself(term, workload, world) {
            continue;
        }
        let one_revision = by_revision(term, workload);
        if !one_revision && !is_tight(term, workload, world) {
            continue;
        }
        together.replicas = true;
        together.rollouts |= !one_revision
            && previous.is_none_or(|old| selects(term, workload, &old.template.labels));
    }
    together
}

/// Whether a term of `workload` that looks at host names demands, or for
/// anti-affinity forbids, the company of its own pods.
#[must_use]
pub fn matches_itself(term: &PodAffinityTerm, workload: &Workload, world: World<'_>) -> bool {
    selects(term, workload, &workload.template.labels)
        && covers(
            term,
            &workload.metadata.namespace,
            &workload.metadata.namespace,
            world,
        )
        && !term
            .mismatch_label_keys
            .iter()
            .any(|key| has_label(workload, key))
}

/// Whether the term tells one revision's pods from another's.
#[must_use]
pub fn by_revision(term: &PodAffinityTerm, workload: &Workload) -> bool {
    workload
        .kind
        .revision_label()
        .is_some_and(|label| term.match_label_keys.iter().any(|key| key == label))
}

/// Whether one of `follower`'s terms makes its pods go to a node where pods of
/// `leader` are, and to no other.
#[must_use]
pub fn follows(follower: &Workload, leader: &Workload, world: World<'_>) -> bool {
    follower.template.affinity.iter().any(|term| {
        term.topology_key == HOSTNAME
            && reaches(term, follower, leader, world)
            && all_others(term, follower, world, &mut |other| {
                same(other, leader) || same(other, follower)
            })
    })
}

fn has_label(workload: &Workload, key: &str) -> bool {
    workload.template.labels.get(key).is_some() || workload.kind.revision_label() == Some(key)
}

/// Whether every workload the term matches is held by the same term, or follows
/// this workload wherever it goes.
fn is_tight(term: &PodAffinityTerm, workload: &Workload, world: World<'_>) -> bool {
    all_others(term, workload, world, &mut |other| {
        same(other, workload)
            || shares_term(term, workload, other, world)
            || follows(other, workload, world)
    })
}

/// Whether `other` is held by an equal term, so that all the pods it matches
/// are in one place.
fn shares_term(
    term: &PodAffinityTerm,
    workload: &Workload,
    other: &Workload,
    world: World<'_>,
) -> bool {
    other.template.affinity.iter().any(|theirs| {
        theirs.topology_key == HOSTNAME
            && theirs.label_selector == term.label_selector
            && !by_revision(theirs, other)
            && theirs.mismatch_label_keys.is_empty()
            && if term.own_namespace_only() && theirs.own_namespace_only() {
                other.metadata.namespace == workload.metadata.namespace
            } else {
                theirs.namespaces == term.namespaces
                    && theirs.namespace_selector == term.namespace_selector
            }
            && reaches(theirs, other, workload, world)
    })
}

fn reaches(term: &PodAffinityTerm, from: &Workload, to: &Workload, world: World<'_>) -> bool {
    selects(term, from, &to.template.labels)
        && covers(
            term,
            &from.metadata.namespace,
            &to.metadata.namespace,
            world,
        )
}

/// Whether the term, as `owner`'s pods carry it, selects pods with `labels`.
/// Keys in `matchLabelKeys` take their values from the owner's own labels;
/// revision labels are no part of any template and are passed over.
pub(super) fn selects(term: &PodAffinityTerm, owner: &Workload, labels: &Labels) -> bool {
    term.label_selector
        .as_ref()
        .is_some_and(|selector| selector.matches(labels))
        && term
            .match_label_keys
            .iter()
            .all(|key| match owner.template.labels.get(key) {
                Some(value) => labels.get(key) == Some(value),
                None => true,
            })
}

/// Whether the term of a pod in `own` looks into `namespace`. A selector over
/// namespaces that are not known is taken to match the pod's own one only.
pub(super) fn covers(
    term: &PodAffinityTerm,
    own: &Text,
    namespace: &Text,
    world: World<'_>,
) -> bool {
    if term.own_namespace_only() {
        return own == namespace;
    }
    if term.namespaces.contains(namespace) {
        return true;
    }
    let Some(selector) = &term.namespace_selector else {
        return false;
    };
    if selector.is_empty() {
        return true;
    }
    match world.view.namespace(namespace) {
        Lookup::Found(facts) => {
            // The API server sets this label on every namespace.
            selector.matches(
                &facts
                    .metadata
                    .labels
                    .with("kubernetes.io/metadata.name", namespace),
            )
        }
        Lookup::Absent | Lookup::NotSynced => {
            let known: Labels = [("kubernetes.io/metadata.name", namespace.as_str())]
                .into_iter()
                .collect();
            selector.matches(&known) || own == namespace
        }
    }
}

/// Whether `accept` holds for every workload with pods that the term matches.
fn all_others(
    term: &PodAffinityTerm,
    owner: &Workload,
    world: World<'_>,
    accept: &mut dyn FnMut(&Workload) -> bool,
) -> bool {
    let everywhere = LabelSelector::default();
    let selector = term.label_selector.as_ref().unwrap_or(&everywhere);
    let namespace = term
        .own_namespace_only()
        .then_some(owner.metadata.namespace.as_str());
    let mut accepted = true;
    world
        .view
        .visit_workloads(namespace, &selector.match_labels, &mut |other: &Arc<
            Workload,
        >| {
            if other.has_pods() && reaches(term, owner, other, world) && !accept(other) {
                accepted = false;
            }
            accepted
        });
    accepted
}

/// Whether two values are facts about the same object.
#[must_use]
pub fn same(a: &Workload, b: &Workload) -> bool {
    a.kind == b.kind
        && a.metadata.name == b.metadata.name
        && a.metadata.generate_name == b.metadata.generate_name
        && a.metadata.namespace == b.metadata.namespace
}
