//! The public names of the rules.
//!
//! They stand in findings, policy files and annotations, so they never change.

/// A rolling update starts the new pod before the old one has let the volume go.
pub const ROLLING_UPDATE_OVERLAP: &str = "rolling-update-overlap";
/// Several replicas of one workload need the same exclusive volume.
pub const REPLICAS_SHARE_VOLUME: &str = "replicas-share-volume";
/// A ReadWriteOncePod volume is asked to serve a second pod.
pub const SINGLE_POD_VOLUME: &str = "single-pod-volume";
/// Two workloads need the same exclusive or single-pod volume.
pub const WORKLOADS_SHARE_VOLUME: &str = "workloads-share-volume";
/// An autoscaler or a scale request brings about more pods than the volume can serve.
pub const AUTOSCALER_EXCEEDS_VOLUME: &str = "autoscaler-exceeds-volume";
/// The pods must be together for the volume and must not be by their own constraints.
pub const CO_LOCATION_IMPOSSIBLE: &str = "co-location-impossible";
/// A claim asks for access modes its class cannot give.
pub const UNSUPPORTED_ACCESS_MODE: &str = "unsupported-access-mode";
/// An update changes a claim's access modes, which cannot be changed.
pub const ACCESS_MODE_CHANGE: &str = "access-mode-change";
/// A Recreate strategy still carries a `rollingUpdate` block.
pub const LEFTOVER_ROLLING_UPDATE: &str = "leftover-rolling-update";
/// A claim, class or volume on which a verdict depends is not known.
pub const UNRESOLVED_CLAIM: &str = "unresolved-claim";

/// Every code, in the order the documentation lists them.
pub const ALL: [&str; 10] = [
    ROLLING_UPDATE_OVERLAP,
    REPLICAS_SHARE_VOLUME,
    SINGLE_POD_VOLUME,
    WORKLOADS_SHARE_VOLUME,
    AUTOSCALER_EXCEEDS_VOLUME,
    CO_LOCATION_IMPOSSIBLE,
    UNSUPPORTED_ACCESS_MODE,
    ACCESS_MODE_CHANGE,
    LEFTOVER_ROLLING_UPDATE,
    UNRESOLVED_CLAIM,
];

/// The entry of [`ALL`] that equals `code`; `None` where there is no such rule.
#[must_use]
pub fn find(code: &str) -> Option<&'static str> {
    ALL.into_iter().find(|known| *known == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_as_written_only_and_each_is_there_once() {
        assert_eq!(find("single-pod-volume"), Some(SINGLE_POD_VOLUME));
        assert_eq!(find("Single-Pod-Volume"), None);
        let mut sorted = ALL.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), ALL.len());
    }
}
