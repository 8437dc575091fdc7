//! A claim, class or volume on which a verdict depends is not known.
//!
//! # Fires on
//!
//! A workload that would be at fault if one of its volumes were exclusive, if even that cannot be
//! assumed:
//!
//! * the claim does not exist;
//! * its volume does not exist, or must be created by hand (class `""` or
//!   `kubernetes.io/no-provisioner`) and none fits;
//! * the class's provisioner is neither a CSI driver nor in the catalog;
//! * the class does not exist in the live cluster;
//! * the class is not among the files, and its name says NFS, which most drivers do not attach and
//!   some do;
//! * the claim names no class, and claims in the same folder name K3s' default class;
//! * the class is not among the files, and the values or the templates of a chart that was not
//!   rendered name it;
//! * nothing attaches the disk, and nobody knows how its driver treats a second node.
//!
//! Also a workload one of whose claims is being deleted. Also a workload with an exclusive volume in
//! a namespace whose objects are too large or too many for the webhook to keep in memory: pods that
//! it does not see may use the volume.
//!
//! It is reported once for each workload. The outcome is `unknown`, which is never denied by
//! default. An object with too many related objects to judge gets the same finding.
//!
//! # Why
//!
//! A guess would be a false alarm or a missed deadlock. In a cluster the claim may arrive a moment
//! later; it is then judged with the workloads that wait for it.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
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
//! Create the missing object, check its manifest together with the workload's, or give `check` the
//! cluster's facts with `--facts`.
//!
//! # Claims
//!
//! * Named by the pod template: read.
//! * A StatefulSet's own: read, but only those that are being deleted. The controller makes a claim
//!   that does not exist, and each is for one pod.
//!
//! # Silent on
//!
//! Workloads for which the answer makes no difference: one pod that is never replaced while it
//! runs, and pods that cannot be on two nodes. A class outside the checked files: its
//! volumes are what its name says for sure, or else attached ones. Those findings are likely or
//! assumed, under their own rules.

use hashbrown::HashSet;

use super::{Hazard, On, Outcome, Rule, Scaling, Subject, codes, judge as judge_all, messages};
use crate::analysis::attach_constraint::Missing;
use crate::analysis::{Analysis, AttachConstraint, UsedVolume, own_claims, users};
use crate::model::Text;
use crate::model::autoscaler::Autoscaler;
use crate::model::metadata::is_name;
use crate::model::words::listed;
use crate::snapshot::Absence;

pub(super) const RULE: Rule = Rule {
    code: "unresolved-claim",
    at_fault: "the outcome depends on this volume, which is unknown",
    on: &[On::Workload(judge), On::Scaled(judge_scaled)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    found.extend(going(analysis).or_else(|| own_going(analysis)));
    found.extend(unseen_users(analysis));
    if let Some(assumed) = analysis.with_unknown_as_exclusive() {
        let hazards = judge_all(Subject::Workload(&assumed));
        let autoscaler = analysis.highest_autoscaler();
        let why = why(&hazards, &assumed, autoscaler);
        let need = format!("this {} needs{why}", analysis.workload.kind);
        found.extend(unresolved(analysis, &hazards, &need, None));
    }
}

/// A volume for one node that objects which the guard does not keep may use or lead elsewhere.
fn unseen_users(analysis: &Analysis<'_>) -> Option<Hazard> {
    let workload = analysis.workload;
    let namespace = &workload.metadata.namespace;
    if !workload.has_pods() || !analysis.facts.view.cluster().leaves_out(namespace) {
        return None;
    }
    let volume = analysis.volumes.iter().find(|volume| {
        volume.claim.is_some()
            && matches!(
                volume.attach_constraint,
                AttachConstraint::Exclusive { .. } | AttachConstraint::SinglePod
            )
    })?;
    let claim = messages::quoted(volume);
    let what = format!(
        "the namespace has objects that are too large or too many for the guard to keep, so nobody can tell whether other pods use {claim} or affect where its pod runs."
    );
    let advice = "Split workloads with more than a hundred volumes.";
    let brief = format!("{claim} may have users the guard cannot see; split workloads");
    Some(about_one(analysis, volume, what, advice, brief))
}

/// The hazard of something unknown about one volume.
fn about_one(
    analysis: &Analysis<'_>,
    volume: &UsedVolume,
    what: String,
    advice: &str,
    brief: String,
) -> Hazard {
    Hazard {
        field_path: analysis.volume_path(volume),
        volumes: vec![volume.shown_name().clone()],
        what,
        advice: advice.to_owned(),
        brief,
        ..RULE.hazard(Outcome::Unknown)
    }
}

/// A claim that is being deleted: the scheduler refuses new pods that use it (`podHasPVCs` in
/// `pkg/scheduler/framework/plugins/volumebinding/volume_binding.go`), and the claim goes when the
/// last pod with it is gone.
fn going(analysis: &Analysis<'_>) -> Option<Hazard> {
    let workload = analysis.workload;
    if !workload.has_pods() {
        return None;
    }
    let namespace = &workload.metadata.namespace;
    let volume = analysis.volumes.iter().find(|volume| {
        volume
            .claim
            .as_deref()
            .and_then(|name| analysis.facts.view.claim(namespace, name).found())
            .is_some_and(|claim| claim.metadata.is_being_deleted())
    })?;
    let claim = messages::quoted(volume);
    let what = format!(
        "{claim} is being deleted, so a new pod that uses it stays Pending until another claim of that name is there."
    );
    let advice = "Create it again once it is gone, or name another one.";
    let brief = format!("{claim} is being deleted: new pods stay Pending");
    Some(about_one(analysis, volume, what, advice, brief))
}

/// A StatefulSet's own claim that is being deleted: the controller makes neither the pod nor
/// another claim until it is gone (`createPersistentVolumeClaims` in
/// `pkg/controller/statefulset/stateful_pod_control.go`).
fn own_going(analysis: &Analysis<'_>) -> Option<Hazard> {
    let workload = analysis.workload;
    let going = |name: &str| {
        let claim = analysis.facts.view.claim(&workload.metadata.namespace, name).found();
        claim.is_some_and(|claim| claim.metadata.is_being_deleted())
    };
    let own = own_claims::of(workload).find(|own| workload.has_pods() && going(&own.name))?;
    let (claim, pod) = (&own.name, format!("{}-{}", workload.metadata.name, own.ordinal));
    Some(Hazard {
        field_path: own.field(),
        volumes: vec![claim.as_str().into()],
        what: format!(
            "claim \"{claim}\" is being deleted, so pod {pod} is not made anew until it is gone, and then gets a new, empty volume."
        ),
        advice: format!(
            "If the data matters, set persistentVolumeReclaimPolicy of its volume to Retain before pod {pod} stops."
        ),
        brief: format!("claim \"{claim}\" is being deleted; set its volume to Retain"),
        ..RULE.hazard(Outcome::Unknown)
    })
}

fn judge_scaled(scaling: &Scaling<'_>, found: &mut Vec<Hazard>) {
    if let Some(analysis) = scaling.analysis.with_unknown_as_exclusive() {
        let assumed = Scaling { analysis, ..*scaling };
        let hazards = judge_all(Subject::Scaled(&assumed));
        let why = why(&hazards, &assumed.analysis, scaling.autoscaler);
        let workload = assumed.analysis.workload;
        let need = format!("{} {} needs{why}", workload.kind, workload.metadata.name);
        let field = hazards.first().map(|hazard| hazard.field_path.clone());
        found.extend(unresolved(&scaling.analysis, &hazards, &need, field));
    }
}

/// The cause of `hazards`, as the end of a sentence or an empty text.
fn why(hazards: &[Hazard], analysis: &Analysis<'_>, autoscaler: Option<&Autoscaler>) -> String {
    let mut reported = HashSet::new();
    let reasons: Vec<String> = hazards
        .iter()
        .filter(|hazard| reported.insert(hazard.rule))
        .filter_map(|hazard| reason(hazard, analysis, autoscaler))
        .collect();
    if reasons.is_empty() { String::new() } else { format!(", as {}", listed(&reasons, "and")) }
}

fn reason(
    hazard: &Hazard,
    analysis: &Analysis<'_>,
    autoscaler: Option<&Autoscaler>,
) -> Option<String> {
    Some(match hazard.rule {
        codes::ROLLING_UPDATE_OVERLAP => {
            "a rolling update starts new pods before the old ones are gone".to_owned()
        }
        codes::REPLICAS_SHARE_VOLUME => format!("it {}", messages::pods_wanted(analysis)),
        codes::AUTOSCALER_EXCEEDS_VOLUME => match autoscaler {
            Some(autoscaler) => format!(
                "{} of {} {} allows it {} pods",
                autoscaler.fields()[1],
                autoscaler.kind().name(),
                autoscaler.metadata.name,
                autoscaler.most(analysis.workload.replicas)
            ),
            None => format!("it is scaled to {} pods", analysis.pods()),
        },
        codes::WORKLOADS_SHARE_VOLUME => {
            let volume = analysis
                .volumes
                .iter()
                .find(|volume| hazard.volumes.contains(volume.shown_name()))?;
            let others = users::apart(analysis, volume.claim.as_deref()?, volume);
            let first = others.first()?.shown();
            let claim = messages::quoted(volume);
            match others.len() - 1 {
                0 => format!("{first} uses {claim} too"),
                more => format!("{first} and {more} more use {claim} too"),
            }
        }
        _ => return None,
    })
}

/// The hazard of unknown facts about the volumes on which `hazards` rest. `need` says who needs to
/// know, and why. `field` is the field at fault, if it is not the one that names the volume.
fn unresolved(
    analysis: &Analysis<'_>,
    hazards: &[Hazard],
    need: &str,
    field: Option<String>,
) -> Option<Hazard> {
    let concerned: HashSet<&Text> = hazards.iter().flat_map(|hazard| &hazard.volumes).collect();
    let partial = analysis.facts.view.overlay().partial;
    let rests_on = |volume: &UsedVolume| concerned.contains(volume.shown_name());
    let open: Vec<(&UsedVolume, &Missing)> = analysis
        .volumes
        .iter()
        .filter_map(|volume| match &volume.attach_constraint {
            AttachConstraint::Unknown(missing) if rests_on(volume) => Some((volume, missing)),
            _ => None,
        })
        // In files, a placeholder for a claim's name may become any name; another rule reports a
        // name that no claim can have.
        .filter(|(volume, missing)| {
            let is_named = is_name(volume.shown_name());
            is_named || !partial || !matches!(missing, Missing::Claim(_))
        })
        .collect();
    let (first, fact) = open.first()?;
    let (seen, mut advice): (Vec<String>, Vec<&str>) = open
        .chunk_by(|(_, a), (_, b)| matches!(a, Missing::Claim(_)) && a == b)
        .map(|alike| match alike {
            [(_, Missing::Claim(absence)), _, ..] => about_claims(alike, *absence, partial),
            [(volume, missing), ..] => about(&messages::quoted(volume), missing, partial),
            [] => (String::new(), ""),
        })
        .unzip();
    advice.dedup();
    let volumes = if open.len() == 1 { "its volume works" } else { "their volumes work" };
    let more = match open.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(Hazard {
        field_path: field.unwrap_or_else(|| analysis.volume_path(first)),
        volumes: messages::names(open.iter().map(|(volume, _)| *volume)),
        what: format!(
            "{}, so nobody can tell whether {volumes} on several nodes at once, which {need}.",
            listed(&seen, "and"),
        ),
        advice: advice.join(" "),
        brief: brief(&messages::quoted(first), fact, partial, &more),
        ..RULE.hazard(Outcome::Unknown)
    })
}

/// The missing fact and the advice, if both fit in a warning.
fn brief(claim: &str, missing: &Missing, partial: bool, more: &str) -> String {
    match missing {
        Missing::Class(name, Absence::Absent) if partial && !messages::is_placeholder(name) => {
            format!(
                "StorageClass \"{name}\" is not among the checked files{more}; check the class too"
            )
        }
        Missing::Provisioner(name) => {
            format!("\"{name}\" is unknown{more}; describe it under `provisioners` in the policy")
        }
        Missing::SecondNode(driver) => {
            format!("{driver} may let two nodes write to {claim}{more}; run only one pod")
        }
        _ => about(claim, missing, partial).0 + more,
    }
}

/// As `about`, for several claims that are missing for the same reason.
fn about_claims(
    claims: &[(&UsedVolume, &Missing)],
    absence: Absence,
    partial: bool,
) -> (String, &'static str) {
    let names: Vec<String> =
        claims.iter().map(|(volume, _)| format!("\"{}\"", volume.shown_name())).collect();
    let (state, advice) = match absence {
        Absence::NotSynced => ("were not read in time", "Try again."),
        Absence::Absent if partial => (
            "are not among the checked files",
            "Check their manifests too, or add the claims to the facts about the cluster.",
        ),
        Absence::Absent => ("do not exist", "Create the claims."),
    };
    (format!("claims {} {state}", listed(&names, "and")), advice)
}

/// The missing fact and the advice. `partial` says that the cluster may have more objects than are
/// in view.
fn about(claim: &str, missing: &Missing, partial: bool) -> (String, &'static str) {
    let state = |absence: &Absence| match absence {
        Absence::NotSynced => "was not read in time",
        Absence::Absent if partial => "is not among the checked files",
        Absence::Absent => "does not exist",
    };
    let seen = match missing {
        Missing::Claim(absence) => state(absence).to_owned(),
        Missing::Class(name, absence) => {
            if messages::is_placeholder(name) {
                "names a StorageClass that is still to be filled in".to_owned()
            } else {
                format!("names StorageClass \"{name}\", which {}", state(absence))
            }
        }
        Missing::DefaultClass(absence) => {
            let default = match absence {
                Absence::NotSynced => "the default was not read in time",
                Absence::Absent if partial => "the default one is not among the checked files",
                Absence::Absent => "there is no default",
            };
            format!("names no StorageClass, and {default}")
        }
        Missing::FittingVolume => "asks for a volume made by hand, and none is known".to_owned(),
        Missing::Provisioner(name) => {
            format!("will be made by \"{name}\", about which nothing is known")
        }
        Missing::Volume(name, absence) => {
            format!("names volume \"{name}\", which {}", state(absence))
        }
        Missing::SecondNode(driver) => format!(
            "is a disk of {driver} that nothing attaches (attachRequired: false), and nothing else is known to keep a second node from writing to it"
        ),
    };
    (format!("{claim} {seen}"), advice(missing, partial))
}

fn advice(missing: &Missing, partial: bool) -> &'static str {
    match missing {
        Missing::Claim(Absence::NotSynced)
        | Missing::Class(_, Absence::NotSynced)
        | Missing::DefaultClass(Absence::NotSynced)
        | Missing::Volume(_, Absence::NotSynced) => "Try again.",
        Missing::Claim(_) if partial => {
            "Check its manifest too, or add it to the facts about the cluster."
        }
        Missing::FittingVolume | Missing::Volume(..) if partial => {
            "Check the volume too, or add it to the facts about the cluster."
        }
        Missing::Claim(_) => "Create the claim.",
        Missing::FittingVolume | Missing::Volume(..) => "Create the volume.",
        Missing::Class(..) if partial => {
            "Check the class too, or add it to the facts about the cluster."
        }
        Missing::Class(..) => "Create the class, or name another one in the claim.",
        Missing::DefaultClass(_) => "Name a class in the claim.",
        Missing::Provisioner(_) => "Describe it under `provisioners` in the policy.",
        Missing::SecondNode(_) => {
            "Let one pod at a time use it, or say under `provisioners` in the policy what the driver does."
        }
    }
}
