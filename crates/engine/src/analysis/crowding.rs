//! Pods of a StatefulSet that a constraint of theirs keeps apart, although the volumes made for
//! them are in too few places.

use hashbrown::{HashMap, HashSet};

use super::affinity::{matches_itself, same};
use super::eligibility::Eligibility;
use super::topology::Limited;
use super::{Analysis, own_claims};
use crate::model::Text;
use crate::model::pod::{HOSTNAME, TopologySpread};

/// The most pods that are compared with each other.
const MOST_COMPARED: usize = 32;

/// A pod for which there is no place, because another pod has it.
pub(crate) struct Crowding {
    /// The ordinal of the pod.
    pub ordinal: i64,
    /// The first of its claims with a volume in those places.
    pub claim: Text,
    /// A claim of the other pod.
    pub other: Text,
    /// The places where the pod may be: values of the label.
    pub places: Vec<Text>,
    /// The label of nodes whose values are the places.
    pub key: Text,
    /// The number of pods that the constraint allows in one place.
    pub allowed: usize,
    /// The constraint.
    pub by: Separation,
}

/// The constraint that keeps pods apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separation {
    /// Required anti-affinity.
    AntiAffinity,
    /// A port of the node.
    HostPort,
    /// The hard topology spread with this number.
    Spread(usize),
}

/// The first crowding among the pods.
pub(crate) fn crowding(analysis: &Analysis<'_>) -> Option<Crowding> {
    let (workload, facts) = (analysis.workload, analysis.facts);
    let template = &workload.template;
    if workload.claim_templates.is_empty() {
        return None;
    }
    let of_port = || {
        let takes_port = !template.host_ports.is_empty();
        takes_port.then(|| alone(HOSTNAME, Separation::HostPort, analysis))?
    };
    // Only the scheduler evaluates the rest, and it never sees a pod with `nodeName`.
    if template.node_name.is_some() {
        return of_port();
    }
    template
        .anti_affinity
        .iter()
        .find(|term| matches_itself(term, workload, facts))
        .and_then(|term| alone(&term.topology_key, Separation::AntiAffinity, analysis))
        .or_else(of_port)
        .or_else(|| {
            template
                .spread
                .iter()
                .enumerate()
                .find_map(|(at, spread)| uneven(spread, Separation::Spread(at), analysis))
        })
}

/// A pod of a StatefulSet, the first of its claims whose volume is limited to some nodes, and the
/// places where the pod may be.
struct PodPlaces {
    ordinal: i64,
    claim: Text,
    places: Vec<Text>,
}

/// The pods whose own volumes are limited to some nodes, with the values of the label `key` on
/// those nodes; none for a pod if no such node is known.
fn pods_in_places(key: &str, analysis: &Analysis<'_>) -> Vec<PodPlaces> {
    let (workload, facts) = (analysis.workload, analysis.facts);
    let places = |limited: &[Limited]| {
        let reach = limited.iter().map(|claim| &claim.reach);
        let eligibility = Eligibility::of(workload, reach, facts);
        let mut seen = HashSet::new();
        eligibility
            .nodes()
            .filter_map(|node| node.metadata.labels.get(key))
            .filter(|place| seen.insert(*place))
            .take(MOST_COMPARED + 1)
            .map(Text::from)
            .collect()
    };
    workload
        .ordinals()
        .take(MOST_COMPARED)
        .filter_map(|ordinal| {
            let own: Vec<Limited> = own_claims::of_pods(workload, ordinal..ordinal + 1)
                .filter_map(|own| Limited::of(&own.name, workload, facts))
                .collect();
            let claim = own.first()?.claim.clone();
            Some(PodPlaces { ordinal, claim, places: places(&own) })
        })
        .collect()
}

/// Pods each of which needs a place of its own.
fn alone(key: &str, by: Separation, analysis: &Analysis<'_>) -> Option<Crowding> {
    let pods = pods_in_places(key, analysis);
    let (pod, other) = too_many(&pods)?;
    Some(Crowding::of(pod, other, key, 1, by))
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

/// Pods whose volumes are all in one place, while a hard spread wants some of them elsewhere. Pods
/// whose volumes do not hold them count as pods in the emptiest places.
fn uneven(spread: &TopologySpread, by: Separation, analysis: &Analysis<'_>) -> Option<Crowding> {
    if spread.is_soft || !counts_own_pods_only(spread, analysis) {
        return None;
    }
    let (workload, key) = (analysis.workload, &spread.topology_key);
    let eligibility = Eligibility::of(workload, None, analysis.facts);
    let pods = pods_in_places(key, analysis);
    let mut held: HashMap<&str, Vec<&PodPlaces>> = eligibility
        .counted(spread)
        .filter_map(|node| Some((node.metadata.labels.get(key)?, Vec::new())))
        .collect();
    let mut free = usize::try_from(workload.replicas).ok()?;
    for pod in &pods {
        if let [place] = &*pod.places
            && let Some(held_there) = held.get_mut(place.as_str())
        {
            held_there.push(pod);
            free = free.saturating_sub(1);
        }
    }
    let fullest = held.values().max_by_key(|held_there| held_there.len())?;
    let (last, others) = fullest.split_last()?;
    let missing = |level: usize| -> usize {
        held.values().map(|held_there| level.saturating_sub(held_there.len())).sum()
    };
    let emptiest = if usize::try_from(spread.min_domains.unwrap_or(1)).ok()? > held.len() {
        0
    } else {
        (0..=fullest.len()).rev().find(|level| missing(*level) <= free)?
    };
    let allowed = emptiest.saturating_add(usize::try_from(spread.max_skew).ok()?);
    let other = others.first().filter(|_| fullest.len() > allowed)?;
    Some(Crowding::of(last, other, key, allowed, by))
}

/// Whether a spread counts all pods of the workload together, and none of other workloads.
fn counts_own_pods_only(spread: &TopologySpread, analysis: &Analysis<'_>) -> bool {
    let (workload, view) = (analysis.workload, analysis.facts.view);
    let labels = &workload.template.labels;
    let is_alike = |key: &Text| {
        labels.get(key).is_some() || workload.kind.revision_label() == Some(key.as_str())
    };
    spread.label_selector.as_ref().is_some_and(|selector| {
        let namespace = Some(workload.metadata.namespace.as_str());
        selector.matches(labels)
            && spread.match_label_keys.iter().all(is_alike)
            && !view.workloads_with(namespace, selector.match_labels.clone()).any(|other| {
                other.has_pods()
                    && !same(other, workload)
                    && selector.matches(&other.template.labels)
            })
    })
}

impl Crowding {
    fn of(pod: &PodPlaces, other: &PodPlaces, key: &str, allowed: usize, by: Separation) -> Self {
        Self {
            ordinal: pod.ordinal,
            claim: pod.claim.clone(),
            other: other.claim.clone(),
            places: pod.places.clone(),
            key: key.into(),
            allowed,
            by,
        }
    }
}
