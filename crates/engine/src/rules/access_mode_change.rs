//! An update changes a claim's access modes, which cannot be changed.
//!
//! # Fires on
//!
//! An update of a PersistentVolumeClaim whose `spec.accessModes` differ from
//! those it has. The outcome is `refused`.
//!
//! # Why
//!
//! A claim's specification is immutable but for its size and its attributes
//! class, and the API server's own message does not say what to do instead.
//!
//! # Example
//!
//! ```yaml
//! # The claim exists with [ReadWriteOnce].
//! spec:
//!   accessModes: [ReadWriteMany]
//! ```
//!
//! # What to do
//!
//! ReadWriteOncePod needs no copy, because the access modes of the PersistentVolume can be
//! changed. Set its `persistentVolumeReclaimPolicy` to `Retain`, scale the workloads to 0, delete
//! the claim, remove the volume's `spec.claimRef`, set its `accessModes`, and create the claim
//! again with `volumeName`.
//!
//! ReadWriteMany needs a second claim and a copy of the data. `multi-attach-guard capabilities`
//! says which StorageClass can give it; the page docs/migrate.md has the steps, the checks and the
//! way back. Or back up, scale to 0, delete the claim, create it again, restore, and scale up.
//!
//! # Claims
//!
//! * Named by the pod template: not read. Claims are judged by themselves.
//! * A StatefulSet's own: not read. Claims are judged by themselves.
//!
//! # Silent on
//!
//! Other changes of the claim.

use super::{ClaimReview, Hazard, On, Outcome, Rule, messages};
use crate::model::access_mode::{AccessMode, AccessModes};
use crate::model::claim::Claim;

pub(super) const RULE: Rule = Rule {
    code: "access-mode-change",
    at_fault: "the API server refuses to change this",
    on: &[On::Claim(judge)],
};

fn judge(review: &ClaimReview<'_>, found: &mut Vec<Hazard>) {
    let claim = review.claim;
    let Some(old) = review.old.filter(|old| claim.spec.access_modes != old.spec.access_modes)
    else {
        return;
    };
    let (advice, brief) = match without_copy(claim, old) {
        Some(advice) => (
            advice,
            "access modes of a claim cannot be changed; change the volume's, then recreate the claim",
        ),
        None => (
            with_copy(review),
            "access modes of a claim cannot be changed; back up, scale to 0, recreate, restore",
        ),
    };
    found.push(Hazard {
        field_path: "spec.accessModes".to_owned(),
        volumes: vec![claim.metadata.name.clone()],
        what: format!(
            "its access modes are {} and cannot be changed to {}: a claim's specification is immutable.",
            old.spec.access_modes, claim.spec.access_modes
        ),
        advice,
        brief: brief.to_owned(),
        ..RULE.hazard(Outcome::Refused)
    });
}

/// The advice for other modes, for which the data must be copied.
fn with_copy(review: &ClaimReview<'_>) -> String {
    let spec = &review.claim.spec;
    let class = messages::class_that_shares(review.facts, spec.volume_mode)
        .map_or_else(String::new, |class| format!(" {class} can give ReadWriteMany."));
    let steps = if spec.access_modes.contains(AccessMode::ReadWriteMany) {
        concat!(
            env!("CARGO_PKG_REPOSITORY"),
            "/blob/main/docs/migrate.md has the steps to a ReadWriteMany claim beside this one. "
        )
    } else {
        ""
    };
    format!(
        "{steps}To keep the claim's name, back the data up, scale the workloads that use it to 0, delete the claim, create it again with the access modes you want, restore the data and scale up.{class}"
    )
}

/// The advice for ReadWriteOncePod, for which the volume can stay (Kubernetes documentation,
/// "Change the Access Mode of a PersistentVolume to ReadWriteOncePod").
fn without_copy(claim: &Claim, old: &Claim) -> Option<String> {
    let target = AccessModes::of(&[AccessMode::ReadWriteOncePod]);
    if claim.spec.access_modes != target {
        return None;
    }
    let volume = match old.spec.volume_name.as_str() {
        "" => return Some("It is not bound yet: delete it and create it again.".to_owned()),
        name => name,
    };
    Some(format!(
        "No copy is needed. Set persistentVolumeReclaimPolicy of volume {volume} to Retain, scale the workloads that use the claim to 0, and delete the claim. Then remove spec.claimRef of the volume, set its accessModes to {target}, and create the claim again with volumeName {volume}."
    ))
}
