//! The conditions under which required pod affinity really keeps pods on one node.
//!
//! Three terms, for workloads with required affinity:
//!
//! * A workload's *leaders* are the other workloads whose pods match all of its terms at once: its
//!   pods go to a node where some of theirs are.
//! * A *follower* does not match its own terms: it waits until there is a leader.
//! * A workload that matches its own terms makes a *group* of itself and its leaders. Its next pod
//!   goes to a node of the group, or anywhere if there is none yet (`satisfyPodAffinity` in
//!   `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`).
//!
//! A group is in one place if no member can go elsewhere: the leaders of each member belong to the
//! group, and each member is either led by all others or a follower, which waits instead of
//! starting anywhere. If one member is not bound like that, a new pod may follow the wrong one.
//!
//! A follower has no fixed place if its leader does not follow it as well: the leader may move at
//! any time. Preferred terms keep nothing together. Terms over wider topologies do so only if each
//! topology domain has one node for the pods.

use super::eligibility::Eligibility;
use super::{Facts, NodeAssumption};
use crate::model::Text;
use crate::model::labels::Labels;
use crate::model::metadata::NAMESPACE_NAME;
use crate::model::pod::{HOSTNAME, PodAffinityTerm};
use crate::model::workload::{Workload, WorkloadKind};

/// The label that holds the name of a StatefulSet's pod.
pub(crate) const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";

/// The label that holds the ordinal of a StatefulSet's pod.
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The pods that a workload's affinity to its own pods keeps on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Together {
    /// The pods of one revision.
    pub replicas: bool,
    /// The pods of one revision and those of the next.
    pub rollouts: bool,
}

/// The pods that the workload's required affinity keeps together. `previous` is the workload before
/// the update, whose pods must be in the place too.
pub(crate) fn self_affinity(
    workload: &Workload,
    previous: Option<&Workload>,
    facts: Facts<'_>,
) -> Together {
    let terms = &workload.template.affinity;
    let has_pods_of = |old: &Workload, group: &Group<'_>| {
        if same(group.anchor, workload) {
            terms.iter().all(|term| selects(term, workload, &old.template.labels))
        } else {
            old.template.affinity == *terms
        }
    };
    let mut groups = groups(workload, facts).peekable();
    Together {
        replicas: groups.peek().is_some()
            // No other workload has the label of its revision.
            || looks_at_nodes(workload, facts)
                && looks_at_revisions(workload)
                && matches_its_own_terms(workload, facts),
        rollouts: groups.any(|group| previous.is_none_or(|old| has_pods_of(old, &group))),
    }
}

/// Those of `others` whose pods no required affinity keeps in one place with the pods of
/// `workload`, whatever happens to either.
pub(super) fn not_in_one_place<'w>(
    workload: &Workload,
    mut others: Vec<&'w Workload>,
    facts: Facts<'_>,
) -> Vec<&'w Workload> {
    if !others.is_empty() {
        for group in groups(workload, facts) {
            others.retain(|other| !group.has(other));
            if others.is_empty() {
                break;
            }
        }
    }
    others
}

/// The places other than beside one leader to which a follower's pods may go.
pub(crate) struct OtherTargets<'a> {
    /// Whether its terms match its own pods, so that the first may start anywhere.
    pub own: bool,
    /// The other leaders that nothing keeps in one place with that one.
    pub leaders: Vec<&'a Workload>,
}

/// The places other than beside `leader` to which the terms of `follower` lead its pods; `None` if
/// they do not lead to `leader`.
pub(crate) fn other_targets<'a>(
    follower: &Workload,
    leader: &Workload,
    facts: Facts<'a>,
) -> Option<OtherTargets<'a>> {
    if !binds(follower, facts) || !has_leader(follower, leader, facts) {
        return None;
    }
    let others = leaders(follower, facts).filter(|other| !same(other, leader)).collect();
    Some(OtherTargets {
        leaders: not_in_one_place(leader, others, facts),
        own: matches_its_own_terms(follower, facts),
    })
}

/// Whether the affinity of `follower` selects the StatefulSet's pod of that name by the label with
/// its name or its ordinal, so that its pods go to that pod's node and no other.
pub(crate) fn follows_pod(
    follower: &Workload,
    set: &Workload,
    pod: &str,
    facts: Facts<'_>,
) -> bool {
    let index = pod.rsplit_once('-').map_or("", |(_, index)| index);
    let terms = &follower.template.affinity;
    let demands = |key: &str, value: &str| {
        terms
            .iter()
            .filter_map(|term| term.label_selector.as_ref())
            .any(|selector| selector.demands(key, value))
    };
    let selects_pod_of = |owner: &Workload, name: &str| {
        let labels = owner.template.labels.with(POD_NAME, name);
        has_leader_with(follower, owner, &labels.with(POD_INDEX, index), facts)
    };
    // Other sets may have a pod of that ordinal as well.
    let is_one_set = || {
        let namespace = Some(set.metadata.namespace.as_str());
        let mut others = facts.view.workloads_with(namespace, Labels::default());
        terms.iter().all(PodAffinityTerm::own_namespace_only)
            && !others.any(|other| {
                other.kind == WorkloadKind::StatefulSet
                    && other.has_pods()
                    && !same(other, set)
                    && selects_pod_of(other, &format!("{}-{index}", other.metadata.name))
            })
    };
    set.kind == WorkloadKind::StatefulSet
        && selects_pod_of(set, pod)
        && (demands(POD_NAME, pod) || (demands(POD_INDEX, index) && is_one_set()))
        && is_follower(follower, facts)
        && leaders(follower, facts).next().is_none()
}

/// Whether the workload's pods wait for pods of others: its terms match none of its own.
pub(super) fn is_follower(workload: &Workload, facts: Facts<'_>) -> bool {
    binds(workload, facts) && !matches_its_own_terms(workload, facts)
}

/// Whether a term of `workload` that looks at host names demands or, in anti-affinity, forbids that
/// its own pods share a node.
pub fn matches_itself(term: &PodAffinityTerm, workload: &Workload, facts: Facts<'_>) -> bool {
    matches_own(term, workload, &workload.template.labels, false, facts)
}

/// Whether a term of `workload` matches those of its own pods that have `labels`, which are of the
/// same revision or of another one.
fn matches_own(
    term: &PodAffinityTerm,
    workload: &Workload,
    labels: &Labels,
    is_other_revision: bool,
    facts: Facts<'_>,
) -> bool {
    let have_in_common = |key: &Text| {
        if workload.kind.revision_label() == Some(key.as_str()) {
            !is_other_revision
        } else {
            workload.template.labels.get(key).is_some()
        }
    };
    selects(term, workload, labels)
        && covers(term, workload, &workload.metadata.namespace, facts)
        && !term.mismatch_label_keys.iter().any(have_in_common)
        && !tells_pods_apart(term, workload)
}

/// Whether required anti-affinity keeps the workload's pods of one revision off each other's nodes.
pub(super) fn keeps_replicas_apart(workload: &Workload, facts: Facts<'_>) -> bool {
    let matches = |term: &PodAffinityTerm| matches_itself(term, workload, facts);
    has_anti_affinity(workload, workload, matches, facts)
}

/// Whether required anti-affinity of `old`'s pods keeps those of `new`, the same workload after an
/// update, off their nodes.
pub(super) fn keeps_off(old: &Workload, new: &Workload, facts: Facts<'_>) -> bool {
    let matches = |term: &PodAffinityTerm| {
        (old.kind.has_revision_label(&term.mismatch_label_keys)
            || !old.kind.has_revision_label(&term.match_label_keys))
            && matches_own(term, old, &new.template.labels, true, facts)
    };
    has_anti_affinity(old, new, matches, facts)
}

/// Whether required anti-affinity of `owner`'s pods keeps those of `off`, another workload, off
/// their nodes.
pub(super) fn keeps_company_off(owner: &Workload, off: &Workload, facts: Facts<'_>) -> bool {
    let matches = |term: &PodAffinityTerm| {
        term.mismatch_label_keys.is_empty()
            && !owner.kind.has_revision_label(&term.match_label_keys)
            && selects(term, owner, &off.template.labels)
            && covers(term, owner, &off.metadata.namespace, facts)
    };
    has_anti_affinity(owner, off, matches, facts)
}

/// Whether a term of `owner`'s required anti-affinity that `matches` the pods of `off` keeps them
/// off its nodes. Only the scheduler evaluates terms, and it never sees a pod with `nodeName`.
fn has_anti_affinity(
    owner: &Workload,
    off: &Workload,
    matches: impl Fn(&PodAffinityTerm) -> bool,
    facts: Facts<'_>,
) -> bool {
    off.template.node_name.is_none()
        && owner
            .template
            .anti_affinity
            .iter()
            .any(|term| matches(term) && every_node_has(&term.topology_key, off, facts))
}

/// Whether both wait for the same pods, and no such pod exists yet.
pub(crate) fn wait_alike(one: &Workload, other: &Workload, facts: Facts<'_>) -> bool {
    one.metadata.namespace == other.metadata.namespace
        && one.template.affinity == other.template.affinity
        && is_follower(one, facts)
        && is_follower(other, facts)
        && leaders(one, facts).next().is_none()
}

/// Whether anti-affinity over the label `key` takes effect on every node where the workload's pods
/// may be: it has no effect on a node without the label. Every node has a host name.
fn every_node_has(key: &str, workload: &Workload, facts: Facts<'_>) -> bool {
    if key == HOSTNAME {
        return true;
    }
    let eligibility = Eligibility::of(workload, None, facts);
    let mut nodes = eligibility.nodes().peekable();
    nodes.peek().is_some() && nodes.all(|node| node.metadata.labels.get(key).is_some())
}

/// Whether the term uses labels that have a different value for each pod, so that it matches no two
/// of them (`updateIdentity` in the Kubernetes source's `stateful_set_utils.go`,
/// `addCompletionIndexLabel` in its `indexed_job_utils.go`).
fn tells_pods_apart(term: &PodAffinityTerm, workload: &Workload) -> bool {
    term.match_label_keys.iter().any(|key| match workload.kind {
        WorkloadKind::StatefulSet => matches!(key.as_str(), POD_INDEX | POD_NAME),
        WorkloadKind::Job | WorkloadKind::CronJob => {
            workload.indexed && key == "batch.kubernetes.io/job-completion-index"
        }
        _ => false,
    })
}

/// Whether the workload's affinity binds all its pods, of every revision, to nodes where others
/// are.
fn binds(workload: &Workload, facts: Facts<'_>) -> bool {
    looks_at_nodes(workload, facts)
        && !looks_at_revisions(workload)
        && workload.template.affinity.iter().all(|term| term.mismatch_label_keys.is_empty())
}

/// Whether the terms' topology domains are single nodes. Only the scheduler evaluates terms, and it
/// never sees a pod with `nodeName`.
fn looks_at_nodes(workload: &Workload, facts: Facts<'_>) -> bool {
    let template = &workload.template;
    template.node_name.is_none()
        && template.affinity.iter().any(|term| {
            term.topology_key == HOSTNAME
                || (facts.nodes != NodeAssumption::Always
                    && Eligibility::of(workload, None, facts).is_one_for_each(&term.topology_key))
        })
}

fn looks_at_revisions(workload: &Workload) -> bool {
    workload
        .template
        .affinity
        .iter()
        .any(|term| workload.kind.has_revision_label(&term.match_label_keys))
}

/// Whether the workload matches its own terms, so that its first pod may start on any node.
fn matches_its_own_terms(workload: &Workload, facts: Facts<'_>) -> bool {
    workload.template.affinity.iter().all(|term| matches_itself(term, workload, facts))
}

/// The groups in one place to which `workload` belongs: its own, or those of its leaders if it is a
/// follower.
fn groups<'a>(workload: &'a Workload, facts: Facts<'a>) -> impl Iterator<Item = Group<'a>> {
    let is_bound = binds(workload, facts);
    let is_own = is_bound && matches_its_own_terms(workload, facts);
    let is_anchor = move |leader: &&Workload| {
        binds(leader, facts)
            && matches_its_own_terms(leader, facts)
            && has_leader(leader, workload, facts)
    };
    let own = is_own.then_some(workload);
    let leaders = (is_bound && !is_own).then(|| leaders(workload, facts));
    own.into_iter()
        .chain(leaders.into_iter().flatten().filter(is_anchor))
        .map(move |anchor| Group { anchor, judged: workload, facts })
        .filter(Group::is_in_one_place)
}

/// A workload that matches its own terms, and its leaders.
struct Group<'a> {
    anchor: &'a Workload,
    /// The workload as it is judged; the view may have another version of it, or none.
    judged: &'a Workload,
    facts: Facts<'a>,
}

impl<'a> Group<'a> {
    fn has(&self, workload: &Workload) -> bool {
        let workload = if same(workload, self.judged) { self.judged } else { workload };
        same(workload, self.anchor) || has_leader(self.anchor, workload, self.facts)
    }

    /// Every member but the anchor.
    fn members(&self) -> impl Iterator<Item = &'a Workload> {
        let judged = self.judged;
        let is_member = !same(judged, self.anchor) && self.has(judged);
        let others = leaders(self.anchor, self.facts).filter(move |leader| !same(leader, judged));
        is_member.then_some(judged).into_iter().chain(others)
    }

    fn is_in_one_place(&self) -> bool {
        self.members().all(|member| {
            binds(member, self.facts)
                && has_leader(member, self.anchor, self.facts)
                && (self.has_the_terms_of(member) || self.holds(member))
        })
    }

    /// Whether a member's terms match the same pods as the anchor's.
    fn has_the_terms_of(&self, member: &Workload) -> bool {
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

    /// Whether a member goes only to the group, and never starts on its own while pods of the group
    /// exist.
    fn holds(&self, member: &Workload) -> bool {
        leaders(member, self.facts).all(|leader| self.has(leader))
            && (is_follower(member, self.facts)
                || self
                    .members()
                    .all(|other| same(other, member) || has_leader(member, other, self.facts)))
    }
}

/// Whether `leader`'s pods match all terms of `workload`.
fn has_leader(workload: &Workload, leader: &Workload, facts: Facts<'_>) -> bool {
    has_leader_with(workload, leader, &leader.template.labels, facts)
}

/// Whether the leader's pods with these labels match all terms of `workload`.
fn has_leader_with(
    workload: &Workload,
    leader: &Workload,
    labels: &Labels,
    facts: Facts<'_>,
) -> bool {
    let terms = &workload.template.affinity;
    !terms.is_empty()
        && facts.view.spend(terms.iter().map(weight).sum())
        && terms.iter().all(|term| {
            selects(term, workload, labels)
                && covers(term, workload, &leader.metadata.namespace, facts)
        })
}

/// The cost of a comparison of a pod with the term, in steps.
fn weight(term: &PodAffinityTerm) -> usize {
    let compared: usize = term
        .label_selector
        .iter()
        .chain(&term.namespace_selector)
        .map(|selector| {
            let listed: usize = selector
                .match_expressions
                .iter()
                .map(|requirement| 1 + requirement.values.len() / 4)
                .sum();
            selector.match_labels.iter().count() + listed
        })
        .sum();
    1 + term.namespaces.len() / 4 + compared
}

/// Whether the term, as `owner`'s pods carry it, selects pods with `labels`. Keys in
/// `matchLabelKeys` take their values from the owner's own labels; revision labels are in no
/// template and are skipped.
fn selects(term: &PodAffinityTerm, owner: &Workload, labels: &Labels) -> bool {
    term.label_selector.as_ref().is_some_and(|selector| selector.matches(labels))
        && term.match_label_keys.iter().all(|key| {
            let own = owner.template.labels.get(key);
            own.is_none() || labels.get(key) == own
        })
}

/// Whether the term of `owner`'s pods looks into `namespace`. If the labels of `namespace` are
/// unknown, only its name is compared; a selector by other labels is assumed to match the pods' own
/// namespace and no other.
fn covers(term: &PodAffinityTerm, owner: &Workload, namespace: &Text, facts: Facts<'_>) -> bool {
    let is_own = owner.metadata.namespace == *namespace;
    if term.own_namespace_only() {
        return is_own;
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
    if let Some(found) = facts.view.namespace(namespace).found() {
        // The API server sets this label on every namespace.
        return selector.matches(&found.metadata.labels.with(NAMESPACE_NAME, namespace));
    }
    let name = |key: &str| (key == NAMESPACE_NAME).then_some(namespace.as_str());
    let by_name =
        selector.match_labels.iter().all(|(key, value)| name(key).is_none_or(|name| name == value))
            && selector.match_expressions.iter().all(|requirement| {
                name(&requirement.key).is_none_or(|name| requirement.accepts(Some(name)))
            });
    selector.matches(&Labels::default().with(NAMESPACE_NAME, namespace)) || is_own && by_name
}

/// The workload's leaders that have pods.
pub(super) fn leaders<'a>(
    workload: &Workload,
    facts: Facts<'a>,
) -> impl Iterator<Item = &'a Workload> {
    let terms = &workload.template.affinity;
    let labels: Labels = terms
        .iter()
        .filter_map(|term| term.label_selector.as_ref())
        .flat_map(|selector| selector.match_labels.iter())
        .collect();
    let is_own = terms.iter().any(PodAffinityTerm::own_namespace_only);
    let namespace = is_own.then_some(workload.metadata.namespace.as_str());
    facts.view.workloads_with(namespace, labels).filter(move |other| {
        other.has_pods() && !same(other, workload) && has_leader(workload, other, facts)
    })
}

/// Whether two values are facts about the same object.
pub fn same(a: &Workload, b: &Workload) -> bool {
    a.kind == b.kind
        && a.metadata.name == b.metadata.name
        && a.metadata.generate_name == b.metadata.generate_name
        && a.metadata.namespace == b.metadata.namespace
}
