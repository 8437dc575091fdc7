//! Whether pods of two workloads can be on one node at all.

use super::Facts;
use super::affinity::keeps_company_off;
use super::eligibility::{Eligibility, is_elastic};
use crate::model::Text;
use crate::model::labels::Labels;
use crate::model::node::{NodeSelector, Toleration};
use crate::model::pod::{HostPort, PodTemplate};
use crate::model::quantity::Quantity;
use crate::model::workload::Workload;

/// The obstacle that keeps the pods of two workloads off one node, whatever affinity they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Both use this port of their node.
    HostPort(HostPort),
    /// The required anti-affinity of the first, or else of the second.
    AntiAffinity {
        /// Whether the first has it.
        of_first: bool,
    },
    /// Both request this resource, and no node has enough for both.
    Device(Text),
    /// No node is eligible for both.
    Nodes(NoNode),
}

/// The reason for which no node is eligible for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoNode {
    /// Their selectors contradict each other, so that no node is ever eligible.
    Contradiction,
    /// The second does not tolerate the taints of nodes to which the first goes.
    Taints,
    /// None of the known nodes is eligible.
    Unknown,
}

/// The obstacle that keeps the pods of `first` and `second` off one node that has `reach`, if there
/// is one.
pub(crate) fn obstacle(
    first: &Workload,
    second: &Workload,
    reach: Option<&NodeSelector>,
    facts: Facts<'_>,
) -> Option<Obstacle> {
    let (one, other) = (&first.template, &second.template);
    let clashes = |port: &&HostPort| other.host_ports.iter().any(|taken| port.clashes_with(taken));
    if let Some(port) = one.host_ports.iter().find(clashes) {
        return Some(Obstacle::HostPort(port.clone()));
    }
    let of_first = keeps_company_off(first, second, facts);
    if of_first || keeps_company_off(second, first, facts) {
        return Some(Obstacle::AntiAffinity { of_first });
    }
    if contradict(one, other) || contradict(other, one) {
        return Some(Obstacle::Nodes(NoNode::Contradiction));
    }
    common_node(first, second, reach, facts)
}

/// Whether `other` rules out a label that `one` demands of its nodes.
fn contradict(one: &PodTemplate, other: &PodTemplate) -> bool {
    let demanded = &one.node_selector;
    let differs = |labels: &Labels| {
        labels.iter().any(|(key, value)| demanded.get(key).is_some_and(|wanted| wanted != value))
    };
    differs(&other.node_selector)
        || other.node_affinity.as_ref().is_some_and(|affinity| affinity.excludes(demanded))
}

/// The obstacle in the known nodes.
fn common_node(
    first: &Workload,
    second: &Workload,
    reach: Option<&NodeSelector>,
    facts: Facts<'_>,
) -> Option<Obstacle> {
    let shared = shared_resources(&first.template, &second.template);
    let ours = Eligibility::of(first, reach, facts);
    let theirs = Eligibility::of(second, reach, facts);
    let (mut any, mut tainted, mut common) = (false, false, false);
    for node in ours.nodes() {
        any = true;
        if !theirs.admits(node) {
            tainted |= theirs.selects(node);
        } else if node.has(&shared) == Some(false) {
            common = true;
        } else {
            return None;
        }
    }
    if !any || theirs.first().is_none() {
        return None;
    }
    if common {
        let (device, _) = shared.first()?;
        return Some(Obstacle::Device(device.clone()));
    }
    if is_elastic(facts) {
        return None;
    }
    Some(Obstacle::Nodes(if tainted { NoNode::Taints } else { NoNode::Unknown }))
}

/// The resources that both request, with the sum of the requests of one pod each.
fn shared_resources(one: &PodTemplate, other: &PodTemplate) -> Box<[(Text, Quantity)]> {
    let theirs = |name: &Text| {
        other
            .extended_resources
            .iter()
            .find_map(|(known, amount)| (known == name).then_some(amount.0))
    };
    one.extended_resources
        .iter()
        .filter_map(|(name, amount)| {
            let sum = amount.0.saturating_add(theirs(name)?);
            Some((name.clone(), Quantity(sum)))
        })
        .collect()
}

/// The tolerations of `leader` that `follower` lacks.
pub(crate) fn missing_tolerations<'a>(
    follower: &Workload,
    leader: &'a Workload,
) -> Vec<&'a Toleration> {
    let own = &follower.template.tolerations;
    leader
        .template
        .tolerations
        .iter()
        .filter(|toleration| {
            // The API server gives each pod tolerations of nodes that are not ready for a short
            // time.
            !own.contains(toleration) && !toleration.key.starts_with("node.kubernetes.io/")
        })
        .collect()
}
