//! Commands for a ScaledObject of KEDA. KEDA writes an autoscaler from it but, unlike an
//! autoscaler, also scales up from 0.

use super::waiting_pod::WaitingPod;

/// The annotation that makes KEDA keep a workload at a number of pods (its documentation, "Pause
/// autoscaling").
const PAUSED: &str = "autoscaling.keda.sh/paused-replicas";

/// The object, as kubectl takes it.
pub(super) fn target(name: &str) -> String {
    format!("scaledobjects.keda.sh/{name}")
}

/// The command that stops the pods and keeps KEDA from starting them again.
pub(super) fn pause(waiting: &WaitingPod<'_>, name: &str) -> String {
    let paused = format!("{PAUSED}=0");
    waiting.in_namespace(&["annotate", &target(name), &paused, "--overwrite"])
}

/// The command that lets KEDA scale again.
pub(super) fn resume(waiting: &WaitingPod<'_>, name: &str) -> String {
    waiting.in_namespace(&["annotate", &target(name), &format!("{PAUSED}-")])
}
