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
//! does not help.
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
//! Give the job required pod affinity to the application's pods, and not to its
//! own, on `kubernetes.io/hostname`, so that it runs where the volume is; or pin both
//! to the same node; or back up from a snapshot; or use a volume that many
//! nodes can have.
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
use super::{Certainty, On, Outcome, Rule, Scaling, words};
use crate::model::workload::{Workload, WorkloadKind};
use crate::situation::{Hold, Situation, UsedVolume, users, volumes};

pub(super) const RULE: Rule = Rule {
    code: "workloads-share-volume",
    source: include_str!("workloads_share_volume.rs"),
    on: &[On::Workload(judge), On::Scaled(judge_scaled)],
};

/// So many other workloads are named; of the rest only the number is told.
const NAMED: usize = 3;

/// Without pods it held nothing so far. Autoscalers leave it at 0.
fn judge_scaled(scaling: &Scaling<'_>, found: &mut Vec<Hazard>) {
    if scaling.before <= 0 && scaling.autoscaler.is_none() {
        judge(&scaling.situation, found);
    }
}

fn judge(situation: &Situation<'_>, found: &mut Vec<Hazard>) {
    let workload = situation.workload;
    if !workload.has_pods() {
        return;
    }
    for (at, claim) in users::made_claims(workload) {
        if let Some(template) = workload.claim_templates.get(at)
            && !users::others(situation, &claim).is_empty()
        {
            let namespace = &workload.metadata.namespace;
            let volume = volumes::of_template(&claim, template, namespace, situation.facts);
            let hazard = find(&situation.with_only(volume.clone()), &volume, &claim);
            found.extend(hazard.map(|hazard| Hazard {
                field_path: format!("spec.volumeClaimTemplates[{at}]"),
                ..hazard
            }));
        }
    }
    let mut mentioned = HashSet::new();
    for volume in &situation.volumes {
        if let Some(claim) = &volume.claim
            && mentioned.insert(claim)
        {
            found.extend(find(situation, volume, claim));
        }
    }
}

fn find(situation: &Situation<'_>, volume: &UsedVolume, claim: &str) -> Option<Hazard> {
    let apart: Vec<_> = match volume.hold {
        Hold::SinglePod => users::others(situation, claim),
        Hold::Exclusive { .. } => users::apart(situation, claim, volume),
        Hold::Free | Hold::Unknown(_) => return None,
    };
    let single_pod = volume.hold == Hold::SinglePod;
    // Whoever runs to an end waits for its like, and no longer.
    let passing = situation.workload.ends() && apart.iter().all(|it| it.ends());
    if passing && single_pod {
        return None;
    }
    let mut others: Vec<String> = apart
        .iter()
        .map(|other| format!("{} {}", other.kind, other.metadata.shown_name()))
        .collect();
    let first = others.first()?.clone();
    others.sort_unstable();
    others.dedup();
    let count = others.len();
    if count > NAMED {
        others.truncate(NAMED);
        others.push(format!("{} more", count - NAMED));
    }
    let others = words::list(&others);
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
            "apart, one of them never starts",
        )
    };
    Some(Hazard {
        rule: RULE.code,
        outcome: if passing {
            Outcome::Delay
        } else {
            Outcome::Stuck
        },
        certainty: Certainty::Verified,
        field_path: situation.volume_path(volume),
        volumes: vec![claim.into()],
        extent: i64::try_from(count).unwrap_or(i64::MAX),
        what: format!(
            "{} and is also used by {others}; {consequence}.",
            words::volumes(std::iter::once(volume))
        ),
        advice: if single_pod {
            "Give each workload a claim of its own, or use another access mode.".to_owned()
        } else {
            format!(
                "{}, or give each workload a claim of its own.{}",
                keep_together(situation.workload, &apart, claim),
                words::shared_class(situation)
            )
        },
        brief: format!("claim \"{claim}\" is also used by {first}; {brief}"),
    })
}

/// What keeps the pods of `workload` and those of the others on one node: who
/// comes and goes follows who stays.
fn keep_together(workload: &Workload, others: &[&Workload], claim: &str) -> String {
    let pair = if workload.ends() {
        let stays = others.iter().find(|other| !other.ends());
        stays.map(|leader| (workload, *leader))
    } else {
        let passes = others.iter().find(|other| other.ends());
        passes.map(|follower| (*follower, workload))
    };
    match pair.and_then(|(follower, leader)| Some((follower, users::marks(leader, claim)?))) {
        Some((follower, labels)) => {
            let (pods, run) = match follower.kind {
                WorkloadKind::Pod => ("", "it runs"),
                _ => ("the pods of ", "they run"),
            };
            format!(
                "Give {pods}{} {} required pod affinity on kubernetes.io/hostname to pods with {labels}, so that {run} where the volume is",
                follower.kind,
                follower.metadata.shown_name()
            )
        }
        None => "Pin all of their pods to one node".to_owned(),
    }
}
