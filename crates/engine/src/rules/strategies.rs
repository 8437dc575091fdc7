//! How each kind says that its pods are replaced, in parts of sentences.

use crate::analysis::Analysis;
use crate::analysis::constraints::affinity_would_hold;
use crate::model::metadata::is_name;
use crate::model::strategy::{Room, SideBySide, Strategy};
use crate::model::workload::{Workload, WorkloadKind};
use crate::snapshot::View;

/// The advice for the rollouts of one pod, as the beginning of a sentence. Over a live object, the
/// API server may refuse Recreate, depending on how the object is applied.
pub(crate) const RECREATE_OR_ZERO_SURGE: &str =
    "Set spec.strategy to Recreate, or to RollingUpdate with maxSurge 0 and maxUnavailable 1";

/// The patch that makes a live Deployment Recreate, however it is applied.
pub(crate) const RECREATE_ONCE: &str =
    r#"{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}"#;

/// The command that makes the live workload Recreate.
pub(crate) fn recreate_once(kind: WorkloadKind, namespace: Option<&str>, name: &str) -> String {
    match kind {
        WorkloadKind::StatefulSet => patch_once(
            "sts",
            namespace,
            name,
            r#"{"spec":{"updateStrategy":{"type":"Recreate","rollingUpdate":null}}}"#,
        ),
        _ => patch_once("deploy", namespace, name, RECREATE_ONCE),
    }
}

/// The command that patches the live workload `name`. A file may not say the name.
pub(crate) fn patch_once(
    resource: &str,
    namespace: Option<&str>,
    name: &str,
    patch: &str,
) -> String {
    let namespace = namespace.map_or_else(String::new, |namespace| format!("-n {namespace} "));
    let name = if is_name(name) { name } else { "NAME" };
    format!("`kubectl {namespace}patch {resource} {name} --type=merge -p '{patch}'`")
}

/// The field that says how pods are replaced.
pub(super) const fn field(workload: &Workload) -> &'static str {
    match (workload.kind, &workload.strategy) {
        (WorkloadKind::StatefulSet | WorkloadKind::DaemonSet | WorkloadKind::CloneSet, _) => {
            "spec.updateStrategy"
        }
        (WorkloadKind::Rollout, Strategy::SideBySide(SideBySide::BlueGreen)) => {
            "spec.strategy.blueGreen"
        }
        (WorkloadKind::Rollout, _) => "spec.strategy.canary",
        _ => "spec.strategy",
    }
}

/// The name of the strategy, as the subject of a sentence.
pub(super) const fn name(workload: &Workload) -> &'static str {
    match (workload.kind, &workload.strategy) {
        (WorkloadKind::Rollout, Strategy::SideBySide(SideBySide::BlueGreen)) => "blueGreen",
        (WorkloadKind::Rollout, Strategy::SideBySide(SideBySide::TrafficRouting)) => {
            "canary with trafficRouting"
        }
        (WorkloadKind::Rollout, _) => "canary",
        (WorkloadKind::DeploymentConfig, _) => "Rolling",
        (WorkloadKind::CloneSet, _) => "a CloneSet with maxSurge",
        _ => "RollingUpdate",
    }
}

/// The order in which pods are replaced, as part of a sentence.
pub(super) fn order(workload: &Workload, room: Room) -> String {
    let Room { surge, unavailable } = room;
    let name = name(workload);
    let order = match (&workload.strategy, unavailable) {
        (Strategy::SideBySide(_), _) => {
            return format!("{name} starts all new pods before an old one stops");
        }
        (_, 0) => "starts the new pod before the old one stops",
        _ => "starts new pods before the last of the old ones stops",
    };
    format!("{name} {order} (surge {surge}, unavailable {unavailable})")
}

/// How many pods of the workload there can be at once, with the autoscalers that scale it, and in
/// which order a rollout replaces them: two sentences.
pub fn pods_at_once(workload: &Workload, view: View<'_>) -> String {
    let scaled = view.autoscalers(workload).into_iter().map(|by| by.most(workload.replicas)).max();
    let source = if scaled.is_some() { "its autoscaler" } else { workload.kind.pods_field() };
    let pods = match workload.kind {
        WorkloadKind::DaemonSet => 1,
        _ => scaled.unwrap_or(workload.replicas),
    };
    // A StatefulSet stops each pod before it starts the replacement.
    let replaces = workload.kind != WorkloadKind::StatefulSet;
    let room = workload.strategy.room(pods).filter(|room| replaces && room.surge > 0);
    let order = match (room, &workload.strategy) {
        (Some(room), _) => order(workload, room),
        (None, Strategy::Recreate { .. }) => "Recreate stops all old pods first".to_owned(),
        (None, _) => "An old pod stops before its replacement starts".to_owned(),
    };
    match room {
        Some(Room { surge, .. }) => format!(
            "At most {} at once: {pods} by {source}, and {surge} more in a rollout. {order}.",
            pods + surge
        ),
        None => format!("At most {pods} at once, by {source}. {order}."),
    }
}

/// Whether the API server is known to accept Recreate in a StatefulSet.
fn recreates_sets(analysis: &Analysis<'_>) -> bool {
    analysis.facts.view.server().recreates_stateful_sets()
}

/// The advice to stop every old pod before a new one starts, as the beginning of a sentence.
pub(super) fn stop_first(analysis: &Analysis<'_>) -> &'static str {
    let workload = analysis.workload;
    match (workload.kind, &workload.strategy, workload.replicas) {
        (WorkloadKind::StatefulSet, ..) if recreates_sets(analysis) => {
            "Set spec.updateStrategy to {type: Recreate}"
        }
        (WorkloadKind::StatefulSet | WorkloadKind::CloneSet, _, 2..)
        | (WorkloadKind::StatefulSet, ..) => "Scale to 0 before the update, and up again after it",
        (WorkloadKind::CloneSet | WorkloadKind::DaemonSet, ..) => {
            "Set maxSurge to 0 and maxUnavailable to 1 in spec.updateStrategy"
        }
        (WorkloadKind::Rollout, Strategy::SideBySide(_), ..=1) => {
            "A Rollout has no Recreate: use the canary strategy (without trafficRouting), with maxSurge 0 and maxUnavailable 1"
        }
        (WorkloadKind::Rollout, _, ..=1) => {
            "Set maxSurge to 0 and maxUnavailable to 1 in spec.strategy.canary, as a Rollout has no Recreate"
        }
        (WorkloadKind::Rollout, ..) => {
            "A Rollout has no Recreate: scale to 0, change the template, and scale up once status.stableRS equals status.currentPodHash"
        }
        (WorkloadKind::DeploymentConfig, ..) => "Set spec.strategy.type to Recreate",
        (_, _, 2..) => "Set spec.strategy to Recreate",
        _ => RECREATE_OR_ZERO_SURGE,
    }
}

/// As `stop_first`, in a few words. Several pods that share a volume get other advice, because
/// stopping the old ones first is not enough for them.
pub(super) fn stop_first_in_brief(analysis: &Analysis<'_>) -> String {
    let workload = analysis.workload;
    if !analysis.replicas_share_exclusive() {
        return in_brief(analysis).to_owned();
    }
    let and = match (workload.kind, &workload.strategy) {
        (WorkloadKind::Rollout, Strategy::SideBySide(_)) => "canary with maxSurge 0",
        (WorkloadKind::Rollout | WorkloadKind::CloneSet, _) => "maxSurge 0",
        _ => "Recreate",
    };
    let or = if affinity_would_hold(analysis) { ", or keep the pods on one node" } else { "" };
    format!("use one replica and {and}{or}")
}

/// As `stop_first`, in a few words.
pub(super) fn in_brief(analysis: &Analysis<'_>) -> &'static str {
    let workload = analysis.workload;
    match (workload.kind, &workload.strategy, workload.replicas) {
        (WorkloadKind::StatefulSet, ..) if recreates_sets(analysis) => "use Recreate",
        (WorkloadKind::StatefulSet, ..)
        | (WorkloadKind::Rollout | WorkloadKind::CloneSet, _, 2..) => "scale to 0 first",
        (WorkloadKind::Rollout, Strategy::SideBySide(_), _) => "use canary with maxSurge 0",
        (WorkloadKind::DeploymentConfig, ..) | (WorkloadKind::Deployment, _, 2..) => "use Recreate",
        (WorkloadKind::Deployment, ..) => "use Recreate or maxSurge 0",
        _ => "use maxSurge 0",
    }
}
