//! Two workloads use one volume that only one node, or only one pod, can use at a time.
//!
//! # Fires on
//!
//! A workload whose claim another workload with pods uses too, where the volume
//! is exclusive and their pods may be on different nodes, or where it is
//! ReadWriteOncePod; and a request to scale such a workload up from 0. The
//! outcome is `stuck`; for a Job, CronJob or bare pod that runs to an end and
//! shares an exclusive volume only with others that also end it is `delay`. It is reported
//! once for each claim, with the names of the others, on the object that comes
//! later; in files, on the one that ends by itself. A claim with the name that a
//! StatefulSet's template makes (`data-postgres-0`) is that StatefulSet's, whether
//! it exists yet or not, and one with the name of a pod and its generic ephemeral volume
//! (`builder-sources`) is that pod's. Two PersistentVolumes with one driver and one
//! `volumeHandle` are one volume. Bare pods and those of controllers that are not known
//! here are users like any other; `serve` sees them with `--bare-pods`.
//!
//! # Why
//!
//! The classic is an application and its backup job: each is fine alone, but
//! as soon as the job's pod lands on another node it waits for the volume for
//! as long as the application runs. For ReadWriteOncePod even the same node
//! does not help. Nor does affinity of the job that matches its own pods as well: while
//! none of either is there, in a first installation or between two pods of the
//! application, the job's pod goes to any node, and which of the two gets the volume is
//! chance.
//!
//! # Example
//!
//! ```yaml
//! # Deployment "web" uses claim "data" (ReadWriteOnce); so does:
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
//! ```
//!
//! # What to do
//!
//! Give the job required pod affinity to the application's pods, and neither to its
//! own nor to those of anything else, on `kubernetes.io/hostname`, so that it runs where
//! the volume is; or scale one of them to 0, pin both to the same node with a `nodeSelector`
//! and scale it up again; or back up from a snapshot; or use a
//! ReadWriteMany volume.
//!
//! # Silent on
//!
//! Workloads that are always on the same node: both pinned to it, a Job or
//! CronJob that follows the other (or the very pod of a StatefulSet, by the label
//! `statefulset.kubernetes.io/pod-name`) by affinity, or both held by affinity that
//! ties them in both directions. A Deployment that merely follows another one is
//! not: the other may move while it stays. Pods that run to an end and wait for
//! each other's ReadWriteOncePod volume.

use std::collections::HashSet;

use super::hazard::Hazard;
use super::{Certainty, On, Outcome, Rule, Scaling, messages};
use crate::analysis::affinity::{self, POD_NAME, Strays};
use crate::analysis::{Analysis, AttachConstraint, Facts, UsedVolume, users, volumes};
use crate::model::labels::Labels;
use crate::model::pod::{HOSTNAME, PodAffinityTerm};
use crate::model::workload::{Workload, WorkloadKind};

pub(super) const RULE: Rule = Rule {
    code: "workloads-share-volume",
    source: include_str!("workloads_share_volume.rs"),
    on: &[On::Workload(judge), On::Scaled(judge_scaled)],
};

/// Without pods it held nothing so far. Autoscalers leave it at 0.
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
    for (at, claim) in users::made_claims(workload) {
        if let Some(template) = workload.claim_templates.get(at)
            && !users::others(analysis, &claim).is_empty()
        {
            let namespace = &workload.metadata.namespace;
            let volume = volumes::of_template(&claim, template, namespace, analysis.facts);
            let hazard = find(&analysis.with_only(volume.clone()), &volume, &claim);
            found.extend(hazard.map(|hazard| Hazard {
                field_path: format!("spec.volumeClaimTemplates[{at}]"),
                ..hazard
            }));
        }
    }
    let own = workload.template.ephemeral.iter();
    for ((claim, template), ephemeral) in workload.ephemeral_claims().zip(own) {
        if !users::others(analysis, &claim).is_empty() {
            let namespace = &workload.metadata.namespace;
            let volume = UsedVolume {
                index: ephemeral.index,
                ..volumes::of_template(&claim, template, namespace, analysis.facts)
            };
            found.extend(find(&analysis.with_only(volume.clone()), &volume, &claim));
        }
    }
    let mut mentioned = HashSet::new();
    for volume in &analysis.volumes {
        if let Some(claim) = &volume.claim
            && mentioned.insert(claim)
        {
            let shared = find(analysis, volume, claim);
            let shared = shared.or_else(|| of_pod(analysis, volume, claim));
            found.extend(shared.or_else(|| of_twins(analysis, volume, claim)));
        }
    }
}

/// The claim of another pod's generic ephemeral volume, by the owner that Kubernetes wrote
/// into it: the pod itself may be out of view.
fn of_pod(analysis: &Analysis<'_>, volume: &UsedVolume, claim: &str) -> Option<Hazard> {
    let metadata = &analysis.workload.metadata;
    if !matches!(volume.attach_constraint, AttachConstraint::Exclusive { .. })
        || analysis.placement.one_node.is_some()
    {
        return None;
    }
    let owner = analysis
        .facts
        .view
        .claim(&metadata.namespace, claim)
        .found()?;
    let owner = owner.metadata.controller.as_ref()?;
    let is_pod = owner.group.is_empty() && owner.kind == WorkloadKind::Pod.name();
    if !is_pod || owner.name == metadata.name || analysis.workload.ephemeral_claim(claim).is_some()
    {
        return None;
    }
    Some(Hazard {
        rule: RULE.code,
        outcome: Outcome::Stuck,
        certainty: Certainty::Verified,
        field_path: analysis.volume_path(volume),
        volumes: vec![claim.into()],
        excess: 1,
        what: format!(
            "{} and belongs to Pod {}, whose generic ephemeral volume it is; {WAITS}.",
            messages::volumes(std::iter::once(volume)),
            owner.name
        ),
        advice: "Use a claim of its own; this one is deleted with that pod.".to_owned(),
        brief: format!(
            "claim \"{claim}\" belongs to Pod {}; {ONE_RUNS}",
            owner.name
        ),
    })
}

/// Other claims whose volumes are the same disk.
fn of_twins(analysis: &Analysis<'_>, volume: &UsedVolume, claim: &str) -> Option<Hazard> {
    if !matches!(
        volume.attach_constraint,
        AttachConstraint::Exclusive { .. } | AttachConstraint::SinglePod
    ) {
        return None;
    }
    let (workload, view) = (analysis.workload, analysis.facts.view);
    let bound = view.claim(&workload.metadata.namespace, claim).found()?;
    let own = view.volume(&bound.spec.volume_name).found()?;
    let (twin, named, other) = view.twins(own).into_iter().find_map(|twin| {
        let named = twin.claimed_by()?;
        let others = users::others_of(analysis, &named.namespace, &named.name);
        let apart = users::apart_of(analysis, others, volume);
        Some((twin, named, *apart.first()?))
    })?;
    let passing = workload.ends() && other.ends();
    let other = other.shown();
    Some(Hazard {
        rule: RULE.code,
        outcome: match passing {
            true => Outcome::Delay,
            false => Outcome::Stuck,
        },
        certainty: Certainty::Verified,
        field_path: analysis.volume_path(volume),
        volumes: vec![claim.into()],
        excess: 1,
        what: format!(
            "claim \"{claim}\" and claim \"{}\" of {other} are one disk, as the volumes \"{}\" and \"{}\" have one handle, \"{}\" ({}); {}.",
            named.name,
            own.metadata.name,
            twin.metadata.name,
            own.spec.handle,
            volume.driver,
            match passing {
                true => WAITS_FOR_THE_END,
                false => WAITS,
            }
        ),
        advice: "Give each workload a disk of its own, or let one of them alone use it.".to_owned(),
        brief: format!(
            "claim \"{claim}\" is the same disk as claim \"{}\"; {ONE_RUNS}",
            named.name
        ),
    })
}

const WAITS: &str = "on another node the later one stays in ContainerCreating with a Multi-Attach error for as long as the first one runs";
const WAITS_FOR_THE_END: &str =
    "on another node the later one waits with a Multi-Attach error until the first one has run";
const ONE_RUNS: &str = "on different nodes, only one of them can run";

fn find(analysis: &Analysis<'_>, volume: &UsedVolume, claim: &str) -> Option<Hazard> {
    let apart: Vec<_> = match volume.attach_constraint {
        AttachConstraint::SinglePod => users::others(analysis, claim),
        AttachConstraint::Exclusive { .. } => users::apart(analysis, claim, volume),
        AttachConstraint::Free | AttachConstraint::Driver(_) | AttachConstraint::Unknown(_) => {
            return None;
        }
    };
    let single_pod = volume.attach_constraint == AttachConstraint::SinglePod;
    let workload = analysis.workload;
    // Workloads that run to completion wait for each other and then run.
    let passing = workload.ends() && apart.iter().all(|it| it.ends());
    if passing && single_pod {
        return None;
    }
    let shown = |other: &&Workload| other.shown();
    let first = shown(apart.first()?);
    let mut others: Vec<String> = apart.iter().map(shown).collect();
    others.sort_unstable();
    others.dedup();
    let (outcome, consequence, brief) = if single_pod {
        (
            Outcome::Stuck,
            "one pod in the whole cluster may use it, so the later one stays Pending",
            "one of them never starts",
        )
    } else if passing {
        (
            Outcome::Delay,
            WAITS_FOR_THE_END,
            "on different nodes, one waits for the other",
        )
    } else {
        (Outcome::Stuck, WAITS, ONE_RUNS)
    };
    let (led_astray, way) = match pair(workload, &apart) {
        Some((follower, leader)) if !single_pod => follow(follower, leader, claim, analysis.facts),
        _ => (String::new(), together(analysis, claim, &apart)),
    };
    Some(Hazard {
        rule: RULE.code,
        outcome,
        certainty: Certainty::Verified,
        field_path: analysis.volume_path(volume),
        volumes: vec![claim.into()],
        excess: i64::try_from(others.len()).unwrap_or(i64::MAX),
        what: format!(
            "{} and is also used by {}; {led_astray}{consequence}.",
            messages::volumes(std::iter::once(volume)),
            messages::some(others),
        ),
        advice: if single_pod {
            "Give each workload a claim of its own, or use another access mode.".to_owned()
        } else {
            let class = messages::shared_class(analysis);
            format!("{way}, or give each workload a claim of its own.{class}")
        },
        brief: format!("claim \"{claim}\" is also used by {first}; {brief}"),
    })
}

/// How workloads that all run forever get to one node. One that affinity keeps there has what the
/// others lack.
fn together(analysis: &Analysis<'_>, claim: &str, apart: &[&Workload]) -> String {
    let (workload, facts) = (analysis.workload, analysis.facts);
    if users::holds_together(workload, || users::all_others(analysis, claim), facts) {
        let names = messages::some(apart.iter().map(|it| it.shown()).collect());
        return format!(
            "Give {names} the pod labels and the required pod affinity that {} has",
            workload.shown()
        );
    }
    match apart {
        [first, rest @ ..] if users::holds_together(first, || rest.to_vec(), facts) => format!(
            "Give it the pod labels and the required pod affinity that {} has",
            first.shown()
        ),
        _ => PIN.to_owned(),
    }
}

/// One of them is stopped meanwhile, as an update that moves pods may be refused.
const PIN: &str = "Scale one to 0, give both `nodeSelector: {kubernetes.io/hostname: NODE}` and scale it up again";

/// At most this many labels are named in a sentence.
const MOST_LABELS: usize = 3;

/// The follower and the leader on one node: what runs to completion follows what runs forever.
fn pair<'a>(
    workload: &'a Workload,
    others: &[&'a Workload],
) -> Option<(&'a Workload, &'a Workload)> {
    let other = others.iter().find(|it| it.ends() != workload.ends())?;
    Some(match workload.ends() {
        true => (workload, other),
        false => (other, workload),
    })
}

/// Where the affinity that `follower` has leads it beside `leader`, as the beginning of a
/// sentence or an empty text; and how it would be where `leader` is.
fn follow(
    follower: &Workload,
    leader: &Workload,
    claim: &str,
    facts: Facts<'_>,
) -> (String, String) {
    // Only the scheduler evaluates affinity, and it never sees pods with `nodeName`.
    if follower.template.node_name.is_some() {
        return (String::new(), PIN.to_owned());
    }
    let name = follower.shown();
    let (they, leading) = (pods_of(follower), pods_of(leader));
    let marks = users::marks(leader, claim);
    let terms = &follower.template.affinity;
    let leads_there = |term: &PodAffinityTerm| {
        let selector = term.label_selector.as_ref();
        selector.is_some_and(|it| it.matches(&marks)) && term.topology_key == HOSTNAME
    };
    if terms.iter().any(leads_there) && !terms.iter().all(leads_there) {
        let text = format!(
            "the required pod affinity of {name} also demands other pods on the same node, and no node has both once they run on different ones; "
        );
        let way = match follower.kind {
            WorkloadKind::Job | WorkloadKind::CronJob => format!(
                "Use a {} for each claim, or keep all of these pods on one node",
                follower.kind
            ),
            _ => "Keep all of these pods on one node".to_owned(),
        };
        return (text, way);
    }
    let is_led = affinity::strays(follower, leader, facts);
    let (led_astray, strays) = match is_led {
        None => (String::new(), Vec::new()),
        Some(Strays { leaders, .. }) if !leaders.is_empty() => {
            let whom = messages::some(leaders.iter().copied().map(pods_of).collect());
            let text = format!(
                "the required pod affinity of {name} also matches {whom}, so it may run where those are; "
            );
            (text, leaders)
        }
        Some(Strays { own: true, .. }) => {
            let text = format!(
                "the required pod affinity of {name} also matches its own pods, so it may go to any node while none of these pods is there yet; "
            );
            (text, Vec::new())
        }
        Some(_) if marks.get(POD_NAME).is_none() => {
            let way = format!("Keep {leading} on one node, as {they} go to any of them");
            return (String::new(), way);
        }
        Some(_) => (String::new(), Vec::new()),
    };
    let way = keep_beside(follower, leader, &marks, &strays);
    (led_astray, way)
}

/// The label by which the pods of `follower` find those of `leader`, which have `marks`; those of
/// `strays` have them too.
fn keep_beside(
    follower: &Workload,
    leader: &Workload,
    marks: &Labels,
    strays: &[&Workload],
) -> String {
    let (they, leading) = (pods_of(follower), pods_of(leader));
    let found_too: Vec<String> = std::iter::once(&follower)
        .chain(strays)
        .filter(|it| marks.is_subset(&it.template.labels))
        .map(|it| pods_of(it))
        .collect();
    let few = (1..=MOST_LABELS).contains(&marks.iter().count());
    let labels = marks.iter().map(|(key, value)| format!("{key}={value}"));
    let labels = labels.collect::<Vec<_>>().join(",");
    let run = match follower.kind {
        WorkloadKind::Pod => "it runs",
        _ => "they run",
    };
    let to = format!("{they} required pod affinity on kubernetes.io/hostname to pods with");
    if few && found_too.is_empty() {
        format!("Give {to} {labels}, so that {run} where the volume is")
    } else {
        let why = match few {
            true => format!(" ({labels} is also on {})", messages::some(found_too)),
            false => String::new(),
        };
        format!(
            "Give {leading} a label that no other pods have{why}, and {to} that label, so that {run} where the volume is"
        )
    }
}

/// `the pods of Job fill`, or `Pod shell`.
fn pods_of(workload: &Workload) -> String {
    let name = workload.shown();
    match (workload.kind, &workload.metadata.controller) {
        (WorkloadKind::Pod, None) => name,
        _ => format!("the pods of {name}"),
    }
}
