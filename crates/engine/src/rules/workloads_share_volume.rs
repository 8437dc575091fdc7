//! Two workloads use one volume that only one node, or only one pod, may have at a time.
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
//! it exists yet or not. Bare pods and those of controllers that are not known
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
//! volume that many nodes can have.
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
    let mut mentioned = HashSet::new();
    for volume in &analysis.volumes {
        if let Some(claim) = &volume.claim
            && mentioned.insert(claim)
        {
            found.extend(find(analysis, volume, claim));
        }
    }
}

fn find(analysis: &Analysis<'_>, volume: &UsedVolume, claim: &str) -> Option<Hazard> {
    let apart: Vec<_> = match volume.attach_constraint {
        AttachConstraint::SinglePod => users::others(analysis, claim),
        AttachConstraint::Exclusive { .. } => users::apart(analysis, claim, volume),
        AttachConstraint::Free | AttachConstraint::Unknown(_) => return None,
    };
    let single_pod = volume.attach_constraint == AttachConstraint::SinglePod;
    let workload = analysis.workload;
    // Whoever runs to an end waits for its like, and no longer.
    let passing = workload.ends() && apart.iter().all(|it| it.ends());
    if passing && single_pod {
        return None;
    }
    let shown = |other: &&Workload| format!("{} {}", other.kind, other.metadata.shown_name());
    let first = shown(apart.first()?);
    let mut others: Vec<String> = apart.iter().map(shown).collect();
    others.sort_unstable();
    others.dedup();
    let count = others.len();
    let (consequence, brief) = if single_pod {
        (
            "one pod in the whole cluster may use it, so the later one stays Pending",
            "one of them never starts",
        )
    } else if passing {
        (
            "on another node the later one waits with a Multi-Attach error until the first one has run",
            "apart, one waits for the other",
        )
    } else {
        (
            "on another node the later one stays in ContainerCreating with a Multi-Attach error for as long as the first one runs",
            "on different nodes, only one of them can run",
        )
    };
    let (led_astray, way) = match pair(workload, &apart) {
        Some((follower, leader)) if !single_pod => follow(follower, leader, claim, analysis.facts),
        _ => (String::new(), PIN.to_owned()),
    };
    Some(Hazard {
        rule: RULE.code,
        outcome: if passing {
            Outcome::Delay
        } else {
            Outcome::Stuck
        },
        certainty: Certainty::Verified,
        field_path: analysis.volume_path(volume),
        volumes: vec![claim.into()],
        excess: i64::try_from(count).unwrap_or(i64::MAX),
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

/// One of them is stopped meanwhile, as an update that moves pods may be refused.
const PIN: &str = "Scale one to 0, give both `nodeSelector: {kubernetes.io/hostname: NODE}` and scale it up again";

/// So many labels are named in a sentence.
const MOST_LABELS: usize = 3;

/// Who follows whom, to be on one node: who comes and goes follows who stays.
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
    // Its pods never meet the scheduler, which alone looks at affinity.
    if follower.template.node_name.is_some() {
        return (String::new(), PIN.to_owned());
    }
    let name = format!("{} {}", follower.kind, follower.metadata.shown_name());
    let (they, leading) = (pods_of(follower), pods_of(leader));
    let marks = users::marks(leader, claim);
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
    let found_too = std::iter::once(follower).chain(strays);
    let found_too: Vec<String> = found_too
        .filter(|it| marks.is_subset(&it.template.labels))
        .map(pods_of)
        .collect();
    let few = (1..=MOST_LABELS).contains(&marks.iter().count());
    let labels = marks.iter().map(|(key, value)| format!("{key}={value}"));
    let labels = labels.collect::<Vec<_>>().join(",");
    let run = match follower.kind {
        WorkloadKind::Pod => "it runs",
        _ => "they run",
    };
    let to = format!("{they} required pod affinity on kubernetes.io/hostname to pods with");
    let way = if few && found_too.is_empty() {
        format!("Give {to} {labels}, so that {run} where the volume is")
    } else {
        let why = match few {
            true => format!(" ({labels} is also on {})", messages::some(found_too)),
            false => String::new(),
        };
        format!(
            "Give {leading} a label that no other pods have{why}, and {to} that label, so that {run} where the volume is"
        )
    };
    (led_astray, way)
}

/// `the pods of Job fill`, or `Pod shell`.
fn pods_of(workload: &Workload) -> String {
    let (kind, name) = (workload.kind, workload.metadata.shown_name());
    match kind {
        WorkloadKind::Pod => format!("{kind} {name}"),
        _ => format!("the pods of {kind} {name}"),
    }
}
