//! Update strategies, and the number of pods that a rolling update may add or remove.

use super::Text;
use super::amount::{Amount, Rounding};

/// The way in which a workload replaces its pods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// New pods are started while old ones still run.
    RollingUpdate {
        /// Pods above the desired number, the default filled in.
        max_surge: Amount,
        /// Pods below the desired number, the default filled in.
        max_unavailable: Amount,
    },
    /// Old pods are stopped before new ones are started.
    Recreate {
        /// Whether there is a leftover `rollingUpdate` block, which the API server rejects.
        leftover: bool,
    },
    /// All new pods are started before the first old one is stopped.
    SideBySide(SideBySide),
    /// Any other strategy: `OnDelete` of a DaemonSet or StatefulSet, `Custom` of a
    /// DeploymentConfig, or one that the API server rejects.
    Other(Text),
}

/// The reason for which a Rollout keeps all old pods while the new ones start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SideBySide {
    /// `blueGreen`: traffic moves once all new pods are ready.
    BlueGreen,
    /// `canary` with `trafficRouting`: a proxy splits the traffic, and the stable pods stay
    /// until the end.
    TrafficRouting,
}

/// The number of pods that a rollout may have above and below the desired number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Pods above.
    pub surge: i64,
    /// Pods below.
    pub unavailable: i64,
}

impl Strategy {
    /// The number of pods that a rolling update of `replicas` pods may add and remove; `None` if
    /// there is no rolling update, or one that the API server rejects.
    ///
    /// Source: `ResolveFenceposts` in the Deployment controller's `deployment_util.go`:
    /// surge rounds up, unavailable down, and if both are 0, unavailable is 1.
    pub fn room(&self, replicas: i64) -> Option<Room> {
        let (surge, unavailable) = match self {
            Self::RollingUpdate { max_surge, max_unavailable } => {
                let surge = max_surge.resolve(replicas, Rounding::Up)?;
                let unavailable = max_unavailable.resolve(replicas, Rounding::Down)?;
                (surge, unavailable.max(i64::from(surge == 0)))
            }
            Self::SideBySide(_) => (replicas.max(1), 0),
            Self::Recreate { .. } | Self::Other(_) => return None,
        };
        Some(Room { surge, unavailable })
    }
}

#[cfg(test)]
mod tests {
    use super::super::strategy_reader::WrittenStrategy;
    use super::super::workload::WorkloadKind;
    use super::*;

    fn read(text: &str) -> Strategy {
        let written: Option<WrittenStrategy> = serde_json::from_str(text).unwrap();
        let kind = WorkloadKind::Deployment;
        written.unwrap_or_default().of_kind(kind)
    }

    #[test]
    fn rooms_resolve_as_the_deployment_controller_resolves_them() {
        let room = |surge, unavailable| Some(Room { surge, unavailable });
        let cases = [
            ("null", 1, room(1, 0)),
            ("{}", 4, room(1, 1)),
            (
                r#"{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":"25%"}}"#,
                1,
                room(0, 1),
            ),
            (r#"{"rollingUpdate":{"maxSurge":"0%","maxUnavailable":"10%"}}"#, 3, room(0, 1)),
            (r#"{"rollingUpdate":{"maxSurge":1,"maxUnavailable":1}}"#, 1, room(1, 1)),
            (r#"{"rollingUpdate":{"maxSurge":"x"}}"#, 1, None),
            (r#"{"type":"Recreate"}"#, 1, None),
        ];
        for (text, replicas, expected) in cases {
            assert_eq!(read(text).room(replicas), expected, "{text}");
        }
    }

    #[test]
    fn a_leftover_is_recognized() {
        let leftover = |text| read(text) == Strategy::Recreate { leftover: true };
        assert!(leftover(r#"{"type":"Recreate","rollingUpdate":{}}"#));
        assert!(!leftover(r#"{"type":"Recreate","rollingUpdate":null}"#));
        assert!(!leftover(r#"{"type":"Recreate"}"#));
    }
}
