//! The ways to get the pods of workloads that share a volume to one node.

use super::messages;
use crate::analysis::affinity::{self, OtherTargets, POD_NAME};
use crate::analysis::company::{NoNode, Obstacle, missing_tolerations, obstacle};
use crate::analysis::{Analysis, users};
use crate::model::labels::Labels;
use crate::model::pod::{HOSTNAME, PodAffinityTerm};
use crate::model::words::listed;
use crate::model::workload::{Workload, WorkloadKind};

/// The most other workloads that are compared with the workload.
pub(super) const MOST_COMPARED: usize = 32;

/// The most labels that are named in a sentence.
const MOST_LABELS: usize = 3;

/// The way to one node.
pub(super) struct Way {
    /// What is in the way, as the beginning of a sentence about the consequence; else empty.
    pub before: String,
    /// The advice, as the beginning of a sentence.
    pub advice: String,
}

impl Way {
    /// The way in which nothing is.
    pub(super) const fn of(advice: String) -> Self {
        Self { before: String::new(), advice }
    }
}

/// The way for workloads of which none can follow another. A workload that affinity keeps with the
/// others has the fields that they lack.
pub(super) fn together(analysis: &Analysis<'_>, claim: &str, apart: &[&Workload]) -> String {
    let (workload, facts) = (analysis.workload, analysis.facts);
    if users::comes_and_goes(workload) && apart.iter().all(|other| users::comes_and_goes(other)) {
        return "Start one when the other has ended".to_owned();
    }
    let (others, held) = match apart {
        _ if users::holds_together(workload, || users::all_others(analysis, claim), facts) => {
            (messages::some(messages::names_of(apart)), workload)
        }
        [first, rest @ ..] if users::holds_together(first, || rest.to_vec(), facts) => {
            ("it".to_owned(), *first)
        }
        // An update that moves pods may be refused while they run.
        [other] => {
            return format!(
                "Scale {} or {} to 0, give both one nodeSelector (`{HOSTNAME}: NODE`) and scale it up again",
                other.shown(),
                workload.shown()
            );
        }
        _ => {
            return format!(
                "Scale {} to 0, give all users of the claim one nodeSelector (`{HOSTNAME}: NODE`) and scale it up again",
                workload.shown()
            );
        }
    };
    let held = held.shown();
    format!("Give {others} the pod labels and the required pod affinity that {held} has")
}

/// The follower and the leader on one node: a workload that comes and goes follows one that runs
/// forever, preferably one that others follow already.
pub(super) fn pair<'a>(
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

/// The way of `follower` to the node of `leader`.
pub(super) fn follow(
    follower: &Workload,
    leader: &Workload,
    claim: &str,
    analysis: &Analysis<'_>,
) -> Way {
    let facts = analysis.facts;
    let name = follower.shown();
    let marks = users::marks(leader, claim);
    let terms = &follower.template.affinity;
    let leads_there = |term: &PodAffinityTerm| {
        term.label_selector.as_ref().is_some_and(|selector| selector.matches(&marks))
            && term.topology_key == HOSTNAME
    };
    // Only the scheduler evaluates affinity, and it never sees pods with `nodeName`.
    let is_scheduled = follower.template.node_name.is_none();
    if is_scheduled && terms.iter().any(leads_there) && !terms.iter().all(leads_there) {
        return Way {
            before: format!(
                "the required pod affinity of {name} also demands other pods on the same node, and no node has both once they run on different ones; "
            ),
            advice: match follower.kind {
                kind @ (WorkloadKind::Job | WorkloadKind::CronJob) => {
                    format!("Use a {kind} for each claim, or keep all of these pods on one node")
                }
                _ => "Keep all of these pods on one node".to_owned(),
            },
        };
    }
    let targets = affinity::other_targets(follower, leader, facts);
    let before = match &targets {
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
            let (they, leading) = (pods_of(follower), pods_of(leader));
            return Way::of(format!("Keep {leading} on one node, as {they} go to any of them"));
        }
        _ => String::new(),
    };
    let leaders = targets.map_or_else(Vec::new, |targets| targets.leaders);
    Way { before, advice: keep_beside(follower, leader, &marks, &leaders, analysis) }
}

/// The advice to give `follower` affinity to the pods of `leader`, which have the labels `marks`.
/// If the pods of `follower` or `others` have these labels too, the advice asks for a label that
/// only `leader` has. Nothing makes a new pod from a template for a bare pod, so its affinity is
/// there in full.
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
        let how = if affinity::same(follower, analysis.workload) {
            "Give it".to_owned()
        } else {
            format!("Delete {they}, or make it again with")
        };
        let ends = if follower.ends() { "" } else { "`restartPolicy: Never` and " };
        return format!(
            "{how} {ends}`affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{labelSelector: {{matchLabels: {{{}}}}}, topologyKey: {HOSTNAME}}}]}}}}`{more}; or let it wait until {} has stopped",
            pairs(marks, ": ").join(", "),
            leader.shown()
        );
    }
    let labels = pairs(marks, "=").join(",");
    let run = if is_pod { "it runs" } else { "they run" };
    let to = format!("{they} required pod affinity on {HOSTNAME} to pods with");
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

/// The labels as texts, with `is` between key and value.
fn pairs(labels: &Labels, is: &str) -> Vec<String> {
    labels.iter().map(|(key, value)| format!("{key}{is}{value}")).collect()
}

/// The other changes that `follower` needs, as a part of a sentence or an empty text.
fn besides_affinity(follower: &Workload, leader: &Workload, analysis: &Analysis<'_>) -> String {
    let mut more = match obstacle(leader, follower, None, analysis.facts) {
        Some(Obstacle::Nodes(no_node)) => format!(" and {}", needs(follower, leader, no_node)),
        _ => tolerations_of(follower, leader)
            .map_or_else(String::new, |tolerations| format!(" and {tolerations}")),
    };
    if let Some(node) = &follower.template.node_name {
        more.push_str(&format!(", in place of nodeName {node}"));
    }
    more
}

/// The way around the obstacle between the two.
pub(super) fn around(obstacle: &Obstacle, follower: &Workload, leader: &Workload) -> Way {
    let (leads, follows, they) = (leader.shown(), follower.shown(), pods_of(follower));
    let (why, advice) = match obstacle {
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
                format!("Give {they} {}", needs(follower, leader, *no_node)),
            )
        }
    };
    Way { before: format!("{why}, and "), advice }
}

/// The changes besides affinity that the pods of `follower` need to get to the nodes of `leader`,
/// as a part of a sentence.
fn needs(follower: &Workload, leader: &Workload, no_node: NoNode) -> String {
    let (name, selector) = (leader.shown(), pairs(&leader.template.node_selector, "="));
    let nodes = match (no_node, selector.is_empty()) {
        (NoNode::Taints, _) => None,
        (_, false) => Some(format!(
            "the node selector of {name} ({}) in place of their own",
            messages::some(selector)
        )),
        (_, true) => Some(format!("no other nodes than {name} has")),
    };
    let tolerations = tolerations_of(follower, leader);
    let parts: Vec<String> = nodes.into_iter().chain(tolerations).collect();
    if parts.is_empty() {
        format!("what {name} has to get to its nodes")
    } else {
        listed(&parts, "and")
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
