//! When required pod affinity really keeps pods on one node.
//!
//! A pod counts for the scheduler only if it matches all terms of the pod to be
//! placed at once, and only the first pod of all that match goes where it likes,
//! provided it matches all of its own terms itself (`satisfyPodAffinity` in
//! `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`). So the terms
//! of a workload select one set of others together.
//!
//! Terms that match the workload's own pods make a group of the workload and all
//! others they match. While any pod of the group is there, the workload's next
//! one must go to its node. The group is in one place if that is so for every
//! workload of it: otherwise a new pod may follow the wrong one. It is so for
//! those whose own terms match nobody outside the group, and either all of the
//! group or not themselves: these wait for somebody to follow, instead of going
//! first and anywhere.
//!
//! Who follows somebody that is not tied to them in turn is in no place: the
//! leader may move at any time. Terms over other topologies than the host name
//! alone, and preferred terms, keep nothing together.

use std::sync::Arc;

use super::World;
use crate::model::Text;
use crate::model::cluster::Lookup;
use crate::model::labels::Labels;
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

/// What the workload's required affinity keeps together. `previous` is the
/// workload before the update: its pods, too, must be in the place.
#[must_use]
pub fn self_affinity(
    workload: &Workload,
    previous: Option<&Workload>,
    world: World<'_>,
) -> Together {
    let mut together = Together {
        // Nobody else has the label of its revision.
        replicas: looks_at_hosts(workload)
            && looks_at_revisions(workload)
            && counts_itself(workload, world),
        rollouts: false,
    };
    groups(workload, world, &mut |group| {
        together.replicas = true;
        together.rollouts = previous.is_none_or(|old| {
            if same(group.anchor, workload) {
                let terms = &workload.template.affinity;
                terms
                    .iter()
                    .all(|term| selects(term, workload, &old.template.labels))
            } else {
                old.template.affinity == workload.template.affinity
            }
        });
        together.rollouts
    });
    together
}

/// Whether required affinity keeps the pods of both workloads in one place,
/// whatever happens to either.
#[must_use]
pub fn in_one_place(workload: &Workload, other: &Workload, world: World<'_>) -> bool {
    groups(workload, world, &mut |group| group.has(other))
}

/// Whether `follower`'s pods wait for those of `leader` and go to their node, or
/// to that of workloads in the same place, and to no other.
#[must_use]
pub fn follows(follower: &Workload, leader: &Workload, world: World<'_>) -> bool {
    only_follows(follower, world)
        && reaches(follower, leader, world)
        && all_others(follower, world, &mut |other| {
            same(other, leader) || in_one_place(leader, other, world)
        })
}

/// Whether the workload's pods can only go to nodes of others, of which there
/// are some, and `accept` takes all of these.
pub fn is_led(
    workload: &Workload,
    world: World<'_>,
    accept: &mut dyn FnMut(&Workload) -> bool,
) -> bool {
    let mut any = false;
    only_follows(workload, world)
        && all_others(workload, world, &mut |other| {
            any = true;
            accept(other)
        })
        && any
}

fn only_follows(workload: &Workload, world: World<'_>) -> bool {
    can_hold(workload) && !counts_itself(workload, world)
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

/// Whether the workload's affinity can keep its pods with others at all.
fn can_hold(workload: &Workload) -> bool {
    looks_at_hosts(workload)
        && !looks_at_revisions(workload)
        && (workload.template.affinity.iter()).all(|term| term.mismatch_label_keys.is_empty())
}

fn looks_at_hosts(workload: &Workload) -> bool {
    let mut terms = workload.template.affinity.iter();
    terms.any(|term| term.topology_key == HOSTNAME)
}

fn looks_at_revisions(workload: &Workload) -> bool {
    let mut terms = workload.template.affinity.iter();
    terms.any(|term| by_revision(term, workload))
}

/// Whether the workload's affinity matches its own pods, so that the first of
/// them goes where it likes.
fn counts_itself(workload: &Workload, world: World<'_>) -> bool {
    let mut terms = workload.template.affinity.iter();
    terms.all(|term| matches_itself(term, workload, world))
}

/// Calls `accept` with each group in one place to which `workload` belongs, until
/// it returns `true`; whether it did.
fn groups(
    workload: &Workload,
    world: World<'_>,
    accept: &mut dyn FnMut(&Group<'_>) -> bool,
) -> bool {
    let mut ask = |anchor: &Workload| {
        let group = Group {
            anchor,
            judged: workload,
            world,
        };
        group.is_in_one_place() && accept(&group)
    };
    if !can_hold(workload) {
        return false;
    }
    if counts_itself(workload, world) {
        return ask(workload);
    }
    // Affinity that only leads to others is held by theirs.
    !all_others(workload, world, &mut |leader| {
        !(can_hold(leader)
            && counts_itself(leader, world)
            && reaches(leader, workload, world)
            && ask(leader))
    })
}

/// A workload whose affinity matches its own pods, and all others that it matches.
struct Group<'a> {
    anchor: &'a Workload,
    /// The workload as it is judged, which the view may know otherwise or not at all.
    judged: &'a Workload,
    world: World<'a>,
}

impl Group<'_> {
    fn has(&self, workload: &Workload) -> bool {
        let workload = if same(workload, self.judged) {
            self.judged
        } else {
            workload
        };
        same(workload, self.anchor) || reaches(self.anchor, workload, self.world)
    }

    /// Whether `accept` holds for everybody in the group but the anchor.
    fn all(&self, accept: &mut dyn FnMut(&Workload) -> bool) -> bool {
        let is_judged_too = !same(self.judged, self.anchor) && self.has(self.judged);
        (!is_judged_too || accept(self.judged))
            && all_others(self.anchor, self.world, &mut |other| {
                same(other, self.judged) || accept(other)
            })
    }

    fn is_in_one_place(&self) -> bool {
        self.all(&mut |member| {
            can_hold(member)
                && reaches(member, self.anchor, self.world)
                && (self.is_repeated_by(member) || self.binds(member))
        })
    }

    /// Whether a member's affinity matches the same pods as the anchor's.
    fn is_repeated_by(&self, member: &Workload) -> bool {
        let (ours, theirs) = (&self.anchor.template.affinity, &member.template.affinity);
        let one_namespace = member.metadata.namespace == self.anchor.metadata.namespace;
        ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(ours, theirs)| {
                ours.label_selector == theirs.label_selector
                    && ours.match_label_keys.is_empty()
                    && theirs.match_label_keys.is_empty()
                    && ours.namespaces == theirs.namespaces
                    && ours.namespace_selector == theirs.namespace_selector
                    && (one_namespace || !ours.own_namespace_only())
            })
    }

    /// Whether a member's affinity leads to the group alone, and the member does
    /// not go first while anybody of the group is there.
    fn binds(&self, member: &Workload) -> bool {
        all_others(member, self.world, &mut |other| self.has(other))
            && (!counts_itself(member, self.world)
                || self.all(&mut |other| same(other, member) || reaches(member, other, self.world)))
    }
}

fn has_label(workload: &Workload, key: &str) -> bool {
    workload.template.labels.get(key).is_some() || workload.kind.revision_label() == Some(key)
}

/// Whether the pods of `to` count for the affinity of `from`.
fn reaches(from: &Workload, to: &Workload, world: World<'_>) -> bool {
    let terms = &from.template.affinity;
    !terms.is_empty()
        && terms.iter().all(|term| {
            selects(term, from, &to.template.labels)
                && covers(
                    term,
                    &from.metadata.namespace,
                    &to.metadata.namespace,
                    world,
                )
        })
}

/// Whether the term, as `owner`'s pods carry it, selects pods with `labels`.
/// Keys in `matchLabelKeys` take their values from the owner's own labels;
/// revision labels are no part of any template and are passed over.
fn selects(term: &PodAffinityTerm, owner: &Workload, labels: &Labels) -> bool {
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
fn covers(term: &PodAffinityTerm, own: &Text, namespace: &Text, world: World<'_>) -> bool {
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

/// Whether `accept` holds for every other workload with pods that count for the
/// affinity of `owner`.
fn all_others(
    owner: &Workload,
    world: World<'_>,
    accept: &mut dyn FnMut(&Workload) -> bool,
) -> bool {
    let terms = &owner.template.affinity;
    let labels: Labels = terms
        .iter()
        .filter_map(|term| term.label_selector.as_ref())
        .flat_map(|selector| selector.match_labels.iter())
        .collect();
    let namespace = terms
        .iter()
        .any(PodAffinityTerm::own_namespace_only)
        .then_some(owner.metadata.namespace.as_str());
    let mut accepted = true;
    let mut visit = |other: &Arc<Workload>| {
        if other.has_pods() && !same(other, owner) && reaches(owner, other, world) && !accept(other)
        {
            accepted = false;
        }
        accepted
    };
    world.view.visit_workloads(namespace, &labels, &mut visit);
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
