//! What is done to a ScaledObject of KEDA, which writes an autoscaler, and unlike that
//! scales from 0 up.

/// The annotation at which KEDA keeps a workload at a number (its documentation, "Pause
/// autoscaling").
const PAUSED: &str = "autoscaling.keda.sh/paused-replicas";

/// The object, as kubectl takes it.
pub(super) fn target(name: &str) -> String {
    format!("scaledobjects.keda.sh/{name}")
}

/// The arguments of kubectl that make the pods go away and keep KEDA from bringing them back.
pub(super) fn pause(name: &str) -> [String; 4] {
    let paused = format!("{PAUSED}=0");
    ["annotate", &target(name), &paused, "--overwrite"].map(str::to_owned)
}

/// The arguments of kubectl that set KEDA to work again.
pub(super) fn resume(name: &str) -> [String; 3] {
    ["annotate", &target(name), &format!("{PAUSED}-")].map(str::to_owned)
}
