//! A volume's access modes promise more than its driver can keep.
//!
//! # Fires on
//!
//! * A PersistentVolume with ReadWriteMany or ReadOnlyMany whose driver cannot give it (an EBS
//!   file system), if pods may be on two nodes. Several replicas and two workloads are `stuck`; a
//!   rolling update that may not stop the old pod first is a `deadlock`. The claim is reported too
//!   if it asks for that mode. If the driver refuses such a volume on the first node as well, as
//!   EBS does, any pod with it is `stuck`.
//! * A PersistentVolume with ReadWriteOnce and ReadOnlyMany together and without ReadWriteMany,
//!   whose driver attaches; and a claim, or a StatefulSet's template of claims, that asks a class
//!   for both: `stuck`.
//!
//! # Why
//!
//! The attach-detach controller trusts the access modes of the PersistentVolume, and nobody checks
//! those of a volume made by hand. It lets a second node pass, and the driver refuses to attach
//! there: the pod stays in `ContainerCreating`. ReadWriteOnce beside ReadOnlyMany makes nothing
//! shareable: the external-attacher refuses the pair on every node (`CSI does not support
//! ReadOnlyMany and ReadWriteOnce on the same PersistentVolume`), so no pod ever starts.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: v1
//! kind: PersistentVolume
//! metadata: {name: media}
//! spec:
//!   accessModes: [ReadWriteMany]
//!   csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1, fsType: ext4}
//! ---
//! apiVersion: v1
//! kind: PersistentVolumeClaim
//! metadata: {name: media}
//! spec: {accessModes: [ReadWriteMany], storageClassName: "", volumeName: media}
//! ```
//!
//! # What to do
//!
//! Correct the volume's access modes; unlike a claim's, they can be changed. If several nodes need
//! the data, move it to a class that gives ReadWriteMany.
//!
//! # Claims
//!
//! * Named by the pod template: read.
//! * A StatefulSet's own: read. If the driver takes the volume on one node, there is no fault,
//!   because one pod uses it.
//!
//! # Silent on
//!
//! Drivers whose access modes are not verified, drivers that do not attach,
//! and single pods with Recreate on a volume that promises too much, where the driver is not known
//! to refuse the first node.

use std::borrow::Cow;

use hashbrown::HashSet;

use super::unguarded_volume::{Clash, by_driver, clashes};
use super::{ClaimReview, Hazard, On, Outcome, Rule, messages};
use crate::analysis::binding::{class_of, fitting};
use crate::analysis::mislabelled::{is_never_attached, mislabelled};
use crate::analysis::{Analysis, ByDriver, Facts, UsedVolume};
use crate::model::access_mode::AccessModes;
use crate::model::claim::Claim;
use crate::model::volume::Volume;

pub(super) const RULE: Rule = Rule {
    code: "mislabelled-volume",
    at_fault: "the volume claims access modes that its driver lacks",
    on: &[On::Workload(judge), On::Claim(judge_claim)],
};

const NEVER: &str = "Set the access modes of the PersistentVolume to ReadWriteOnce alone.";

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    for (volume, driver) in by_driver(analysis) {
        let name = messages::quoted(volume);
        let hazard = match driver {
            ByDriver::NeverAttached => never(&name),
            ByDriver::RefusesModes(modes) => refused(&name, &volume.driver, modes),
            ByDriver::CannotShare(modes) => {
                let clashes = clashes(analysis, volume, driver);
                found.extend(clashes.map(|clash| cannot_share(analysis, volume, modes, clash)));
                continue;
            }
            _ => continue,
        };
        found.push(Hazard {
            field_path: analysis.volume_path(volume),
            volumes: vec![volume.shown_name().clone()],
            ..hazard
        });
    }
    judge_own(analysis, found);
}

/// Judges a StatefulSet's own claims, one for each template. The kubelet attaches only what a
/// container mounts.
fn judge_own(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    let (workload, facts) = (analysis.workload, analysis.facts);
    let namespace = &workload.metadata.namespace;
    let mut reported = HashSet::new();
    for own in analysis.own_claims().filter(|_| workload.has_pods()) {
        let is_mounted =
            workload.template.own_volumes.get(own.at).is_some_and(|volume| volume.mounted);
        if !is_mounted || reported.contains(&own.at) {
            continue;
        }
        let claim = match facts.view.claim(namespace, &own.name).found() {
            Some(claim) => Cow::Borrowed(claim),
            None => Cow::Owned(own.forecast(namespace)),
        };
        let name = format!("claim \"{}\"", own.name);
        let hazard = match reaction(&claim, volume_of(&claim, facts), facts) {
            Some(ByDriver::NeverAttached) => never(&name),
            Some(ByDriver::RefusesModes(modes)) => refused(&name, "its driver", modes),
            _ => continue,
        };
        reported.insert(own.at);
        found.push(Hazard { field_path: own.field(), volumes: vec![own.name.into()], ..hazard });
    }
}

/// The volume to which the claim is bound or would be bound.
fn volume_of<'a>(claim: &Claim, facts: Facts<'a>) -> Option<&'a Volume> {
    match claim.spec.volume_name.as_str() {
        "" => fitting(claim, class_of(claim, facts).ok(), facts),
        name => facts.view.volume(name).found(),
    }
}

/// The driver's reaction to the volume of the claim or, if there is none, to the one that its class
/// would make.
fn reaction(claim: &Claim, volume: Option<&Volume>, facts: Facts<'_>) -> Option<ByDriver> {
    if let Some(volume) = volume {
        return mislabelled(volume, claim, facts);
    }
    let class = class_of(claim, facts).ok().filter(|_| claim.spec.volume_name.is_empty())?;
    let given = facts.catalog.capability_of_claim(class.driver(), &class.parameters, claim);
    let asked = claim.spec.access_modes;
    // Another rule reports modes that the class does not give.
    let is_given = asked.is_subset(given.granted.unwrap_or_default());
    (is_given && is_never_attached(asked, class.driver(), facts)).then_some(ByDriver::NeverAttached)
}

fn judge_claim(review: &ClaimReview<'_>, found: &mut Vec<Hazard>) {
    let (claim, facts) = (review.claim, review.facts);
    // Only the size of an existing claim can be changed, and binding is an update too.
    if review.old.is_some() {
        return;
    }
    let volume = volume_of(claim, facts);
    let name = volume.map_or("", |volume| volume.metadata.name.as_str());
    let hazard = match reaction(claim, volume, facts) {
        Some(ByDriver::NeverAttached) => never("it"),
        Some(ByDriver::RefusesModes(modes)) => {
            refused(&format!("its volume \"{name}\""), "its driver", modes)
        }
        Some(ByDriver::CannotShare(modes)) if !claim.spec.access_modes.common(modes).is_empty() => {
            Hazard {
                what: format!(
                    "its volume \"{name}\" is labelled {modes}, which its driver cannot give, so a pod on a second node stays in ContainerCreating."
                ),
                ..too_much(modes)
            }
        }
        _ => return,
    };
    found.push(Hazard {
        field_path: "spec.accessModes".to_owned(),
        volumes: vec![claim.metadata.name.clone()],
        ..hazard
    });
}

/// A volume with ReadWriteOnce and ReadOnlyMany. `subject` names the volume in the sentence.
fn never(subject: &str) -> Hazard {
    Hazard {
        what: format!(
            "{subject} has the access modes ReadWriteOnce and ReadOnlyMany, which the external-attacher refuses together, so no pod with it ever starts."
        ),
        advice: NEVER.to_owned(),
        brief:
            "ReadWriteOnce and ReadOnlyMany together are never attached; use ReadWriteOnce alone"
                .to_owned(),
        ..RULE.hazard(Outcome::Stuck)
    }
}

/// A volume with modes that its driver refuses to attach. `subject` names the volume in the
/// sentence.
fn refused(subject: &str, driver: &str, modes: AccessModes) -> Hazard {
    Hazard {
        what: format!(
            "{subject} is labelled {modes}, which {driver} cannot give, and it refuses to attach such a volume to the first node as well, so no pod with it ever starts."
        ),
        advice: NEVER.to_owned(),
        brief: format!(
            "{subject} is labelled {modes} and never attached; set its modes to ReadWriteOnce alone"
        ),
        ..too_much(modes)
    }
}

fn too_much(modes: AccessModes) -> Hazard {
    Hazard {
        advice: "Set the access modes of the PersistentVolume to the driver's, or move the data to a class that can give ReadWriteMany.".to_owned(),
        brief: format!("the volume is labelled {modes}, which its driver cannot give"),
        ..RULE.hazard(Outcome::Stuck)
    }
}

fn cannot_share(
    analysis: &Analysis<'_>,
    volume: &UsedVolume,
    modes: AccessModes,
    clash: Clash,
) -> Hazard {
    let (name, driver, brief) = (messages::quoted(volume), &volume.driver, clash.brief);
    let eligible = &analysis.placement.eligible;
    Hazard {
        outcome: clash.outcome,
        field_path: clash.field,
        volumes: vec![volume.shown_name().clone()],
        excess: clash.excess,
        what: format!(
            "{name} is labelled {modes}, but {driver} attaches it to one node only, and {eligible}; {}, so {}.",
            clash.seen, clash.refused
        ),
        advice: format!(
            "{}, or move the data to a class that can give ReadWriteMany.{}",
            clash.advice,
            messages::shared_class(analysis)
        ),
        brief: format!("{name} is labelled {modes}, which {driver} cannot give; {brief}"),
        ..too_much(modes)
    }
}
