//! Two workloads use one volume that only one node, or only one pod, can use at a time.
//!
//! # Fires on
//!
//! A workload whose claim another workload with pods uses too, if the volume is ReadWriteOncePod,
//! or exclusive and their pods may be on different nodes. Also a request to scale such a workload
//! up from 0. It is reported once for each claim, with the names of the others, on the later
//! object; in files, on the one that ends by itself.
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

use super::{Certainty, Hazard, On, Outcome, Rule, Scaling, messages};
use crate::analysis::affinity::{self, OtherTargets, POD_NAME};
use crate::analysis::company::{NoNode, Obstacle, missing_tolerations, obstacle};
use crate::analysis::users::Visit;
use crate::analysis::{Analysis, AttachConstraint, UsedVolume, own_claims, users, volumes};
use crate::model::claim::Claim;
use crate::model::labels::Labels;
use crate::model::pod::{HOSTNAME, PodAffinityTerm};
use crate::model::words::listed;
use crate::model::workload::{Workload, WorkloadKind};

pub(super) const RULE: Rule = Rule {
    code: "workloads-share-volume",
    at_fault: "another workload uses this volume too",
    on: &[On::Workload(judge), On::Scaled(judge_scaled)],
};

/// Judges a request to scale a workload up from 0, at which it held no volume. Autoscalers leave it
/// at 0.
fn judge_scaled(scaling: &Scaling<'_>, found: &mut Vec<Hazard>) {
    if scaling.before <= 0 && scaling.autoscaler.is_none() {
        judge(&scaling.analysis, found);
    }
}

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
    Some(Hazard {
        what: format!(
            "claim \"{claim}\" and claim \"{}\" of {other} are one disk, as the volumes \"{}\" and \"{}\" have one handle, \"{}\" ({}); {waits}.",
            named.name, own.metadata.name, twin.metadata.name, own.spec.handle, volume.driver,
        ),
        advice: "Give each workload a disk of its own, or let one of them alone use it.".to_owned(),
        brief: format!(
            "claim \"{claim}\" is the same disk as claim \"{}\"; {}",
            named.name, consequence.brief
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
    let pair = pair(analysis, claim, &apart);
    let certainty = match pair {
        Some((follower, leader)) if is_led_by_chance(follower, leader, &apart, analysis) => {
            Certainty::Assumed
        }
        _ => Certainty::Verified,
    };
    let (led_astray, way) = match pair {
        Some((follower, leader)) => follow(follower, leader, claim, analysis),
        None => (String::new(), together(analysis, claim, &apart)),
    };
    Some(Hazard {
        certainty,
        advice: format!("{way}, {OWN_CLAIM}.{}", messages::shared_class(analysis)),
        ..used_by(analysis, volume, claim, &apart, consequence, &led_astray)?
    })
}

/// The hazard of a claim that `others` use too. `led_astray` says to which other pods affinity may
/// lead, or is empty.
fn used_by(
    analysis: &Analysis<'_>,
    volume: &UsedVolume,
    claim: &str,
    others: &[&Workload],
    consequence: &Consequence,
    led_astray: &str,
) -> Option<Hazard> {
    let first = others.first()?.shown();
    let names = messages::names_of(others);
    let excess = i64::try_from(names.len()).unwrap_or(i64::MAX);
    let described = messages::volumes(std::iter::once(volume));
    let users = messages::some(names);
    Some(Hazard {
        excess,
        what: format!("{described} and is also used by {users}; {led_astray}{}.", consequence.text),
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

/// The most other workloads that are compared with the workload.
const MOST_COMPARED: usize = 32;

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
    let (why, way) = explain_obstacle(&obstacle, follower, leader);
    let (described, other) = (messages::volumes(std::iter::once(volume)), other.shown());
    Some(Hazard {
        certainty: match obstacle {
            Obstacle::Nodes(NoNode::Unknown) => Certainty::Assumed,
            _ => Certainty::Verified,
        },
        what: format!(
            "{described} and is also used by {other}; {why}, and the later one never starts."
        ),
        advice: format!("{way}, {OWN_CLAIM}.{}", messages::shared_class(analysis)),
        brief: format!("claim \"{claim}\" is also used by {other}; no node can run both"),
        ..hazard(analysis, volume, claim, Outcome::Stuck)
    })
}

/// The obstacle between the two, and the advice to avoid it.
fn explain_obstacle(
    obstacle: &Obstacle,
    follower: &Workload,
    leader: &Workload,
) -> (String, String) {
    let (leads, follows, they) = (leader.shown(), follower.shown(), pods_of(follower));
    match obstacle {
        Obstacle::HostPort(port) => (
            format!("both use host port {port}, so no node takes both"),
            "Let one of them use another host port or none".to_owned(),
        ),
        Obstacle::AntiAffinity { of_first } => {
            let (owner, off) = if *of_first { (leads, follows) } else { (follows, leads) };
            (
                format!("the required anti-affinity of {owner} keeps {off} off its nodes"),
                format!("Take that anti-affinity off {owner}"),
            )
        }
        Obstacle::Device(device) => (
            format!("no node has enough {device} for both"),
            format!("Let one of them run without {device}"),
        ),
        Obstacle::Nodes(no_node) => {
            let lacks = match no_node {
                NoNode::Taints => "does not tolerate the taints of its nodes",
                NoNode::Contradiction | NoNode::Unknown => "no node is eligible for both",
            };
            (
                format!("{follows} follows {leads}, but {lacks}"),
                format!("Give {they}{}", needs(follower, leader, obstacle)),
            )
        }
    }
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
        let (_, way) = follow(visitor, host, claim, analysis);
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

/// The advice to bring workloads to one node if none of them can follow another. A workload that
/// affinity keeps there has the fields that the others lack.
fn together(analysis: &Analysis<'_>, claim: &str, apart: &[&Workload]) -> String {
    let (workload, facts) = (analysis.workload, analysis.facts);
    if users::comes_and_goes(workload) && apart.iter().all(|other| users::comes_and_goes(other)) {
        return "Start one when the other has ended".to_owned();
    }
    let (others, held) = match apart {
        _ if users::holds_together(workload, || users::all_others(analysis, claim), facts) => {
            let names = apart.iter().map(|other| other.shown()).collect();
            (messages::some(names), workload)
        }
        [first, rest @ ..] if users::holds_together(first, || rest.to_vec(), facts) => {
            ("it".to_owned(), *first)
        }
        _ => return PIN.to_owned(),
    };
    let held = held.shown();
    format!("Give {others} the pod labels and the required pod affinity that {held} has")
}

/// One of the two is stopped meanwhile, because an update that moves pods may be refused.
const PIN: &str = "Scale one to 0, give both one nodeSelector (`kubernetes.io/hostname: NODE`) and scale it up again";

/// The most labels that are named in a sentence.
const MOST_LABELS: usize = 3;

/// The follower and the leader on one node: a workload that comes and goes follows one that runs
/// forever, preferably one that others follow already.
fn pair<'a>(
    analysis: &Analysis<'a>,
    claim: &str,
    apart: &[&'a Workload],
) -> Option<(&'a Workload, &'a Workload)> {
    let workload = analysis.workload;
    let (passing, lasting): (Vec<&Workload>, Vec<&Workload>) = users::all_others(analysis, claim)
        .into_iter()
        .take(MOST_COMPARED)
        .partition(|other| users::comes_and_goes(other));
    if !users::comes_and_goes(workload) {
        let free = apart.iter().find(|other| {
            users::comes_and_goes(other) && !users::follows_one(analysis, other, &lasting)
        })?;
        return Some((*free, workload));
    }
    let is_followed = |leader: &&&Workload| {
        passing.iter().any(|follower| users::follows_one(analysis, follower, &[leader]))
    };
    let last = || apart.iter().find(|other| workload.ends() && !other.ends());
    let leader = lasting.iter().find(is_followed).or(lasting.first());
    Some((workload, leader.or_else(last)?))
}

/// The places to which the affinity of `follower` leads it besides `leader`, as the beginning of a
/// sentence or an empty text; and the advice to keep it with `leader`.
fn follow(
    follower: &Workload,
    leader: &Workload,
    claim: &str,
    analysis: &Analysis<'_>,
) -> (String, String) {
    let facts = analysis.facts;
    let name = follower.shown();
    let (they, leading) = (pods_of(follower), pods_of(leader));
    let marks = users::marks(leader, claim);
    let terms = &follower.template.affinity;
    let leads_there = |term: &PodAffinityTerm| {
        term.label_selector.as_ref().is_some_and(|selector| selector.matches(&marks))
            && term.topology_key == HOSTNAME
    };
    // Only the scheduler evaluates affinity, and it never sees pods with `nodeName`.
    let is_scheduled = follower.template.node_name.is_none();
    if is_scheduled && terms.iter().any(leads_there) && !terms.iter().all(leads_there) {
        let text = format!(
            "the required pod affinity of {name} also demands other pods on the same node, and no node has both once they run on different ones; "
        );
        let way = match follower.kind {
            kind @ (WorkloadKind::Job | WorkloadKind::CronJob) => {
                format!("Use a {kind} for each claim, or keep all of these pods on one node")
            }
            _ => "Keep all of these pods on one node".to_owned(),
        };
        return (text, way);
    }
    let targets = affinity::other_targets(follower, leader, facts);
    let led_astray = match &targets {
        Some(OtherTargets { leaders, .. }) if !leaders.is_empty() => {
            let whom = messages::some(leaders.iter().copied().map(pods_of).collect());
            format!(
                "the required pod affinity of {name} also matches {whom}, so it may run where those are; "
            )
        }
        Some(OtherTargets { own: true, .. }) => format!(
            "the required pod affinity of {name} also matches its own pods, so it may go to any node while none of these pods is there yet; "
        ),
        Some(_) if marks.get(POD_NAME).is_none() && !users::stays_together(analysis, leader) => {
            let way = format!("Keep {leading} on one node, as {they} go to any of them");
            return (String::new(), way);
        }
        _ => String::new(),
    };
    let leaders = targets.map_or_else(Vec::new, |targets| targets.leaders);
    let way = keep_beside(follower, leader, &marks, &leaders, analysis);
    (led_astray, way)
}

/// The advice to give `follower` affinity to the pods of `leader`, which have the labels `marks`.
/// If the pods of `follower` or `others` have these labels too, the advice asks for a label that
/// only `leader` has.
fn keep_beside(
    follower: &Workload,
    leader: &Workload,
    marks: &Labels,
    others: &[&Workload],
    analysis: &Analysis<'_>,
) -> String {
    let they = pods_of(follower);
    let found_too: Vec<String> = std::iter::once(&follower)
        .chain(others)
        .filter(|other| marks.is_subset(&other.template.labels))
        .map(|other| pods_of(other))
        .collect();
    let few = (1..=MOST_LABELS).contains(&marks.iter().count());
    let finds_the_leader_alone = few && found_too.is_empty();
    let is_pod = follower.kind == WorkloadKind::Pod;
    let more = besides_affinity(follower, leader, analysis);
    if finds_the_leader_alone && is_pod {
        return pod_beside(follower, leader, marks, &more, analysis);
    }
    let labels = pairs(marks, "=").join(",");
    let run = if is_pod { "it runs" } else { "they run" };
    let to = format!("{they} required pod affinity on kubernetes.io/hostname to pods with");
    if finds_the_leader_alone {
        return format!("Give {to} {labels}{more}, so that {run} where the volume is");
    }
    let why = if few {
        format!(" ({labels} is also on {})", messages::some(found_too))
    } else {
        String::new()
    };
    format!(
        "Give {} a label that no other pods have{why}, and {to} that label{more}, so that {run} where the volume is",
        pods_of(leader)
    )
}

/// The affinity of a bare pod in full, because nothing makes a new pod from a template.
fn pod_beside(
    follower: &Workload,
    leader: &Workload,
    marks: &Labels,
    more: &str,
    analysis: &Analysis<'_>,
) -> String {
    let terms = pairs(marks, ": ").join(", ");
    let how = if affinity::same(follower, analysis.workload) {
        "Give it".to_owned()
    } else {
        format!("Delete {}, or make it again with", pods_of(follower))
    };
    let ends = if follower.ends() { "" } else { "`restartPolicy: Never` and " };
    format!(
        "{how} {ends}`affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{labelSelector: {{matchLabels: {{{terms}}}}}, topologyKey: {HOSTNAME}}}]}}}}`{more}; or let it wait until {} has stopped",
        leader.shown()
    )
}

/// The labels as texts, with `is` between key and value.
fn pairs(labels: &Labels, is: &str) -> Vec<String> {
    labels.iter().map(|(key, value)| format!("{key}{is}{value}")).collect()
}

/// The other changes that `follower` needs, as a part of a sentence or an empty text.
fn besides_affinity(follower: &Workload, leader: &Workload, analysis: &Analysis<'_>) -> String {
    let mut more = match obstacle(leader, follower, None, analysis.facts) {
        Some(nodes @ Obstacle::Nodes(_)) => format!(" and{}", needs(follower, leader, &nodes)),
        _ => tolerations_of(follower, leader)
            .map_or_else(String::new, |tolerations| format!(" and {tolerations}")),
    };
    if let Some(node) = &follower.template.node_name {
        more.push_str(&format!(", in place of nodeName {node}"));
    }
    more
}

/// The changes besides affinity that the pods of `follower` need to get to the nodes of `leader`,
/// as a part of a sentence with a leading blank.
fn needs(follower: &Workload, leader: &Workload, obstacle: &Obstacle) -> String {
    let (name, selector) = (leader.shown(), pairs(&leader.template.node_selector, "="));
    let nodes = match (obstacle, selector.is_empty()) {
        (Obstacle::Nodes(NoNode::Taints), _) => None,
        (_, false) => Some(format!(
            "the node selector of {name} ({}) in place of their own",
            messages::some(selector)
        )),
        (_, true) => Some(format!("no other nodes than {name} has")),
    };
    let tolerations = tolerations_of(follower, leader);
    let parts: Vec<String> = nodes.into_iter().chain(tolerations).collect();
    if parts.is_empty() {
        format!(" what {name} has to get to its nodes")
    } else {
        format!(" {}", listed(&parts, "and"))
    }
}

/// The tolerations of `leader` that `follower` lacks, as a part of a sentence.
fn tolerations_of(follower: &Workload, leader: &Workload) -> Option<String> {
    let missing = missing_tolerations(follower, leader);
    if missing.is_empty() {
        return None;
    }
    let tolerations = messages::some(missing.iter().map(ToString::to_string).collect());
    Some(format!("the tolerations of {} ({tolerations})", leader.shown()))
}

/// `the pods of Job fill`, or `Pod shell`.
fn pods_of(workload: &Workload) -> String {
    let name = workload.shown();
    match (workload.kind, &workload.metadata.controller) {
        (WorkloadKind::Pod, None) => name,
        _ => format!("the pods of {name}"),
    }
}
