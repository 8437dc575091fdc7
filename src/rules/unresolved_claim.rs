//! A claim, class or volume on which a verdict depends is not known.
//!
//! # Fires on
//!
//! A workload, an autoscaler or a request to scale that another rule would find
//! at fault if one of its volumes were exclusive, where that cannot be told: the
//! claim, its class or its volume is missing, the cache has not heard of it yet,
//! or the class's provisioner is neither a CSI driver nor in the catalog. The
//! outcome is `unknown`, and it is never denied by default.
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
use super::{On, Outcome, Rule, Scaling, judge_scaling, judge_workload, words};
use crate::situation::volumes::Missing;
use crate::situation::{Hold, Situation, UsedVolume};

pub(super) const RULE: Rule = Rule {
    code: "unresolved-claim",
    source: include_str!("unresolved_claim.rs"),
    on: &[On::Workload(judge), On::Scaled(judge_scaled)],
};

fn judge(situation: &Situation<'_>, found: &mut Vec<Hazard>) {
    if let Some(assumed) = situation.with_unknown_as_exclusive() {
        found.extend(unresolved(situation, &judge_workload(&assumed), None));
    }
}

fn judge_scaled(scaling: &Scaling<'_>, found: &mut Vec<Hazard>) {
    if let Some(situation) = scaling.situation.with_unknown_as_exclusive() {
        let hazards = judge_scaling(&Scaling {
            situation,
            ..*scaling
        });
        let field = hazards.first().map(|hazard| hazard.field_path.clone());
        found.extend(unresolved(&scaling.situation, &hazards, field.as_deref()));
    }
}

/// What cannot be told of the volumes on which `hazards` rest. `field` is the
/// field at fault, where it is not the one that names the volume.
fn unresolved(situation: &Situation<'_>, hazards: &[Hazard], field: Option<&str>) -> Vec<Hazard> {
    let rests_on = |volume: &UsedVolume| {
        let name = volume.shown_name();
        hazards.iter().any(|hazard| hazard.volumes.contains(name))
    };
    situation
        .volumes
        .iter()
        .filter_map(|volume| match &volume.hold {
            Hold::Unknown(missing) if rests_on(volume) => {
                let mut hazard = hazard(situation, volume, missing);
                if let Some(field) = field {
                    field.clone_into(&mut hazard.field_path);
                }
                Some(hazard)
            }
            _ => None,
        })
        .collect()
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
