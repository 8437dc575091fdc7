//! Pods that must share a node although their own constraints forbid it.

use super::affinity;
use super::eligibility::Eligibility;
use super::{Analysis, AttachConstraint, NodeAssumption, UsedVolume};
use crate::model::pod::{HOSTNAME, TopologySpread};
use crate::model::workload::WorkloadKind;

/// Pods that must share a node, and the constraint of theirs that forbids it.
pub(crate) struct Contradiction {
    /// The pods that must share a node.
    pub pods: Together,
    /// The field that holds the constraint, `spec.template.spec.affinity.podAntiAffinity` for
    /// example.
    pub field: String,
    /// Whether only the pods from before the update have the constraint.
    pub is_of_the_old: bool,
    /// The constraint in words, as part of a sentence.
    pub text: String,
}

/// The pods that must share a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Together {
    /// The replicas, with their number.
    Replicas(i64),
    /// An old pod and the new one of a rolling update.
    Rollout,
}

/// The contradiction in the workload: its pods must be on one node, and their own constraints
/// forbid it.
pub(crate) fn contradiction(situation: &Analysis<'_>) -> Option<Contradiction> {
    // The pods of a DaemonSet are on different nodes anyway.
    if situation.volumes_in_one_place().next().is_none()
        || situation.workload.kind == WorkloadKind::DaemonSet
    {
        return None;
    }
    let count = situation.pods();
    let share = situation.exclusive().next().is_some() || situation.placement.pins_replicas();
    if count > 1
        && share
        && let Some(forbidden) = forbidden(situation, Together::Replicas(count))
    {
        return Some(forbidden);
    }
    let room = situation.rolling_update()?;
    if !situation.rolling_update_deadlocks(room) || !situation.pins_rollouts() {
        return None;
    }
    let path = situation.workload.kind.pod_spec_path();
    forbidden(situation, Together::Rollout).or_else(|| {
        situation.placement.kept_off.then(|| Contradiction {
            pods: Together::Rollout,
            field: format!("{path}.affinity.podAntiAffinity"),
            text: "the required anti-affinity of the pods that still run".to_owned(),
            is_of_the_old: true,
        })
    })
}

/// Whether required affinity of the pods to each other would keep them on one node: their own
/// constraints do not forbid it. A request for extended resources counts as such a constraint,
/// because they may run out on one node.
pub(crate) fn affinity_would_hold(situation: &Analysis<'_>) -> bool {
    let (workload, template) = (situation.workload, &situation.workload.template);
    if workload.kind == WorkloadKind::DaemonSet
        || template.node_name.is_some()
        || !template.extended_resources.is_empty()
    {
        return false;
    }
    let mut held = situation.clone();
    held.placement.affinity = affinity::Together { replicas: true, rollouts: true };
    held.pins_replicas() && contradiction(&held).is_none()
}

/// The contradiction, if a constraint of those pods themselves forbids that they share a node.
fn forbidden(situation: &Analysis<'_>, together: Together) -> Option<Contradiction> {
    let (workload, facts) = (situation.workload, situation.facts);
    let template = &workload.template;
    let in_pod = |field: &str| format!("{}.{field}", workload.kind.pod_spec_path());
    let constraint = |field: String, text: &str| Contradiction {
        pods: together,
        field,
        is_of_the_old: false,
        text: text.to_owned(),
    };
    if !template.host_ports.is_empty() {
        let text = "the host port that each of them takes";
        return Some(constraint(in_pod("containers"), text));
    }
    let lonely = |volume: &&UsedVolume| {
        volume.one_pod_a_node && volume.attach_constraint == AttachConstraint::Free
    };
    if let Some(volume) = situation.volumes.iter().find(lonely) {
        let text = "the scheduler, which puts no two pods with such a disk on one node,";
        return Some(constraint(situation.volume_path(volume), text));
    }
    // Only the scheduler evaluates the rest, and it never sees a pod with `nodeName`.
    if template.node_name.is_some() {
        return None;
    }
    let keeps_apart = match together {
        Together::Replicas(_) => affinity::keeps_replicas_apart(workload, facts),
        Together::Rollout => affinity::keeps_off(workload, workload, facts),
    };
    if keeps_apart {
        let text = "their required anti-affinity to each other";
        return Some(constraint(in_pod("affinity.podAntiAffinity"), text));
    }
    if workload.keeps_revisions_apart && together == Together::Rollout {
        let text = "the required antiAffinity of its strategy";
        return Some(constraint("spec.strategy".to_owned(), text));
    }
    let pods = match together {
        Together::Replicas(pods) => pods,
        // New pods come one by one: once the first is ready, an old one goes.
        Together::Rollout => situation.pods() + 1,
    };
    let spreads = |spread: &TopologySpread| {
        !spread.is_soft
            && pods > spread.max_skew
            && counts_own_pods(spread, situation, together)
            && (spread.topology_key == HOSTNAME || situation.placement.pins_replicas())
            && has_emptier_places(spread, situation)
    };
    let at = template.spread.iter().position(spreads)?;
    let spread = template.spread.get(at)?;
    Some(constraint(
        in_pod(&format!("topologySpreadConstraints[{at}]")),
        &format!(
            "their hard topology spread over {} (maxSkew {})",
            spread.topology_key, spread.max_skew
        ),
    ))
}

fn counts_own_pods(spread: &TopologySpread, situation: &Analysis<'_>, together: Together) -> bool {
    let workload = situation.workload;
    let per_revision = workload.kind.has_revision_label(&spread.match_label_keys);
    spread
        .label_selector
        .as_ref()
        .is_some_and(|selector| selector.matches(&workload.template.labels))
        && !(per_revision && together == Together::Rollout)
}

/// Whether the spread counts a place without pods beside theirs: the nodes that it counts are in
/// several places, or in fewer than it demands (`minMatch` in
/// `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go`).
fn has_emptier_places(spread: &TopologySpread, situation: &Analysis<'_>) -> bool {
    let nodes = Eligibility::of(situation.workload, None, situation.facts);
    let mut places =
        nodes.counted(spread).filter_map(|node| node.metadata.labels.get(&spread.topology_key));
    let first = places.next();
    let several = places.any(|place| Some(place) != first);
    let demanded = spread.min_domains.unwrap_or(1);
    if situation.facts.view.knows_nodes() && situation.facts.nodes != NodeAssumption::Always {
        return several || (first.is_some() && demanded > 1);
    }
    // Zones are not assumed if no node is known.
    several
        || (spread.topology_key == HOSTNAME
            && situation.facts.nodes != NodeAssumption::Never
            && nodes.named_node().is_none())
}
