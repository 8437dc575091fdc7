//! Parts of sentences that several rules use.

use std::collections::BTreeSet;

use super::impossible_name::is_impossible;
use crate::analysis::constraints::affinity_would_hold;
use crate::analysis::{Analysis, AttachConstraint, Basis, Facts, Grounds, UsedVolume};
use crate::model::Text;
use crate::model::access_mode::{AccessMode, VolumeMode};
use crate::model::metadata::is_name;
use crate::model::storage_class::StorageClass;
use crate::model::strategy::Strategy;
use crate::model::words::listed;
pub(super) use crate::model::words::some;
use crate::model::workload::{Workload, WorkloadKind};
use crate::storage::{ClassModes, NodeLocal};

/// `claim "data" is ReadWriteOnce (ebs.csi.aws.com)`, and the like for several volumes or for a
/// forecast.
pub(super) fn volumes<'v>(volumes: impl Iterator<Item = &'v UsedVolume>) -> String {
    // Volumes with the same description are named together.
    let mut groups: Vec<(&UsedVolume, Vec<String>)> = Vec::new();
    for volume in volumes {
        let name = format!("\"{}\"", volume.shown_name());
        // All properties on which the predicate depends.
        let alike = |other: &UsedVolume| {
            noun(other) == noun(volume)
                && other.modes == volume.modes
                && other.attach_constraint == volume.attach_constraint
                && (other.driver == volume.driver || !volume.is_exclusive())
        };
        match groups.iter_mut().find(|(first, _)| alike(first)) {
            Some((_, names)) => names.push(name),
            None => groups.push((volume, vec![name])),
        }
    }
    let described: Vec<String> = groups
        .iter()
        .map(|(first, names)| {
            let several = names.len() > 1;
            let plural = if several { "s" } else { "" };
            let (noun, names) = (noun(first), listed(names, "and"));
            format!("{noun}{plural} {names} {}", predicate(first, several))
        })
        .collect();
    listed(&described, "and")
}

/// The description of a volume, or of several, after its name.
fn predicate(volume: &UsedVolume, several: bool) -> String {
    let modes = volume.modes;
    let are = if several { "are" } else { "is" };
    let AttachConstraint::Exclusive { basis, grounds } = &volume.attach_constraint else {
        return format!("{are} {modes}");
    };
    let what = match (*basis, several) {
        (Basis::Bound | Basis::Inline, _) => format!("{are} {modes}"),
        (Basis::Fitting, false) => {
            format!("is not bound yet, and the free volume that fits it is {modes}")
        }
        (Basis::Fitting, true) => {
            format!("are not bound yet, and the free volumes that fit them are {modes}")
        }
        (Basis::Forecast, _) => format!("{are} not bound yet and will be {modes}"),
    };
    let driver = &volume.driver;
    let why = match grounds {
        Grounds::Known if driver.is_empty() => return what,
        Grounds::Known => driver.to_string(),
        Grounds::NoCsiDriver => {
            format!("{driver}, which Kubernetes attaches because it has no CSIDriver object")
        }
        Grounds::ClassName(class) => format!("StorageClass \"{class}\", likely {driver}"),
        Grounds::UnknownClass(class) if is_placeholder(class) => {
            "assuming that its StorageClass, which is still to be filled in, attaches its volumes"
                .to_owned()
        }
        Grounds::UnknownClass(class) => {
            format!("assuming that StorageClass \"{class}\" attaches its volumes")
        }
        Grounds::UnknownDefaultClass => {
            "assuming that the default StorageClass attaches its volumes".to_owned()
        }
        Grounds::FlexVolume => "assuming that its FlexVolume driver attaches volumes".to_owned(),
        Grounds::UnknownDriver if driver.is_empty() => {
            "assuming that its driver attaches volumes".to_owned()
        }
        Grounds::UnknownDriver => format!("assuming that {driver} attaches its volumes"),
    };
    format!("{what} ({why})")
}

/// The predicate of a volume: `is ReadWriteOnce (ebs.csi.aws.com)`.
pub(crate) fn described(volume: &UsedVolume) -> String {
    predicate(volume, false)
}

/// The start of the last sentence of a message about an assumption, which says what would settle
/// it.
pub const SETTLE: &str = "To settle it,";

/// Whether it is a placeholder that somebody is still to replace: it is no valid name, and nobody
/// wrote it as one.
pub(super) fn is_placeholder(name: &str) -> bool {
    !is_name(name) && !is_impossible(name)
}

/// The condition of a guess, in a few words; `None` if the grounds are no guess.
pub(super) fn condition(grounds: &Grounds) -> Option<String> {
    Some(match grounds {
        Grounds::Known | Grounds::NoCsiDriver => return None,
        Grounds::ClassName(_) => "likely".to_owned(),
        Grounds::UnknownClass(class) if is_placeholder(class) => "if its class attaches".to_owned(),
        Grounds::UnknownClass(class) => format!("if class \"{class}\" attaches"),
        Grounds::UnknownDefaultClass => "if the default class attaches".to_owned(),
        Grounds::FlexVolume | Grounds::UnknownDriver => "if its driver attaches".to_owned(),
    })
}

/// A sentence that says what would settle an assumption, or an empty text.
pub(super) fn what_would_settle(grounds: &Grounds) -> String {
    let sight = |what: &str| {
        format!(
            " {SETTLE} add {what} to the checked files, or to the facts about the cluster (`multi-attach-guard snapshot` writes them)."
        )
    };
    match grounds {
        Grounds::Known | Grounds::NoCsiDriver => String::new(),
        Grounds::ClassName(class) => format!(
            " StorageClass \"{class}\" is not known from the checked files and is taken for the one that installations create under this name.{}",
            sight("it")
        ),
        Grounds::UnknownClass(class) if is_placeholder(class) => {
            format!(" Most storage is attached to one node at a time. {SETTLE} fill in the name of the StorageClass.")
        }
        Grounds::UnknownClass(class) if is_impossible(class) => format!(
            " Most storage is attached to one node at a time. {SETTLE} write a name that a StorageClass can have."
        ),
        Grounds::UnknownClass(class) => format!(
            " StorageClass \"{class}\" is not known from the checked files, and most storage is attached to one node at a time.{}",
            sight("it")
        ),
        Grounds::UnknownDefaultClass => format!(
            " No StorageClass is named, and the default one is not known from the checked files; most storage is attached to one node at a time.{}",
            sight("that class")
        ),
        Grounds::FlexVolume => {
            " Whether a FlexVolume driver attaches depends on how it is installed beside the controller manager, which no object shows."
                .to_owned()
        }
        Grounds::UnknownDriver => format!(
            " Nothing is known of the driver, and most drivers attach.{}",
            sight("its CSIDriver object")
        ),
    }
}

fn noun(volume: &UsedVolume) -> &'static str {
    if volume.claim.is_some() { "claim" } else { "volume" }
}

/// `claim "data"` or `volume "disk"`.
pub(super) fn quoted(volume: &UsedVolume) -> String {
    [noun(volume), " \"", volume.shown_name(), "\""].concat()
}

/// The volumes that make the pods share a node, and the reason.
pub(super) fn in_one_place(analysis: &Analysis<'_>) -> String {
    if analysis.exclusive().next().is_some() {
        return volumes(analysis.exclusive());
    }
    let stays = analysis.volumes_in_one_place().any(UsedVolume::keeps_its_node);
    let first = first_of(analysis.volumes_in_one_place());
    if stays { format!("{first} can be used on one node only") } else { format!("{first} is used") }
}

/// The volumes for a short line: the first, and how many more.
pub(super) fn first_of<'v>(mut volumes: impl Iterator<Item = &'v UsedVolume>) -> String {
    let Some(first) = volumes.next() else {
        return String::new();
    };
    match volumes.count() {
        0 => quoted(first),
        more => format!("{} and {more} more", quoted(first)),
    }
}

/// The names of the volumes concerned.
pub(super) fn names<'v>(volumes: impl Iterator<Item = &'v UsedVolume>) -> Vec<Text> {
    volumes.map(|volume| volume.shown_name().clone()).collect()
}

/// The workloads, each once, by name.
pub(super) fn names_of(workloads: &[&Workload]) -> Vec<String> {
    let names: BTreeSet<String> = workloads.iter().map(|workload| workload.shown()).collect();
    names.into_iter().collect()
}

/// The number of pods that a workload wants, as the end of a sentence about it.
pub(super) fn pods_wanted(analysis: &Analysis<'_>) -> String {
    let pods = analysis.pods();
    match analysis.workload.kind {
        WorkloadKind::DaemonSet => "runs a pod on each of its nodes".to_owned(),
        WorkloadKind::Job | WorkloadKind::CronJob => format!("runs {pods} pods at a time"),
        WorkloadKind::ScaledJob => format!("may run {pods} pods at a time"),
        _ => format!("asks for {pods} replicas"),
    }
}

/// The number of pods, as far as the object's author chose it: the author does not choose the
/// number of nodes, which a DaemonSet follows.
pub(super) fn excess_pods(analysis: &Analysis<'_>) -> i64 {
    match analysis.workload.kind {
        WorkloadKind::DaemonSet => 0,
        _ => analysis.pods(),
    }
}

/// The advice to use required affinity for several pods, as a part of a sentence; an empty text if
/// affinity would not hold.
pub(super) fn or_together(analysis: &Analysis<'_>) -> &'static str {
    if affinity_would_hold(analysis) {
        ", or keep the pods on one node with required pod affinity on kubernetes.io/hostname"
    } else {
        ""
    }
}

/// The advice if several pods of one workload use one exclusive volume. It helps with rollouts as
/// well.
pub(super) fn advice_for_several_pods(analysis: &Analysis<'_>) -> String {
    match analysis.workload.kind {
        WorkloadKind::DaemonSet => {
            "Use a ReadWriteMany volume, or limit the DaemonSet to the one node that needs it."
                .to_owned()
        }
        WorkloadKind::StatefulSet => {
            "Move the claim to volumeClaimTemplates so that each pod has its own, or set replicas to 1, or use a ReadWriteMany volume."
                .to_owned()
        }
        kind @ (WorkloadKind::Job | WorkloadKind::CronJob | WorkloadKind::ScaledJob) => format!(
            "Set {} to 1{}, or use a ReadWriteMany volume.",
            if kind == WorkloadKind::ScaledJob { "maxReplicaCount" } else { "parallelism" },
            or_together(analysis)
        ),
        _ => {
            let set = if affinity_would_hold(analysis) { "Keep the pods on one node with required pod affinity on kubernetes.io/hostname, or set" } else { "Set" };
            let and_stop_first = match (analysis.workload.kind, &analysis.workload.strategy) {
                _ if analysis.rolling_update().is_none() => "",
                (WorkloadKind::Rollout, Strategy::SideBySide(_)) => " and the strategy to canary (without trafficRouting) with maxSurge 0 and maxUnavailable 1",
                (WorkloadKind::Rollout | WorkloadKind::CloneSet, _) => ", maxSurge to 0 and maxUnavailable to 1",
                _ => " and spec.strategy to Recreate",
            };
            format!(
                "{set} replicas to 1{and_stop_first}, or use a StatefulSet with volumeClaimTemplates or a ReadWriteMany volume."
            )
        }
    }
}

/// A sentence that names a class of the cluster with ReadWriteMany volumes, or an empty text if
/// there is none.
pub(super) fn shared_class(analysis: &Analysis<'_>) -> String {
    class_that_shares(analysis.facts, VolumeMode::Filesystem).map_or_else(String::new, |class| {
        format!(" Or move the data to a ReadWriteMany claim; {class} can give one.")
    })
}

/// `StorageClass "shared" of this cluster`: the first class that gives ReadWriteMany for
/// that volume mode, by name. A class from checked files may not be in the cluster.
pub(super) fn class_that_shares(facts: Facts<'_>, mode: VolumeMode) -> Option<String> {
    let partial = facts.view.overlay().partial;
    let whose = if partial { "" } else { " of this cluster" };
    let shares = |class: &&StorageClass| {
        let stated = ClassModes::from_annotations(&class.metadata.annotations).unwrap_or_default();
        let capability =
            facts.catalog.capability(class.driver(), &class.parameters, mode).with_stated(stated);
        let granted = capability.granted.unwrap_or_default();
        capability.confidence.is_firm()
            && granted.contains(AccessMode::ReadWriteMany)
            // A node-local provisioner copies the mode without a check, so the mode proves nothing.
            && facts.catalog.node_local(class.driver(), &class.parameters) == NodeLocal::No
    };
    let first = &facts.view.storage_classes().into_iter().find(shares)?.metadata.name;
    Some(format!("StorageClass \"{first}\"{whose}"))
}
