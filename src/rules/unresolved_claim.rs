//! A claim, class or volume on which a verdict depends is not known.
//!
//! # Fires on
//!
//! A workload that would be at fault if a volume of its were exclusive, where
//! that cannot be told: the claim, its class or its volume is missing, the cache
//! has not heard of it yet, or the class's provisioner is neither a CSI driver nor
//! in the catalog. The outcome is `unknown`, and it is never denied by default.
//!
//! # Why
//!
//! A guess would be either a false alarm or a missed deadlock. In a cluster the
//! claim may arrive a moment later; it is then judged together with the
//! workloads that wait for it.
//!
//! # Example
//!
//! ```yaml
//! kind: Deployment
//! spec:
//!   template:
//!     spec:
//!       volumes:
//!       - name: data
//!         persistentVolumeClaim: {claimName: data} # no such claim
//! ```
//!
//! # What to do
//!
//! Create the claim first, or pass its manifest to `check` too, or give `check`
//! the cluster's facts with `--facts`.
//!
//! # Silent on
//!
//! Workloads for which the answer makes no difference: one pod that is never
//! replaced while it runs, pods that cannot be on two nodes, no replicas.

use super::hazard::Hazard;
use super::{Outcome, Rule, Subject, codes, words};
use crate::model::workload::WorkloadKind;
use crate::situation::volumes::Missing;
use crate::situation::{Hold, Situation, UsedVolume};

pub(super) const RULE: Rule = Rule {
    code: codes::UNRESOLVED_CLAIM,
    source: include_str!("unresolved_claim.rs"),
    judge,
};

fn judge(subject: &Subject<'_>, found: &mut Vec<Hazard>) {
    let Subject::Workload(situation) = subject else {
        return;
    };
    if !would_matter(situation) {
        return;
    }
    for volume in &situation.volumes {
        if let Hold::Unknown(missing) = &volume.hold {
            found.push(hazard(situation, volume, missing));
        }
    }
}

/// Whether an exclusive volume would be a hazard to this workload.
fn would_matter(situation: &Situation<'_>) -> bool {
    let workload = situation.workload;
    let overlaps = workload.kind == WorkloadKind::Deployment
        && workload.has_pods()
        && workload.strategy.room(workload.replicas).is_some()
        && !situation.placement.pins_rollouts();
    overlaps || (situation.pods() > 1 && !situation.placement.pins_replicas())
}

fn hazard(situation: &Situation<'_>, volume: &UsedVolume, missing: &Missing) -> Hazard {
    let claim = words::quoted(volume);
    let (seen, advice) = match missing {
        Missing::Claim => (
            format!("{claim} does not exist yet"),
            "Create the claim, or check its manifest together with this one.".to_owned(),
        ),
        Missing::ClaimsNotSynced => (
            format!("{claim} could not be looked up, as the cluster's claims are not known yet"),
            "Try again in a moment.".to_owned(),
        ),
        Missing::Class(class) => (
            format!("{claim} names StorageClass \"{class}\", which is not known"),
            "Create the class, or pass the cluster's facts with --facts.".to_owned(),
        ),
        Missing::DefaultClass => (
            format!("{claim} names no StorageClass and no default one is known"),
            "Name the class in the claim, or pass the cluster's facts with --facts.".to_owned(),
        ),
        Missing::FittingVolume => (
            format!("{claim} wants a volume made by hand and none that fits is known"),
            "Create the volume, or pass the cluster's facts with --facts.".to_owned(),
        ),
        Missing::Provisioner(name) => (
            format!("{claim} will be made by \"{name}\", of which nothing is known"),
            "Describe it under `provisioners` in the policy, or pass the facts once the claim is bound.".to_owned(),
        ),
        Missing::Volume(name) => (
            format!("{claim} is bound to volume \"{name}\", which is not known"),
            "Pass the cluster's facts with --facts, or try again in a moment.".to_owned(),
        ),
    };
    Hazard {
        rule: RULE.code,
        outcome: Outcome::Unknown,
        field_path: situation.volume_path(volume),
        volumes: vec![volume.shown_name().clone()],
        extent: 0,
        what: format!(
            "{seen}, so it could not be verified that several nodes may have its volume at once, which this {} needs.",
            situation.workload.kind
        ),
        advice,
        brief: format!("{claim}: not verified, as something it depends on is not known"),
    }
}
