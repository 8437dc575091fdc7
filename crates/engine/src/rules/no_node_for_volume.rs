//! No node can have both the pod and its volume.
//!
//! # Fires on
//!
//! * A workload with pods whose bound volumes are limited to some nodes (a zone, a host), if none
//!   of the known nodes that the pods accept reaches the volumes. A change of `nodeSelector`,
//!   affinity or tolerations can cause that.
//! * A workload with two volumes in different zones, neither of which can leave its zone.
//! * A StatefulSet whose pods required anti-affinity, a hard topology spread or a host port keeps
//!   apart, if their volumes are in too few places.
//! * A request for more pods of a StatefulSet whose claims are left from an earlier life.
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
//! a waiting claim (`volume.kubernetes.io/selected-node`). With `podManagementPolicy: OrderedReady`,
//! the default, a StatefulSet's controller does not replace a pod that is not ready, not even after
//! the change is taken back.
//!
//! # Example
//!
//! ```yaml
//! # The claim waits for the scheduler, and a pod that names its node never meets it.
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: mail}
//! spec:
//!   template:
//!     spec:
//!       nodeName: n1
//!       volumes:
//!       - name: mail
//!         persistentVolumeClaim: {claimName: mail}
//! ---
//! apiVersion: v1
//! kind: PersistentVolumeClaim
//! metadata: {name: mail}
//! spec: {accessModes: [ReadWriteOnce], storageClassName: fast}
//! ---
//! apiVersion: storage.k8s.io/v1
//! kind: StorageClass
//! metadata: {name: fast}
//! provisioner: ebs.csi.aws.com
//! volumeBindingMode: WaitForFirstConsumer
//! ```
//!
//! # What to do
//!
//! Let the pods go to a node that reaches the volume, or first move the data (snapshot and restore
//! into the other zone). If a StatefulSet's pod is Pending already, take the change back and
//! delete that pod. In place of `nodeName` use `nodeSelector: {kubernetes.io/hostname: NODE}`.
//!
//! # Claims
//!
//! * Named by the pod template: read.
//! * A StatefulSet's own: read, of the pods that are made from the template.
//!
//! # Silent on
//!
//! Unbound claims, pods that no known node takes even without their volumes, clusters without
//! known nodes, and clusters where Karpenter makes nodes. A StatefulSet's claims after the first
//! 256. A spread that counts pods of other workloads too.

use std::cell::LazyCell;

use super::{Certainty, Hazard, On, Outcome, Rule, Scaling, messages};
use crate::analysis::binding::class_of;
use crate::analysis::crowding::{Crowding, Separation, crowding};
use crate::analysis::eligibility::{Eligibility, is_elastic, only_host};
use crate::analysis::topology::Limited;
use crate::analysis::{Analysis, NodeAssumption, volumes};
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
    on: &[On::Workload(judge), On::Scaled(judge_scaled)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    if !analysis.workload.has_pods() {
        return;
    }
    found.extend(never_bound(analysis));
    found.extend(out_of_reach(analysis));
    found.extend(crowding(analysis).map(|crowding| crowded(analysis, &crowding)));
}

/// Judges the pods that a StatefulSet gets by a request.
fn judge_scaled(scaling: &Scaling<'_>, found: &mut Vec<Hazard>) {
    let workload = scaling.analysis.workload;
    if scaling.autoscaler.is_some() || workload.claim_templates.is_empty() {
        return;
    }
    let all = workload.ordinals();
    let grown = Analysis {
        new_pods: all.start.saturating_add(scaling.before).min(all.end)..all.end,
        ..scaling.analysis.clone()
    };
    if !grown.new_pods.is_empty() {
        found.extend(
            out_of_reach(&grown).map(|hazard| Hazard { field_path: scaling.field(), ..hazard }),
        );
    }
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
    let is_never_bound = |name: &str| {
        facts.view.claim(namespace, name).found().is_some_and(waits) && !is_helped(name)
    };
    let name = workload
        .template
        .claims()
        .find(|name| is_never_bound(name))
        .cloned()
        .or_else(|| {
            let ephemeral = workload.template.ephemeral.iter();
            let claim = &ephemeral.map(|ephemeral| &ephemeral.claim).find(|claim| waits(claim))?;
            Some(claim.metadata.name.clone())
        })
        .or_else(|| {
            let own = analysis.own_claims().find(|own| {
                let claim = facts.view.claim(namespace, &own.name).found();
                claim.map_or_else(|| waits(&own.forecast(namespace)), waits)
            })?;
            Some(own.name.into())
        })?;
    Some(Hazard {
        field_path: format!("{}.nodeName", workload.kind.pod_spec_path()),
        what: format!(
            "nodeName {node} bypasses the scheduler, which alone gets claim \"{name}\" bound, as its class waits for the first consumer: the pod never starts."
        ),
        advice: format!(
            "Use nodeSelector {{kubernetes.io/hostname: {node}}} in place of nodeName."
        ),
        brief: format!("claim \"{name}\" is never bound with nodeName; use nodeSelector"),
        volumes: vec![name],
        ..RULE.hazard(Outcome::Stuck)
    })
}

/// Pods whose volumes are alike in the nodes that reach them.
#[derive(Default)]
struct Alike {
    /// The volumes of one of the pods.
    limited: Vec<Limited>,
    /// The ordinals of a StatefulSet's pods; none if all pods of the workload have the same claims.
    ordinals: Vec<i64>,
    /// The pods' own claims.
    claims: Vec<Text>,
}

impl Alike {
    /// All pods with volumes that only some nodes reach.
    fn all(analysis: &Analysis<'_>) -> Vec<Self> {
        let limited = |claim: &str| Limited::of(claim, analysis.workload, analysis.facts);
        let mut pods: Vec<Self> = Vec::new();
        for own in analysis.own_claims() {
            let Some(claim) = limited(&own.name) else {
                continue;
            };
            if pods.last().is_none_or(|pod| !pod.ordinals.contains(&own.ordinal)) {
                pods.push(Self { ordinals: vec![own.ordinal], ..Self::default() });
            }
            if let Some(pod) = pods.last_mut() {
                pod.claims.push(claim.claim.clone());
                pod.limited.push(claim);
            }
        }
        let mut all: Vec<Self> = Vec::new();
        for pod in pods {
            match all.iter_mut().find(|first| first.has_the_places_of(&pod)) {
                Some(first) => first.add(pod),
                None => all.push(pod),
            }
        }
        if all.is_empty() {
            all.push(Self::default());
        }
        for alike in &mut all {
            let shared = analysis.volumes.iter().filter_map(|volume| volume.claim.as_deref());
            alike.limited.extend(shared.filter_map(limited));
        }
        all
    }

    fn has_the_places_of(&self, other: &Self) -> bool {
        let reach = self.limited.iter().map(|claim| &claim.reach);
        reach.eq(other.limited.iter().map(|claim| &claim.reach))
    }

    fn add(&mut self, other: Self) {
        self.ordinals.extend(other.ordinals);
        self.claims.extend(other.claims);
    }
}

/// Pods that cannot start, and the reason.
struct Stuck {
    hazard: Hazard,
    pods: Alike,
}

/// Bound volumes that none of the nodes to which the pods may go can reach.
fn out_of_reach(analysis: &Analysis<'_>) -> Option<Hazard> {
    let (workload, facts) = (analysis.workload, analysis.facts);
    if facts.nodes == NodeAssumption::Always {
        return None;
    }
    let have_nodes =
        LazyCell::new(|| Eligibility::of(workload, None, facts).count().unwrap_or_default() > 0);
    let fault = |limited: &[Limited]| {
        in_two_places(limited, analysis).or_else(|| {
            let may_be = !limited.is_empty() && *have_nodes;
            may_be.then(|| unreachable(limited, analysis))?
        })
    };
    let mut stuck: Vec<Stuck> = Alike::all(analysis)
        .into_iter()
        .filter_map(|pods| Some(Stuck { hazard: fault(&pods.limited)?, pods }))
        .collect();
    let surest = stuck.iter().map(|stuck| stuck.hazard.certainty).min()?;
    stuck.retain(|stuck| stuck.hazard.certainty == surest);
    let mut stuck = stuck.into_iter();
    let Stuck { mut hazard, mut pods } = stuck.next()?;
    stuck.for_each(|others| pods.add(others.pods));
    let names: Vec<String> = pods
        .ordinals
        .iter()
        .map(|ordinal| format!("{}-{ordinal}", workload.metadata.name))
        .collect();
    let Some(first) = names.first() else {
        hazard.what += stops(workload);
        return Some(hazard);
    };
    hazard.advice += &format!(
        " If pod {first} is Pending already, take the change back and delete that pod: with podManagementPolicy OrderedReady, the default, its controller does not replace a pod that is not ready."
    );
    hazard.excess = i64::try_from(names.len()).unwrap_or(i64::MAX);
    hazard.what += &match names.len() {
        1 => format!("pod {first} stays Pending."),
        _ => format!("pods {} cannot start.", messages::some(names)),
    };
    let named = hazard.volumes.clone();
    hazard.volumes.extend(pods.claims.into_iter().filter(|claim| !named.contains(claim)));
    Some(hazard)
}

/// Two volumes that cannot be used on the same node. The consequence is still to be added to the
/// sentence.
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
    Some(Hazard {
        field_path: analysis.workload.kind.pod_spec_path().to_owned(),
        volumes: vec![one.clone(), other.clone()],
        what: format!(
            "the volume of claim \"{one}\" cannot leave {here}, and that of claim \"{other}\" cannot leave {there}; no node is in both, so "
        ),
        advice: "Move the data of one of them to where the other one is (a snapshot and a new claim), or split the pods.".to_owned(),
        brief: format!(
            "claims \"{one}\" and \"{other}\" are in two places, and no node is in both"
        ),
        ..RULE.hazard(Outcome::Stuck)
    })
}

/// The most claims or values that are compared with each other.
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

/// Volumes that none of the nodes reaches to which the pods may go without them. The consequence is
/// still to be added to the sentence.
fn unreachable(limited: &[Limited], analysis: &Analysis<'_>) -> Option<Hazard> {
    let (workload, facts) = (analysis.workload, analysis.facts);
    let both = Eligibility::of(workload, limited.iter().map(|claim| &claim.reach), facts);
    if both.count() != Some(0) || is_elastic(facts) {
        return None;
    }
    let Limited { claim, reach } = limited
        .iter()
        .find(|one| Eligibility::of(workload, [&one.reach], facts).count() == Some(0))
        .or_else(|| limited.first())?;
    let host = only_host(reach);
    let namespace = &workload.metadata.namespace;
    let stays = || volumes::of_claim(claim, namespace, facts).keeps_its_node();
    let place = place(reach, analysis);
    let by_place = || format!("where {}", place.replacen(' ', " is ", 1));
    let machine = host.map(str::to_owned).or_else(|| stays().then(by_place));
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
            "no node has both what the pods ask for and the volume of claim \"{claim}\", which cannot leave {place}: "
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

/// The consequence for the pods, as the end of a sentence.
fn stops(workload: &Workload) -> &'static str {
    match workload.kind {
        WorkloadKind::Deployment if matches!(workload.strategy, Strategy::Recreate { .. }) => {
            "Recreate stops the pod that runs, and the new one stays Pending."
        }
        _ => "a new pod stays Pending.",
    }
}

/// Pods of a StatefulSet that a constraint of theirs keeps apart although the volumes made for them
/// are in too few places.
fn crowded(analysis: &Analysis<'_>, crowding: &Crowding) -> Hazard {
    let workload = analysis.workload;
    let Crowding { claim, other, places, key, .. } = crowding;
    let pod = format!("{}-{}", workload.metadata.name, crowding.ordinal);
    let names = messages::some(places.iter().map(ToString::to_string).collect());
    let is_host = key == HOSTNAME;
    let places_named = if is_host { names } else { format!("{key} {names}") };
    let (field, text, way_out) = match crowding.by {
        Separation::AntiAffinity => (
            "affinity.podAntiAffinity".to_owned(),
            "required anti-affinity",
            "Make the anti-affinity preferred",
        ),
        Separation::HostPort => {
            ("containers".to_owned(), "host port", "Use a Service in place of the host port")
        }
        Separation::Spread(at) => (
            format!("topologySpreadConstraints[{at}]"),
            "hard topology spread",
            "Set whenUnsatisfiable of the spread to ScheduleAnyway",
        ),
    };
    // Another node may join, which helps against a spread only if nodes of another place go.
    let is_certain = match crowding.by {
        Separation::AntiAffinity | Separation::HostPort => is_host && places.len() == 1,
        Separation::Spread(_) => !is_elastic(analysis.facts),
    };
    let most = match crowding.allowed {
        1 => "no two of them".to_owned(),
        allowed => format!("at most {allowed} of them"),
    };
    Hazard {
        certainty: if is_certain { Certainty::Verified } else { Certainty::Assumed },
        field_path: format!("{}.{field}", workload.kind.pod_spec_path()),
        volumes: vec![other.clone(), claim.clone()],
        what: format!(
            "the volumes of claims \"{other}\" and \"{claim}\" can be used on {places_named} only, and the {text} of the pods lets {most} be there, so {pod} stays Pending."
        ),
        advice: format!(
            "{way_out}. Or, if the other pods have the data too, delete claim \"{claim}\" and pod {pod}, so that its volume is made anew elsewhere."
        ),
        brief: format!(
            "the volumes of \"{other}\" and \"{claim}\" are in one place, and {text} keeps their pods apart"
        ),
        ..RULE.hazard(Outcome::Stuck)
    }
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
