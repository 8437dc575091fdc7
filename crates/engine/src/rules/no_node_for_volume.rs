//! No node can have both the pod and its volume.
//!
//! # Fires on
//!
//! * A workload with pods whose bound volumes are limited to some nodes (a zone, a host), if none
//!   of the known nodes that the pods accept reaches the volumes. A change of `nodeSelector`,
//!   affinity or tolerations can cause that.
//! * A workload with two volumes in different zones, neither of which can leave its zone.
//! * A StatefulSet with required anti-affinity between its pods, if their volumes are in fewer
//!   places than there are pods.
//! * `nodeName` in a pod template beside an unbound claim whose class binds when a pod is
//!   scheduled (`volumeBindingMode: WaitForFirstConsumer`).
//!
//! The outcome is `stuck`. If another node could still join and do (the pods ask for a pool, not
//! for another zone or host than the volume's), it is a warning.
//!
//! # Why
//!
//! A volume stays where it was made. With Recreate the update first stops the running pod, and its
//! successor stays Pending: no node passes both the volume's node affinity and the pod's own. A
//! pod that names its node never meets the scheduler, and only the scheduler chooses the node for
//! a waiting claim (`volume.kubernetes.io/selected-node`).
//!
//! # Example
//!
//! ```yaml
//! # The bound volume is in zone a; all nodes of pool "new" are in zone b.
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: mail}
//! spec:
//!   template:
//!     spec:
//!       nodeSelector: {pool: new}
//!       volumes:
//!       - name: mail
//!         persistentVolumeClaim: {claimName: mail}
//! ```
//!
//! # What to do
//!
//! Let the pods go to a node that reaches the volume, or first move the data (snapshot and restore
//! into the other zone). In place of `nodeName` use `nodeSelector: {kubernetes.io/hostname:
//! NODE}`.
//!
//! # Silent on
//!
//! Unbound claims, pods that no known node takes even without their volumes, clusters without
//! known nodes, and clusters where Karpenter makes nodes.

use hashbrown::{HashMap, HashSet};

use super::{Certainty, Hazard, On, Outcome, Rule, messages};
use crate::analysis::affinity::matches_itself;
use crate::analysis::binding::class_of;
use crate::analysis::eligibility::{Eligibility, is_elastic, only_host};
use crate::analysis::{Analysis, Facts, NodeAssumption, topology};
use crate::model::Text;
use crate::model::claim::Claim;
use crate::model::node::{Node, NodeSelector, NodeSelectorTerm};
use crate::model::pod::HOSTNAME;
use crate::model::selector::{Operator, Requirement};
use crate::model::storage_class::StorageClass;
use crate::model::strategy::Strategy;
use crate::model::workload::{Workload, WorkloadKind};

pub(super) const RULE: Rule = Rule {
    code: "no-node-for-volume",
    at_fault: "the pod may not go where the volume is",
    on: &[On::Workload(judge)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    if !analysis.workload.has_pods() {
        return;
    }
    found.extend(never_bound(analysis));
    found.extend(out_of_reach(analysis));
    found.extend(crowded(analysis));
}

/// A claim that waits for the scheduler, which never sees its pod.
fn never_bound(analysis: &Analysis<'_>) -> Option<Hazard> {
    let (workload, facts) = (analysis.workload, analysis.facts);
    let node = workload.template.node_name.as_ref()?;
    let waits = |claim: &Claim| {
        claim.spec.volume_name.is_empty()
            && class_of(claim, facts).is_ok_and(StorageClass::binds_late)
            && facts.view.volume_of(&claim.metadata).is_none()
    };
    let namespace = &workload.metadata.namespace;
    // The scheduler may bind the claim for another pod.
    let is_helped = |name: &str| {
        facts
            .view
            .workloads_using(namespace, name)
            .into_iter()
            .any(|user| user.has_pods() && user.template.node_name.is_none())
    };
    let named = workload.template.claims().find(|name| {
        facts.view.claim(namespace, name).found().is_some_and(waits) && !is_helped(name)
    });
    let mut made = workload
        .claim_templates
        .iter()
        .chain(workload.template.ephemeral.iter().map(|ephemeral| &ephemeral.claim));
    let name = named.or_else(|| Some(&made.find(|claim| waits(claim))?.metadata.name))?;
    Some(Hazard {
        field_path: format!("{}.nodeName", workload.kind.pod_spec_path()),
        volumes: vec![name.clone()],
        what: format!(
            "nodeName {node} bypasses the scheduler, which alone gets claim \"{name}\" bound, as its class waits for the first consumer: the pod never starts."
        ),
        advice: format!(
            "Use nodeSelector {{kubernetes.io/hostname: {node}}} in place of nodeName."
        ),
        brief: format!("claim \"{name}\" is never bound with nodeName; use nodeSelector"),
        ..RULE.hazard(Outcome::Stuck)
    })
}

/// A claim of the pods, and the nodes that its bound volume is limited to.
struct Limited {
    claim: Text,
    reach: NodeSelector,
}

impl Limited {
    fn of(claim: &str, workload: &Workload, facts: Facts<'_>) -> Option<Self> {
        let namespace = &workload.metadata.namespace;
        let volume = facts.view.bound_volume(namespace, claim)?;
        Some(Self { claim: claim.into(), reach: topology::reach(volume)? })
    }
}

/// Bound volumes that none of the nodes to which the pods may go can reach.
fn out_of_reach(analysis: &Analysis<'_>) -> Option<Hazard> {
    let (workload, facts) = (analysis.workload, analysis.facts);
    if facts.nodes == NodeAssumption::Always {
        return None;
    }
    let of_all: Vec<Limited> =
        workload.template.claims().filter_map(|name| Limited::of(name, workload, facts)).collect();
    in_two_places(&of_all, analysis).or_else(|| unreachable(&of_all, analysis))
}

/// Two volumes that cannot be used on the same node.
fn in_two_places(limited: &[Limited], analysis: &Analysis<'_>) -> Option<Hazard> {
    let (one, other) = limited.iter().take(MOST_COMPARED).enumerate().find_map(|(at, one)| {
        let other = limited[at + 1..]
            .iter()
            .take(MOST_COMPARED)
            .find(|other| exclude_each_other(&one.reach, &other.reach))?;
        Some((one, other))
    })?;
    let [here, there] = [one, other].map(|claim| place(&claim.reach, analysis));
    let (one, other) = (&one.claim, &other.claim);
    let stops = stops(analysis.workload);
    Some(Hazard {
        field_path: analysis.workload.kind.pod_spec_path().to_owned(),
        volumes: vec![one.clone(), other.clone()],
        what: format!(
            "the volume of claim \"{one}\" cannot leave {here}, and that of claim \"{other}\" cannot leave {there}; no node is in both, so {stops}."
        ),
        advice: "Move the data of one of them to where the other one is (a snapshot and a new claim), or split the pods.".to_owned(),
        brief: format!(
            "claims \"{one}\" and \"{other}\" are in two places, and no node is in both"
        ),
        ..RULE.hazard(Outcome::Stuck)
    })
}

/// The most claims or pods that are compared with each other.
const MOST_COMPARED: usize = 32;

/// Whether no node can match both: every term of the one demands values of a label that every term
/// of the other excludes.
fn exclude_each_other(one: &NodeSelector, other: &NodeSelector) -> bool {
    let differ = |a: &Requirement, b: &Requirement| {
        a.operator == Operator::In
            && a.key == b.key
            && !a.values.iter().any(|value| b.accepts(Some(value)))
    };
    one.terms_that_match().all(|one| {
        other
            .terms_that_match()
            .all(|other| one.requirements().any(|a| other.requirements().any(|b| differ(a, b))))
    })
}

fn unreachable(limited: &[Limited], analysis: &Analysis<'_>) -> Option<Hazard> {
    let (workload, facts) = (analysis.workload, analysis.facts);
    if limited.is_empty() {
        return None;
    }
    let both = Eligibility::of(workload, limited.iter().map(|claim| &claim.reach), facts);
    let without = Eligibility::of(workload, None, facts);
    if both.count() != Some(0) || without.count().unwrap_or_default() == 0 {
        return None;
    }
    let Limited { claim, reach } = limited
        .iter()
        .find(|one| Eligibility::of(workload, [&one.reach], facts).count() == Some(0))
        .or_else(|| limited.first())?;
    if is_elastic(facts) {
        return None;
    }
    let host = only_host(reach);
    let stays = analysis
        .volumes
        .iter()
        .any(|volume| volume.claim.as_ref() == Some(claim) && volume.keeps_its_node());
    let place = place(reach, analysis);
    let by_place = || format!("where {}", place.replacen(' ', " is ", 1));
    let machine = host.map(str::to_owned).or_else(|| stays.then(by_place));
    // If the pods' node selector rules the volume's nodes out, a new node cannot have both.
    let certainty = if host.is_some() || reach.excludes(&workload.template.node_selector) {
        Certainty::Verified
    } else {
        // A node of the right kind in the volume's zone may still join.
        Certainty::Assumed
    };
    Some(Hazard {
        certainty,
        field_path: workload.kind.pod_spec_path().to_owned(),
        volumes: vec![claim.clone()],
        what: format!(
            "no node has both what the pods ask for and the volume of claim \"{claim}\", which cannot leave {place}: {}.",
            stops(workload)
        ),
        advice: match &machine {
            Some(machine) => format!(
                "The data is on the machine {machine}: let the pods go there, bring that machine back, or use a new claim."
            ),
            None => {
                "Let the pods go to nodes that reach the volume, or move the data first.".to_owned()
            }
        },
        brief: match &machine {
            Some(_) => format!(
                "the pods cannot reach the machine of claim \"{claim}\"; use that machine, or a new claim"
            ),
            None => format!("no node can have both the pod and the volume of claim \"{claim}\""),
        },
        ..RULE.hazard(Outcome::Stuck)
    })
}

/// The consequence for the pods, as part of a sentence.
fn stops(workload: &Workload) -> &'static str {
    match workload.kind {
        WorkloadKind::Deployment if matches!(workload.strategy, Strategy::Recreate { .. }) => {
            "Recreate stops the pod that runs, and the new one stays Pending"
        }
        _ => "a new pod stays Pending",
    }
}

/// Pods of a StatefulSet that required anti-affinity keeps apart although the volumes made for them
/// are in too few places.
fn crowded(analysis: &Analysis<'_>) -> Option<Hazard> {
    let (workload, facts) = (analysis.workload, analysis.facts);
    if workload.kind != WorkloadKind::StatefulSet || workload.claim_templates.is_empty() {
        return None;
    }
    let term = workload
        .template
        .anti_affinity
        .iter()
        .find(|term| matches_itself(term, workload, facts))?;
    let pods: Vec<PodPlaces> = workload
        .ordinals()
        .take(MOST_COMPARED)
        .filter_map(|ordinal| {
            let own: Vec<Limited> = workload
                .claim_stems()
                .filter_map(|stem| Limited::of(&format!("{stem}-{ordinal}"), workload, facts))
                .collect();
            let claim = own.first()?.claim.clone();
            let reach = own.iter().map(|limited| &limited.reach);
            let places = places_of(&term.topology_key, workload, reach, facts);
            Some(PodPlaces { ordinal, claim, places })
        })
        .collect();
    let (PodPlaces { ordinal, claim, places }, PodPlaces { claim: other, .. }) = too_many(&pods)?;
    let pod = format!("{}-{ordinal}", workload.metadata.name);
    let names = messages::some(places.iter().map(ToString::to_string).collect());
    let is_host = term.topology_key == HOSTNAME;
    let places_named = if is_host { names } else { format!("{} {names}", term.topology_key) };
    Some(Hazard {
        certainty: if is_host && places.len() == 1 {
            Certainty::Verified
        } else {
            // Another node may join.
            Certainty::Assumed
        },
        field_path: format!("{}.affinity.podAntiAffinity", workload.kind.pod_spec_path()),
        volumes: vec![other.clone(), claim.clone()],
        what: format!(
            "the volumes of claims \"{other}\" and \"{claim}\" can be used on {places_named} only, and the required anti-affinity of the pods lets no two of them be there, so {pod} stays Pending."
        ),
        advice: format!(
            "Make the anti-affinity preferred. Or, if the other pods have the data too, delete claim \"{claim}\" and pod {pod}, so that its volume is made anew elsewhere."
        ),
        brief: format!(
            "the volumes of \"{other}\" and \"{claim}\" are in one place, and anti-affinity keeps their pods apart"
        ),
        ..RULE.hazard(Outcome::Stuck)
    })
}

/// The values of the label `key` on the nodes to which a pod with volumes of that reach may go;
/// empty if no such node is known.
fn places_of<'r>(
    key: &str,
    workload: &'r Workload,
    reach: impl Iterator<Item = &'r NodeSelector>,
    facts: Facts<'r>,
) -> Vec<Text> {
    let mut seen = HashSet::new();
    let eligibility = Eligibility::of(workload, reach, facts);
    eligibility
        .nodes()
        .filter_map(|node| node.metadata.labels.get(key))
        .filter(|place| seen.insert(*place))
        .take(MOST_COMPARED + 1)
        .map(Text::from)
        .collect()
}

/// A pod of a StatefulSet, the first of its claims, and the places where it may be.
struct PodPlaces {
    ordinal: i64,
    claim: Text,
    places: Vec<Text>,
}

/// A pod for which no place is left if each pod takes a place of its own, and another pod that
/// takes one of its places.
fn too_many(pods: &[PodPlaces]) -> Option<(&PodPlaces, &PodPlaces)> {
    let mut taken: HashMap<&Text, usize> = HashMap::new();
    for (at, pod) in pods.iter().enumerate() {
        // If no node is known, or none reaches the volume, something else is wrong.
        if !pod.places.is_empty() && !find_place(at, pods, &mut taken, &mut HashSet::new()) {
            let other = pod.places.iter().find_map(|place| taken.get(place))?;
            return Some((pod, pods.get(*other)?));
        }
    }
    None
}

/// Whether there is a place for a pod, if necessary by moving others (an augmenting path).
fn find_place<'p>(
    at: usize,
    pods: &'p [PodPlaces],
    taken: &mut HashMap<&'p Text, usize>,
    seen: &mut HashSet<&'p Text>,
) -> bool {
    pods[at].places.iter().any(|place| {
        if !seen.insert(place) {
            return false;
        }
        let holder = taken.get(place).copied();
        let is_free = holder.is_none_or(|other| find_place(other, pods, taken, seen));
        if is_free {
            taken.insert(place, at);
        }
        is_free
    })
}

/// The place of a volume, as part of a sentence: by the label that keeps the pods' nodes from it,
/// if there is one.
fn place(reach: &NodeSelector, analysis: &Analysis<'_>) -> String {
    let all = || {
        reach
            .node_selector_terms
            .iter()
            .flat_map(NodeSelectorTerm::requirements)
            .filter(|requirement| !requirement.values.is_empty())
    };
    let refuses = |requirement: &&Requirement| {
        let eligibility = Eligibility::of(analysis.workload, None, analysis.facts);
        let mut nodes = eligibility.nodes().peekable();
        let is_accepted = |node: &Node| {
            requirement.accepts(match requirement.key.as_str() {
                "metadata.name" => Some(node.metadata.name.as_str()),
                key => node.metadata.labels.get(key),
            })
        };
        nodes.peek().is_some() && !nodes.any(is_accepted)
    };
    let refusing = all().take(MOST_COMPARED).find(refuses);
    match refusing.or_else(|| all().next()) {
        Some(Requirement { key, values, .. }) => {
            let values = messages::some(values.iter().map(ToString::to_string).collect());
            format!("{key} {values}")
        }
        None => "its nodes".to_owned(),
    }
}
