//! No node can have both the pod and its volume.
//!
//! # Fires on
//!
//! * A workload with pods whose bound volumes are limited to some nodes (a zone, a
//!   host), where nodes that the pods choose are known and none of them reaches the
//!   volumes: after a change of `nodeSelector`, affinity or tolerations, for example.
//! * `nodeName` in a pod template beside a claim that is not bound yet and whose class
//!   binds it when a pod is scheduled (`volumeBindingMode: WaitForFirstConsumer`).
//!
//! The outcome is `stuck`. Where another node could still join and do (the pods ask for a
//! pool, not for another zone or host than the volume's), it is a warning.
//!
//! # Why
//!
//! A volume stays where it was made. With Recreate the update first stops the pod that
//! runs, and its successor stays Pending: no node passes both the volume's node affinity
//! and the pod's own. And a pod that names its node never meets the scheduler, which
//! alone chooses the node for which a waiting claim is provisioned
//! (`volume.kubernetes.io/selected-node`).
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
//! Let the pods go to a node that reaches the volume, or move the data first (snapshot
//! and restore into the other zone). In place of `nodeName` use
//! `nodeSelector: {kubernetes.io/hostname: NODE}`.
//!
//! # Silent on
//!
//! Claims that are not bound yet, pods that no known node takes whatever their volumes
//! are, clusters without known nodes, and those where Karpenter makes nodes.

use super::hazard::Hazard;
use super::{Certainty, On, Outcome, Rule, messages};
use crate::analysis::binding::class_of;
use crate::analysis::eligibility::{Eligibility, only_host};
use crate::analysis::volumes::claims;
use crate::analysis::{Analysis, NodeAssumption, topology};
use crate::model::claim::Claim;
use crate::model::node::NodeSelector;
use crate::model::storage_class::StorageClass;
use crate::model::workload::{Workload, WorkloadKind};
use crate::snapshot::Lookup;

pub(super) const RULE: Rule = Rule {
    code: "no-node-for-volume",
    source: include_str!("no_node_for_volume.rs"),
    on: &[On::Workload(judge)],
};

/// A label of nodes that Karpenter makes, where a pod needs one and of the kind it needs.
const MADE_ON_DEMAND: &str = "karpenter.sh/nodepool";

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    if !analysis.workload.has_pods() {
        return;
    }
    found.extend(never_bound(analysis));
    found.extend(out_of_reach(analysis));
}

/// A claim that waits for the scheduler, of a pod that never meets it.
fn never_bound(analysis: &Analysis<'_>) -> Option<Hazard> {
    let (workload, facts) = (analysis.workload, analysis.facts);
    let node = workload.template.node_name.as_ref()?;
    let waits = |claim: &Claim| {
        claim.spec.volume_name.is_empty()
            && class_of(claim, facts).is_ok_and(StorageClass::binds_late)
            && facts.view.volume_of(&claim.metadata).is_none()
    };
    let namespace = &workload.metadata.namespace;
    // Another pod may meet the scheduler, and the claim is bound for it.
    let is_helped = |name: &str| {
        let users = facts.view.workloads_using(namespace, name);
        let mut users = users.iter();
        users.any(|user| user.has_pods() && user.template.node_name.is_none())
    };
    let named = claims(workload).find(|name| {
        let claim = facts.view.claim(namespace, name).found();
        claim.is_some_and(waits) && !is_helped(name)
    });
    let made = workload.claim_templates.iter();
    let made = made.chain(workload.template.ephemeral.iter().map(|it| &it.claim));
    let template = || made.into_iter().find(|claim| waits(claim));
    let name = named
        .cloned()
        .or_else(|| Some(template()?.metadata.name.clone()))?;
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
        ..blank(Certainty::Verified)
    })
}

/// Bound volumes that no node reaches to which the pods may go.
fn out_of_reach(analysis: &Analysis<'_>) -> Option<Hazard> {
    let (workload, facts) = (analysis.workload, analysis.facts);
    if facts.nodes == NodeAssumption::Always {
        return None;
    }
    let namespace = &workload.metadata.namespace;
    let limited: Vec<(&str, NodeSelector)> = claims(workload)
        .filter_map(|name| {
            let Lookup::Found(claim) = facts.view.claim(namespace, name) else {
                return None;
            };
            let volume = facts.view.volume(&claim.spec.volume_name).found()?;
            Some((name.as_str(), topology::reach(volume)?))
        })
        .collect();
    if limited.is_empty() {
        return None;
    }
    let both = Eligibility::of(workload, limited.iter().map(|(_, reach)| reach), facts);
    let without = Eligibility::of(workload, None, facts);
    if both.count(facts) != Some(0) || without.count(facts).unwrap_or_default() == 0 {
        return None;
    }
    let mut is_elastic = false;
    facts.view.visit_nodes(None, &mut |node| {
        is_elastic = node.metadata.labels.get(MADE_ON_DEMAND).is_some();
        !is_elastic
    });
    let is_out = |(_, reach): &&(&str, NodeSelector)| {
        Eligibility::of(workload, [reach], facts).count(facts) == Some(0)
    };
    let (name, reach) = limited.iter().find(is_out).or_else(|| limited.first())?;
    if is_elastic {
        return None;
    }
    let certainty = match only_host(reach).is_some() || is_ruled_out(workload, reach) {
        true => Certainty::Verified,
        // A node of the right kind in the volume's zone may still join.
        false => Certainty::Assumed,
    };
    let stops = match workload.kind {
        WorkloadKind::Deployment if workload.strategy.stops_first() => {
            "Recreate stops the pod that runs, and the new one stays Pending"
        }
        _ => "a new pod stays Pending",
    };
    Some(Hazard {
        field_path: workload.kind.pod_spec_path().to_owned(),
        volumes: vec![(*name).into()],
        what: format!(
            "no node has both what the pods ask for and the volume of claim \"{name}\", which cannot leave {}: {stops}.",
            place(reach)
        ),
        advice: "Let the pods go to nodes that reach the volume, or move the data first."
            .to_owned(),
        brief: format!("no node can have both the pod and the volume of claim \"{name}\""),
        ..blank(certainty)
    })
}

/// Whether the pods' node selector demands another value of a label than the volume does,
/// so that no node that joins can have both.
fn is_ruled_out(workload: &Workload, reach: &NodeSelector) -> bool {
    let selector = &workload.template.node_selector;
    reach.terms_that_match().all(|term| {
        term.match_expressions.iter().any(|it| {
            let demanded = selector.get(&it.key);
            demanded.is_some_and(|value| !it.accepts(Some(value)))
        })
    })
}

/// Where a volume is, as part of a sentence.
fn place(reach: &NodeSelector) -> String {
    let mut requirements = reach.node_selector_terms.iter().flat_map(|term| {
        let requirements = term.match_expressions.iter().chain(&term.match_fields);
        requirements.filter(|it| !it.values.is_empty())
    });
    match requirements.next() {
        Some(it) => format!(
            "{} {}",
            it.key,
            messages::some(it.values.iter().map(ToString::to_string).collect())
        ),
        None => "its nodes".to_owned(),
    }
}

fn blank(certainty: Certainty) -> Hazard {
    Hazard {
        rule: RULE.code,
        outcome: Outcome::Stuck,
        certainty,
        field_path: String::new(),
        volumes: Vec::new(),
        excess: 0,
        what: String::new(),
        advice: String::new(),
        brief: String::new(),
    }
}
