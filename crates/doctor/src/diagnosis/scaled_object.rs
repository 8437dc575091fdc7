//! Commands for a ScaledObject of KEDA. KEDA writes an autoscaler from it but, unlike an
//! autoscaler, also scales up from 0.

/// The annotation that makes KEDA keep a workload at a number of pods (its documentation, "Pause
/// autoscaling").
const PAUSED: &str = "autoscaling.keda.sh/paused-replicas";

/// The object, as kubectl takes it.
pub(super) fn target(name: &str) -> String {
    format!("scaledobjects.keda.sh/{name}")
}

/// The kubectl arguments that stop the pods and keep KEDA from starting them again.
pub(super) fn pause(name: &str) -> [String; 4] {
    let paused = format!("{PAUSED}=0");
    ["annotate", &target(name), &paused, "--overwrite"].map(str::to_owned)
}

/// The kubectl arguments that let KEDA scale again.
pub(super) fn resume(name: &str) -> [String; 3] {
    ["annotate", &target(name), &format!("{PAUSED}-")].map(str::to_owned)
}
