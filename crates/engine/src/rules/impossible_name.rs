//! A claim or a pod names something by a name that no object can have.
//!
//! # Fires on
//!
//! In files: a PersistentVolumeClaim, or a StatefulSet's template of claims, whose
//! `storageClassName`, or a workload whose `claimName`, is no DNS-1123 subdomain, for example
//! because of an upper-case letter or an underscore. The outcome is `refused`.
//!
//! # Why
//!
//! The name of an object has at most 253 lowercase letters, digits, `-` and `.`, and each part
//! between dots begins and ends with a letter or a digit. The API server refuses a claim with
//! another class name. It accepts a pod with another claim name, which then waits for good.
//! Examples on the web use such names, such as `azureDisk`.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: v1
//! kind: PersistentVolumeClaim
//! metadata: {name: data}
//! spec:
//!   accessModes: [ReadWriteOnce]
//!   storageClassName: azureDisk
//! ```
//!
//! # What to do
//!
//! Write the name of a StorageClass as `kubectl get storageclass` lists it, or that of the claim.
//!
//! # Claims
//!
//! * Named by the pod template: read.
//! * A StatefulSet's own: read, in their templates.
//!
//! # Silent on
//!
//! Names that a tool is still to fill in: `${CLASS}`, `<class>`, `STORAGE_CLASS`. Objects of a
//! live cluster, where the API server has looked at all names.

use super::{ClaimReview, Hazard, On, Outcome, Rule};
use crate::analysis::Analysis;
use crate::model::Text;
use crate::model::metadata::is_name;

pub(super) const RULE: Rule = Rule {
    code: "impossible-name",
    at_fault: "no object can have this name",
    on: &[On::Workload(judge), On::Claim(judge_claim)],
};

fn judge_claim(review: &ClaimReview<'_>, found: &mut Vec<Hazard>) {
    if review.old.is_some() || !review.facts.view.overlay().files {
        return;
    }
    if let Some(class) = review.claim.class().filter(|class| is_impossible(class)) {
        let path = "spec.storageClassName".to_owned();
        let claim = review.claim.metadata.name.clone();
        found.push(hazard("StorageClass", class, path, claim));
    }
}

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    if !analysis.facts.view.overlay().files {
        return;
    }
    for volume in &analysis.volumes {
        if let Some(claim) = volume.claim.as_ref().filter(|claim| is_impossible(claim)) {
            let path = analysis.volume_path(volume);
            found.push(hazard("claim", claim, path, claim.clone()));
        }
    }
    for (at, template) in analysis.workload.claim_templates.iter().enumerate() {
        if let Some(class) = template.class().filter(|class| is_impossible(class)) {
            let path = format!("spec.volumeClaimTemplates[{at}].spec.storageClassName");
            found.push(hazard("StorageClass", class, path, template.metadata.name.clone()));
        }
    }
}

/// Whether somebody wrote it as a name, but no object can have it. A word in capitals is a
/// placeholder that a tool replaces.
pub(super) fn is_impossible(name: &str) -> bool {
    let is_written = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let has_small = name.chars().any(|letter| letter.is_ascii_lowercase());
    has_small && name.chars().all(is_written) && !is_name(name) && !name.starts_with("__")
}

/// The part of a name that makes it invalid.
fn fault(name: &str) -> &'static str {
    if name.chars().any(|letter| letter.is_ascii_uppercase()) {
        "upper case"
    } else if name.contains('_') {
        "an underscore"
    } else if name.len() > 253 {
        "more than 253 letters"
    } else {
        "a part that begins or ends with a sign"
    }
}

fn hazard(kind: &str, name: &str, field_path: String, volume: Text) -> Hazard {
    let fault = fault(name);
    Hazard {
        field_path,
        volumes: vec![volume],
        what: format!(
            "it names {kind} \"{name}\", and a name cannot have {fault}: it has at most 253 lowercase letters, digits, \"-\" and \".\", and begins and ends with a letter or a digit (a DNS-1123 subdomain)."
        ),
        advice: match kind {
            "StorageClass" => {
                "Write the name of a StorageClass as `kubectl get storageclass` lists it."
            }
            _ => "Write the name of the claim as its manifest has it.",
        }
        .to_owned(),
        brief: format!("no {kind} can be called \"{name}\": a name cannot have {fault}"),
        ..RULE.hazard(Outcome::Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::is_impossible;

    #[test]
    fn names_that_a_tool_fills_in_are_none() {
        for name in ["azureDisk", "my_data", "Data", "data-", "a..b"] {
            assert!(is_impossible(name), "{name}");
        }
        for name in ["", "gp3", "a.b-c", "${CLASS}", "<class>", "STORAGE_CLASS", "__name__"] {
            assert!(!is_impossible(name), "{name}");
        }
    }
}
