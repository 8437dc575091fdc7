//! A claim asks for access modes that its StorageClass cannot give, or that no claim can have.
//!
//! # Fires on
//!
//! A new PersistentVolumeClaim that asks for a mode its class's provisioner lacks for that volume
//! mode. Also a template of such claims: a StatefulSet's `volumeClaimTemplates` and generic
//! ephemeral volumes. The outcome is `stuck` if the driver's code or documentation rules the mode
//! out, at least with the class's parameters and this claim. It is also `stuck` if the claim names
//! a free volume without one of its modes. It is `unknown` if the answer depends on something that
//! no object shows, or if the catalog is not sure.
//!
//! A claim or a template without access modes, or with ReadWriteOncePod beside another one, is
//! `refused` by the API server. Before Kubernetes 1.34 it accepts such a template in a StatefulSet,
//! and refuses every claim that is made from it.
//!
//! # Why
//!
//! Some drivers refuse to make such a volume, and the claim stays Pending with an Event that few
//! people read. Others do not check: they make a volume labelled ReadWriteMany that cannot be
//! shared.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: v1
//! kind: PersistentVolumeClaim
//! metadata: {name: data}
//! spec:
//!   storageClassName: gp3 # ebs.csi.aws.com
//!   accessModes: [ReadWriteMany]
//! ```
//!
//! # What to do
//!
//! Ask for modes that the class can give (`multi-attach-guard capabilities` lists them), or use
//! another class. If the catalog is wrong about your driver, correct it with the class's
//! annotation `multi-attach-guard.dev/access-modes`, or in the policy under `provisioners`.
//!
//! # Claims
//!
//! * Named by the pod template: not read. Claims are judged by themselves.
//! * A StatefulSet's own: read, in their templates, as far as a claim is still to be made.
//!
//! # Silent on
//!
//! Claims that are bound, that a volume is reserved for (`claimRef`) or that a
//! free volume fits, provisioners that nobody
//! knows, updates of claims, and templates whose claims are all there.

use super::{Certainty, ClaimReview, Hazard, On, Outcome, Rule, messages};
use crate::analysis::attach_constraint::Missing;
use crate::analysis::{Analysis, Facts, Grounds, binding, own_claims};
use crate::model::Text;
use crate::model::access_mode::{AccessMode, AccessModes};
use crate::model::claim::Claim;
use crate::model::pod::EphemeralClaim;
use crate::model::storage_class::StorageClass;
use crate::snapshot::Lookup;
use crate::storage::{ClassModes, Support, likely_classes};

pub(super) const RULE: Rule = Rule {
    code: "unsupported-access-mode",
    at_fault: "the class does not give this",
    on: &[On::Claim(judge_claim), On::Workload(judge_templates)],
};

fn judge_claim(review: &ClaimReview<'_>, found: &mut Vec<Hazard>) {
    if review.old.is_none() {
        match refused(review.claim) {
            Some(hazard) => found.push(hazard),
            None => judge(review.claim, review.facts, found),
        }
    }
}

/// Judges one claim for each template of a workload: the one that its first pod without a claim
/// will make.
fn judge_templates(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    let (workload, facts) = (analysis.workload, analysis.facts);
    let namespace = &workload.metadata.namespace;
    // The API server does not validate the templates of a stored StatefulSet again.
    let is_stored = workload.is_behind.is_some();
    let mut judge_template = |claim: Option<Claim>, template: &Claim, path: String| {
        let mut hazards = Vec::new();
        match (refused(template).filter(|_| !is_stored), claim) {
            (Some(hazard), _) => hazards.push(hazard),
            (None, Some(claim)) => judge(&claim, facts, &mut hazards),
            (None, None) => {}
        }
        let template = &template.metadata.name;
        found.extend(hazards.into_iter().map(|hazard| Hazard {
            field_path: format!("{path}.spec.accessModes"),
            volumes: vec![template.clone()],
            what: format!("claim template \"{template}\": {}", hazard.what),
            ..hazard
        }));
    };
    for (at, template) in workload.claim_templates.iter().enumerate() {
        let next = own_claims::of(workload).filter(|_| workload.has_pods()).find(|own| {
            own.at == at && matches!(facts.view.claim(namespace, &own.name), Lookup::Absent)
        });
        let claim = next.map(|own| own.forecast(namespace));
        judge_template(claim, template, format!("spec.volumeClaimTemplates[{at}]"));
    }
    let pod_spec = workload.kind.pod_spec_path();
    for EphemeralClaim { index, claim: template } in &workload.template.ephemeral {
        let path = format!("{pod_spec}.volumes[{index}].ephemeral.volumeClaimTemplate");
        let mut claim = template.clone();
        claim.metadata.name = Text::default();
        claim.metadata.namespace = namespace.clone();
        judge_template(workload.has_pods().then_some(claim), template, path);
    }
}

/// The hazard of access modes with which the API server accepts no claim
/// (`ValidatePersistentVolumeClaimSpec` in `pkg/apis/core/validation/validation.go`).
fn refused(claim: &Claim) -> Option<Hazard> {
    let modes = claim.spec.access_modes;
    let others = modes.minus(AccessModes::of(&[AccessMode::ReadWriteOncePod]));
    if modes.is_unwritten() {
        return Some(Hazard {
            what: "it has no access mode, and the API server refuses a claim without one."
                .to_owned(),
            advice: "Add one to accessModes, ReadWriteOnce for example.".to_owned(),
            brief: "a claim needs an access mode; add ReadWriteOnce for example".to_owned(),
            ..hazard(claim, Outcome::Refused, modes)
        });
    }
    (modes.contains(AccessMode::ReadWriteOncePod) && !others.is_empty()).then(|| Hazard {
        what: format!(
            "it asks for ReadWriteOncePod and {others}, and the API server refuses ReadWriteOncePod beside another access mode."
        ),
        advice: format!("Ask for ReadWriteOncePod alone, or for {others} alone."),
        brief: format!("ReadWriteOncePod beside {others} is refused; ask for one of them"),
        ..hazard(claim, Outcome::Refused, modes)
    })
}

fn judge(claim: &Claim, facts: Facts<'_>, found: &mut Vec<Hazard>) {
    found.extend(mismatch(claim, facts));
    if !claim.spec.volume_name.is_empty() || claim.spec.access_modes.is_empty() {
        return;
    }
    match binding::class_of(claim, facts) {
        Ok(class) if binding::fitting(claim, Some(class), facts).is_none() => {
            let stated =
                ClassModes::from_annotations(&class.metadata.annotations).unwrap_or_else(|error| {
                    found.push(unreadable_annotation(claim, class, &error));
                    ClassModes::default()
                });
            found.extend(unsupported(claim, class, stated, facts));
        }
        Err(Missing::Class(name, _))
            if facts.view.overlay().partial && binding::fitting(claim, None, facts).is_none() =>
        {
            found.extend(likely_unsupported(claim, &name, facts));
        }
        Ok(_) | Err(_) => {}
    }
}

/// The hazard of a free volume that the claim names and that lacks modes that the claim requests:
/// the two are never bound (`checkVolumeSatisfyClaim` in
/// `pkg/controller/volume/persistentvolume/pv_controller.go`).
fn mismatch(claim: &Claim, facts: Facts<'_>) -> Option<Hazard> {
    let volume = facts.view.volume(&claim.spec.volume_name).found()?;
    let (name, modes) = (&volume.metadata.name, volume.spec.access_modes);
    let lacking = claim.spec.access_modes.minus(modes);
    if lacking.is_empty()
        || volume.spec.claim_ref.is_some()
        || !claim.status.access_modes.is_empty()
    {
        return None;
    }
    Some(Hazard {
        what: format!(
            "it asks for {lacking} and names volume \"{name}\", which is {modes} only, so the two are never bound and the claim stays Pending."
        ),
        advice: format!("Ask for {modes}, or name another volume."),
        brief: format!("volume \"{name}\" is not {lacking}, so the claim is never bound to it"),
        ..hazard(claim, Outcome::Stuck, lacking)
    })
}

/// The hazard of modes that the claim requests and its class does not give.
fn unsupported(
    claim: &Claim,
    class: &StorageClass,
    stated: ClassModes,
    facts: Facts<'_>,
) -> Option<Hazard> {
    let (driver, volume_mode) = (class.driver(), claim.spec.volume_mode);
    let support = facts
        .catalog
        .capability_of_claim(driver, &class.parameters, claim)
        .with_stated(stated)
        .judge(claim.spec.access_modes);
    let class = format!("StorageClass \"{}\"", class.metadata.name);
    Some(match support {
        Support::Supported | Support::Unknown => return None,
        Support::Refused { modes } => {
            let shared = messages::class_that_shares(facts, volume_mode)
                .filter(|_| modes.contains(AccessMode::ReadWriteMany));
            let [advice, step] = match shared {
                Some(shared) => [
                    format!("Use {shared}, which can give ReadWriteMany, or ask for an access mode that {class} can give."),
                    format!("; use {shared}"),
                ],
                None => [
                    "Ask for an access mode the class can give, or use another class.".to_owned(),
                    String::new(),
                ],
            };
            Hazard {
                what: format!(
                    "it asks for {modes}, but {class} ({driver}) cannot give that for volumeMode {volume_mode}, so the claim stays Pending, or gets a volume that does not keep the promise."
                ),
                advice,
                brief: format!("{class} cannot give {modes}{step}"),
                ..hazard(claim, Outcome::Stuck, modes)
            }
        }
        Support::NotAsConfigured { modes, hint } => Hazard {
            what: format!(
                "it asks for {modes}, which {class} ({driver}) does not give for volumeMode {volume_mode} as things are: {hint}."
            ),
            advice:
                "Ask for an access mode the class can give, or use a class that is set up for it."
                    .to_owned(),
            brief: format!("{class} as it is set up cannot give {modes}"),
            ..hazard(claim, Outcome::Stuck, modes)
        },
        Support::Unproven { modes, hint } => Hazard {
            what: format!(
                "it asks for {modes}, and it is not certain that {class} ({driver}) gives that for volumeMode {volume_mode}: {hint}."
            ),
            advice: "Check the class and the driver's documentation; if it gives that, say so on the StorageClass with the annotation multi-attach-guard.dev/access-modes."
                .to_owned(),
            brief: format!("{class} may not give {modes}; check it"),
            ..hazard(claim, Outcome::Unknown, modes)
        },
    })
}

/// As `unsupported`, for a class that is not in view and has a name that installations create:
/// there is a hazard only if every meaning of the name has one, the mildest of them.
fn likely_unsupported(claim: &Claim, name: &str, facts: Facts<'_>) -> Option<Hazard> {
    let hazards: Option<Vec<Hazard>> = likely_classes(name)
        .iter()
        .map(|class| unsupported(claim, class, ClassModes::default(), facts))
        .collect();
    let mildest = hazards?.into_iter().rev().max_by_key(|hazard| hazard.outcome)?;
    let settle = messages::what_would_settle(&Grounds::ClassName(name.into()));
    Some(Hazard { certainty: Certainty::Likely, advice: mildest.advice + &settle, ..mildest })
}

fn unreadable_annotation(claim: &Claim, class: &StorageClass, error: &str) -> Hazard {
    let class = &class.metadata.name;
    Hazard {
        what: format!(
            "StorageClass \"{class}\" carries an annotation that cannot be read: {error}."
        ),
        advice: "Correct the annotation on the StorageClass.".to_owned(),
        brief: format!(
            "StorageClass \"{class}\" has an access-modes annotation that cannot be read"
        ),
        ..hazard(claim, Outcome::Unknown, AccessModes::EMPTY)
    }
}

fn hazard(claim: &Claim, outcome: Outcome, modes: AccessModes) -> Hazard {
    Hazard {
        field_path: "spec.accessModes".to_owned(),
        volumes: vec![claim.metadata.name.clone()],
        excess: i64::try_from(modes.len()).unwrap_or_default(),
        ..RULE.hazard(outcome)
    }
}
