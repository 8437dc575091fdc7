//! Two workloads use one volume that only one node, or only one pod, can use at a time.
//!
//! # Fires on
//!
//! A workload whose claim another workload with pods uses too, if the volume is ReadWriteOncePod,
//! or exclusive and their pods may be on different nodes. It is reported once for each claim, with
//! the names of the others, on the later object; in files, on the one that ends by itself.
//!
//! The outcome is `stuck`. A Job, CronJob or bare pod that shares an exclusive volume with others
//! that also end is a `delay`. So is a Job or bare pod that follows the volume to its node: while
//! it runs, the other one can restart on that node only. It is `stuck` if no node can run both.
//! They may use one host port, anti-affinity may keep them apart, a node may lack devices for
//! both, or taints and selectors may leave no common node.
//!
//! A claim named as a StatefulSet's template makes it (`data-postgres-0`) belongs to that
//! StatefulSet, whether it exists yet or not. A claim named after a pod and its generic ephemeral
//! volume (`builder-sources`) belongs to that pod. Two PersistentVolumes with one driver and one
//! `volumeHandle` are one volume. Bare pods and pods of unknown controllers are users too; `serve`
//! sees them with `--bare-pods`.
//!
//! # Why
//!
//! The classic is an application and its backup job. Each is fine alone. Once the job's pod lands
//! on another node, it waits for the volume for as long as the application runs. For
//! ReadWriteOncePod even the same node does not help. Affinity of the job that also matches its
//! own pods does not help either. While no pod of the two is there, as in a first installation,
//! the job's pod goes to any node.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: batch/v1
//! kind: CronJob
//! metadata: {name: backup}
//! spec:
//!   schedule: "0 3 * * *"
//!   jobTemplate:
//!     spec:
//!       template:
//!         spec:
//!           volumes:
//!           - name: data
//!             persistentVolumeClaim: {claimName: data}
//! ---
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   strategy: {type: Recreate}
//!   template:
//!     spec:
//!       volumes:
//!       - name: data
//!         persistentVolumeClaim: {claimName: data}
//! ---
//! apiVersion: v1
//! kind: PersistentVolumeClaim
//! metadata: {name: data}
//! spec: {accessModes: [ReadWriteOnce], storageClassName: gp3}
//! ```
//!
//! # What to do
//!
//! Give the job required pod affinity on `kubernetes.io/hostname` to the application's pods alone.
//! It then runs on the volume's node. On tainted nodes it needs the application's tolerations as
//! well. A bare pod also needs `restartPolicy: Never`. Scale two workloads that run forever to 0,
//! one after the other, and pin both to one node with a `nodeSelector`. Or back up from a
//! snapshot, or use a ReadWriteMany volume.
//!
//! # Claims
//!
//! * Named by the pod template: read.
//! * A StatefulSet's own: read.
//!
//! # Silent on
//!
//! Workloads that are always on one node: both are pinned to it, or affinity ties them in both
//! directions. A Job or CronJob that follows the other by affinity, or two that follow a third.
//! The followed one may be a single pod of a StatefulSet, by the label
//! `statefulset.kubernetes.io/pod-name` or `apps.kubernetes.io/pod-index`. A Deployment that
//! merely follows is reported: the other may move while it stays. Pods that end and wait for each
//! other's ReadWriteOncePod volume.

use hashbrown::HashSet;

use super::same_node_advice::{self, MOST_COMPARED, Way};
use super::{Certainty, Hazard, On, Outcome, Rule, messages};
use crate::analysis::affinity;
use crate::analysis::company::{NoNode, Obstacle, obstacle};
use crate::analysis::users::Visit;
use crate::analysis::{Analysis, AttachConstraint, UsedVolume, own_claims, users, volumes};
use crate::model::claim::Claim;
use crate::model::workload::{Workload, WorkloadKind};

pub(super) const RULE: Rule = Rule {
    code: "workloads-share-volume",
    at_fault: "another workload uses this volume too",
    on: &[On::Workload(judge)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    let workload = analysis.workload;
    if !workload.has_pods() {
        return;
    }
    let namespace = &workload.metadata.namespace;
    let find_in_made = |claim: &str, template: &Claim, index: usize| {
        if users::others(analysis, claim).is_empty() {
            return None;
        }
        let volume = UsedVolume {
            index,
            ..volumes::of_template(claim, template, namespace, analysis.facts)
        };
        find(&analysis.with_only(volume.clone()), &volume, claim)
    };
    for own in own_claims::of(workload) {
        let hazard = find_in_made(&own.name, own.template, 0);
        found.extend(hazard.map(|hazard| Hazard { field_path: own.field(), ..hazard }));
    }
    let own = workload.template.ephemeral.iter();
    for ((claim, template), ephemeral) in workload.ephemeral_claims().zip(own) {
        found.extend(find_in_made(&claim, template, ephemeral.index));
    }
    let mut mentioned = HashSet::new();
    for volume in &analysis.volumes {
        if let Some(claim) = &volume.claim
            && mentioned.insert(claim)
        {
            found.extend(
                find(analysis, volume, claim)
                    .or_else(|| of_pod(analysis, volume, claim))
                    .or_else(|| of_twins(analysis, volume, claim)),
            );
        }
    }
}

/// The hazard of a claim of another pod's generic ephemeral volume. The owner that Kubernetes wrote
/// into the claim shows it: the pod itself may be out of view.
fn of_pod(analysis: &Analysis<'_>, volume: &UsedVolume, claim: &str) -> Option<Hazard> {
    let metadata = &analysis.workload.metadata;
    if !volume.is_exclusive() || analysis.placement.one_node.is_some() {
        return None;
    }
    let owned = analysis.facts.view.claim(&metadata.namespace, claim).found()?;
    let owner = owned.metadata.controller.as_ref()?;
    let is_pod = owner.group().is_empty() && owner.kind == WorkloadKind::Pod.name();
    let is_own = || analysis.workload.ephemeral_claim(claim).is_some();
    if !is_pod || owner.name == metadata.name || is_own() {
        return None;
    }
    let (described, pod) = (messages::volumes(std::iter::once(volume)), &owner.name);
    Some(Hazard {
        what: format!(
            "{described} and belongs to Pod {pod}, whose generic ephemeral volume it is; {}.",
            WAITS.text
        ),
        advice: "Use a claim of its own; this one is deleted with that pod.".to_owned(),
        brief: format!("claim \"{claim}\" belongs to Pod {pod}; {}", WAITS.brief),
        ..hazard(analysis, volume, claim, Outcome::Stuck)
    })
}

/// The hazard of other claims whose volumes are the same disk.
fn of_twins(analysis: &Analysis<'_>, volume: &UsedVolume, claim: &str) -> Option<Hazard> {
    if !volume.is_exclusive() && volume.attach_constraint != AttachConstraint::SinglePod {
        return None;
    }
    let (workload, view) = (analysis.workload, analysis.facts.view);
    let own = view.bound_volume(&workload.metadata.namespace, claim)?;
    let (twin, named, other) = view.twins(own).into_iter().find_map(|twin| {
        let named = twin.claimed_by()?;
        let mut others = users::users_of(analysis, &named.namespace, &named.name);
        others.retain(|other| users::is_named(analysis, other));
        let apart = users::not_co_located(analysis, others, volume);
        Some((twin, named, *apart.first()?))
    })?;
    let consequence = consequence(workload, &[other]);
    let (other, waits) = (other.shown(), consequence.text);
    let named = if named.namespace == workload.metadata.namespace {
        named.name.to_string()
    } else {
        format!("{}/{}", named.namespace, named.name)
    };
    Some(Hazard {
        what: format!(
            "claim \"{claim}\" and claim \"{named}\" of {other} are one disk, as the volumes \"{}\" and \"{}\" have one handle, \"{}\" ({}); {waits}.",
            own.metadata.name, twin.metadata.name, own.spec.handle, volume.driver,
        ),
        advice: "Give each workload a disk of its own, or let one of them alone use it.".to_owned(),
        brief: format!(
            "claim \"{claim}\" is the same disk as claim \"{named}\" of {other}; {}",
            consequence.brief
        ),
        ..hazard(analysis, volume, claim, consequence.outcome)
    })
}

fn hazard(analysis: &Analysis<'_>, volume: &UsedVolume, claim: &str, outcome: Outcome) -> Hazard {
    Hazard {
        field_path: analysis.volume_path(volume),
        volumes: vec![claim.into()],
        excess: 1,
        ..RULE.hazard(outcome)
    }
}

/// The consequence for the later of two workloads.
struct Consequence {
    outcome: Outcome,
    text: &'static str,
    brief: &'static str,
}

const NEVER_STARTS: Consequence = Consequence {
    outcome: Outcome::Stuck,
    text: "one pod in the whole cluster may use it, so the later one stays Pending",
    brief: "one of them never starts",
};

const NO_COMMON_NODE: Consequence = Consequence {
    outcome: Outcome::Stuck,
    text: "the later one never starts",
    brief: "no node can run both",
};

const WAITS: Consequence = Consequence {
    outcome: Outcome::Stuck,
    text: "on another node the later one stays in ContainerCreating with a Multi-Attach error for as long as the first one runs",
    brief: "on different nodes, only one of them can run",
};

const WAITS_FOR_THE_END: Consequence = Consequence {
    outcome: Outcome::Delay,
    text: "on another node the later one waits with a Multi-Attach error until the first one has run",
    brief: "on different nodes, one waits for the other",
};

/// What happens to the later one of the workload and `others`, whose pods may be on other nodes.
fn consequence(workload: &Workload, others: &[&Workload]) -> &'static Consequence {
    if workload.ends() && others.iter().all(|other| other.ends()) {
        &WAITS_FOR_THE_END
    } else {
        &WAITS
    }
}

fn find(analysis: &Analysis<'_>, volume: &UsedVolume, claim: &str) -> Option<Hazard> {
    match volume.attach_constraint {
        AttachConstraint::SinglePod => one_pod(analysis, volume, claim),
        AttachConstraint::Exclusive { .. } => {
            blocked(analysis, volume, claim).or_else(|| apart(analysis, volume, claim))
        }
        AttachConstraint::Free | AttachConstraint::Driver(_) | AttachConstraint::Unknown(_) => None,
    }
}

/// The hazard of other workloads that use a volume for one pod in the whole cluster.
fn one_pod(analysis: &Analysis<'_>, volume: &UsedVolume, claim: &str) -> Option<Hazard> {
    let others = users::others(analysis, claim);
    // Workloads that run to completion wait for each other and then run.
    if analysis.workload.ends() && others.iter().all(|other| other.ends()) {
        return None;
    }
    Some(Hazard {
        advice: "Give each workload a claim of its own, or use another access mode.".to_owned(),
        ..used_by(analysis, volume, claim, &others, &NEVER_STARTS, "")?
    })
}

/// The hazard of other workloads whose pods may be on other nodes.
fn apart(analysis: &Analysis<'_>, volume: &UsedVolume, claim: &str) -> Option<Hazard> {
    let workload = analysis.workload;
    let (mut visits, mut apart) = (Vec::new(), Vec::new());
    for other in users::apart(analysis, claim, volume) {
        match users::visit(analysis, other, volume) {
            Some(visit) => visits.push(visit),
            None => apart.push(other),
        }
    }
    if let Some(visit) = visits.first()
        && apart.iter().all(|other| other.ends() && users::comes_and_goes(workload))
    {
        return Some(visiting(analysis, volume, claim, visit));
    }
    if apart.is_empty() {
        return None;
    }
    let consequence = consequence(workload, &apart);
    let (certainty, way) = match same_node_advice::pair(analysis, claim, &apart) {
        Some((follower, leader)) => (
            if is_led_by_chance(follower, leader, &apart, analysis) {
                Certainty::Assumed
            } else {
                Certainty::Verified
            },
            same_node_advice::follow(follower, leader, claim, analysis),
        ),
        None => (Certainty::Verified, Way::of(same_node_advice::together(analysis, claim, &apart))),
    };
    Some(Hazard {
        certainty,
        advice: format!("{}, {OWN_CLAIM}.{}", way.advice, messages::shared_class(analysis)),
        ..used_by(analysis, volume, claim, &apart, consequence, &way.before)?
    })
}

/// The hazard of a claim that `others` use too. `before` stands before the consequence.
fn used_by(
    analysis: &Analysis<'_>,
    volume: &UsedVolume,
    claim: &str,
    others: &[&Workload],
    consequence: &Consequence,
    before: &str,
) -> Option<Hazard> {
    let first = others.first()?.shown();
    let names = messages::names_of(others);
    let excess = i64::try_from(names.len()).unwrap_or(i64::MAX);
    let described = messages::volumes(std::iter::once(volume));
    let users = messages::some(names);
    Some(Hazard {
        excess,
        what: format!("{described} and is also used by {users}; {before}{}.", consequence.text),
        brief: format!("claim \"{claim}\" is also used by {first}; {}", consequence.brief),
        ..hazard(analysis, volume, claim, consequence.outcome)
    })
}

const OWN_CLAIM: &str = "or give each workload a claim of its own";

/// Whether only chance can separate the follower from the leader: its affinity matches its own pods
/// too, so its first pod may start anywhere while neither has pods.
fn is_led_by_chance(
    follower: &Workload,
    leader: &Workload,
    apart: &[&Workload],
    analysis: &Analysis<'_>,
) -> bool {
    follower.ends()
        && apart.len() == 1
        && affinity::other_targets(follower, leader, analysis.facts)
            .is_some_and(|targets| targets.own && targets.leaders.is_empty())
        && users::stays_together(analysis, leader)
}

/// The hazard of other workloads that can never share a node with the workload, although they would
/// have to.
fn blocked(analysis: &Analysis<'_>, volume: &UsedVolume, claim: &str) -> Option<Hazard> {
    let (workload, facts) = (analysis.workload, analysis.facts);
    let (other, follower, leader, obstacle) = users::others(analysis, claim)
        .into_iter()
        .take(MOST_COMPARED)
        .filter(|other| !(workload.ends() && other.ends()))
        .find_map(|other| {
            let (follower, leader) =
                if users::comes_and_goes(workload) { (workload, other) } else { (other, workload) };
            let obstacle = obstacle(leader, follower, volume.reach.as_ref(), facts)?;
            let follows = || affinity::other_targets(follower, leader, facts).is_some();
            (!matches!(obstacle, Obstacle::Nodes(_)) || follows())
                .then_some((other, follower, leader, obstacle))
        })?;
    let way = same_node_advice::around(&obstacle, follower, leader);
    Some(Hazard {
        certainty: match obstacle {
            Obstacle::Nodes(NoNode::Unknown) => Certainty::Assumed,
            _ => Certainty::Verified,
        },
        advice: format!("{}, {OWN_CLAIM}.{}", way.advice, messages::shared_class(analysis)),
        ..used_by(analysis, volume, claim, &[other], &NO_COMMON_NODE, &way.before)?
    })
}

/// The hazard of a Job or bare pod that is, or may be, on the node of the volume.
fn visiting(
    analysis: &Analysis<'_>,
    volume: &UsedVolume,
    claim: &str,
    (visit, visitor, host): &(Visit, &Workload, &Workload),
) -> Hazard {
    let (visitor_name, host_name) = (visitor.shown(), host.shown());
    let is_own = affinity::same(visitor, analysis.workload);
    let other = if is_own { &host_name } else { &visitor_name };
    let (start, only) = match visit {
        Visit::Beside => {
            (format!("{visitor_name} starts where {host_name} is;"), "on that node only".to_owned())
        }
        Visit::ToTheVolume(node) => (
            format!("{visitor_name} starts at once on node {node}, where the volume is;"),
            format!("on {node} only"),
        ),
        Visit::To(node) => (
            format!(
                "{visitor_name} goes to node {node}: if the volume is on another one, it waits for as long as {host_name} runs, and"
            ),
            format!("on {node} only"),
        ),
    };
    let what = format!(
        "{} and is also used by {other}; {start} while it runs, {host_name} can restart {only}.",
        messages::volumes(std::iter::once(volume)),
    );
    if let Visit::To(node) = visit {
        let way = same_node_advice::follow(visitor, host, claim, analysis).advice;
        return Hazard {
            certainty: Certainty::Assumed,
            what,
            advice: format!("{way}, {OWN_CLAIM}."),
            brief: format!(
                "{visitor_name} starts only if the volume is on {node}, as {host_name} uses it"
            ),
            ..hazard(analysis, volume, claim, Outcome::Stuck)
        };
    }
    let advice =
        if visitor.ends() { "Nothing breaks." } else { "Delete it when it is no longer needed." };
    Hazard {
        what,
        advice: advice.to_owned(),
        brief: format!("while {visitor_name} runs, {host_name} can restart {only}"),
        ..hazard(analysis, volume, claim, Outcome::Delay)
    }
}
