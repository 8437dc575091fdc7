//! Update strategies, and how many pods a rolling update may add or remove.

use serde::Deserialize;
use serde::de::Deserializer;

use super::Text;
use super::amount::{Amount, Rounding};

/// How a workload replaces its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// New pods are started while old ones still run.
    RollingUpdate {
        /// Pods above the desired number; `None`: the default, 25 %.
        max_surge: Option<Amount>,
        /// Pods below the desired number; `None`: the default, 25 %.
        max_unavailable: Option<Amount>,
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

/// Why a Rollout keeps all old pods while the new ones start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideBySide {
    /// `blueGreen`: traffic moves once all new pods are ready.
    BlueGreen,
    /// `canary` with `trafficRouting`: a proxy splits the traffic, and the stable pods stay
    /// until the end.
    TrafficRouting,
}

/// How many pods a rollout may have above and below the desired number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Pods above.
    pub surge: i64,
    /// Pods below.
    pub unavailable: i64,
}

impl Strategy {
    /// The same with the defaults of a DaemonSet or StatefulSet: no surge, one pod unavailable. A
    /// StatefulSet's `partition` only delays the consequences.
    pub(crate) fn one_by_one(self) -> Self {
        match self {
            Self::RollingUpdate {
                max_surge,
                max_unavailable,
            } => Self::RollingUpdate {
                max_surge: max_surge.or(Some(Amount::Count(0))),
                max_unavailable: max_unavailable.or(Some(Amount::Count(1))),
            },
            other => other,
        }
    }

    /// Whether all old pods are stopped before a new one is started.
    pub(crate) const fn stops_first(&self) -> bool {
        matches!(self, Self::Recreate { .. })
    }

    /// How many pods a rolling update of `replicas` pods may add and remove; `None` if there is no
    /// rolling update, or one that the API server rejects.
    ///
    /// Source: `ResolveFenceposts` in the Deployment controller's `deployment_util.go`:
    /// surge rounds up, unavailable down, and if both are 0, unavailable is 1.
    pub fn room(&self, replicas: i64) -> Option<Room> {
        let (max_surge, max_unavailable) = match self {
            Self::RollingUpdate {
                max_surge,
                max_unavailable,
            } => (max_surge, max_unavailable),
            Self::SideBySide(_) => {
                return Some(Room {
                    surge: replicas.max(1),
                    unavailable: 0,
                });
            }
            Self::Recreate { .. } | Self::Other(_) => return None,
        };
        let default = Amount::Percent(25);
        let surge = max_surge.as_ref().unwrap_or(&default);
        let unavailable = max_unavailable.as_ref().unwrap_or(&default);
        let surge = surge.resolve(replicas, Rounding::Up)?;
        let unavailable = unavailable.resolve(replicas, Rounding::Down)?;
        Some(Room {
            surge,
            unavailable: if surge == 0 && unavailable == 0 {
                1
            } else {
                unavailable
            },
        })
    }
}

impl Default for Strategy {
    fn default() -> Self {
        Self::RollingUpdate {
            max_surge: None,
            max_unavailable: None,
        }
    }
}

impl<'de> Deserialize<'de> for Strategy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Option::<Written>::deserialize(deserializer)?.unwrap_or_default();
        Ok(written.into())
    }
}

/// A strategy as the built-in kinds write it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Written {
    pub(super) r#type: Option<Text>,
    rolling_update: Option<Rolling>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rolling {
    max_surge: Option<Amount>,
    max_unavailable: Option<Amount>,
    partition: Option<i64>,
}

impl Written {
    /// Below which ordinal a StatefulSet's pods are not updated.
    pub(super) fn partition(&self) -> Option<i64> {
        self.rolling_update.as_ref()?.partition
    }
}

impl From<Written> for Strategy {
    fn from(written: Written) -> Self {
        match written.r#type.as_deref() {
            None | Some("" | "RollingUpdate") => {
                let rolling = written.rolling_update;
                let (max_surge, max_unavailable) =
                    rolling.map_or((None, None), |it| (it.max_surge, it.max_unavailable));
                Self::RollingUpdate {
                    max_surge,
                    max_unavailable,
                }
            }
            Some("Recreate") => Self::Recreate {
                leftover: written.rolling_update.is_some(),
            },
            Some(word) => Self::Other(word.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (
                r#"{"rollingUpdate":{"maxSurge":"0%","maxUnavailable":"10%"}}"#,
                3,
                room(0, 1),
            ),
            (
                r#"{"rollingUpdate":{"maxSurge":1,"maxUnavailable":1}}"#,
                1,
                room(1, 1),
            ),
            (r#"{"rollingUpdate":{"maxSurge":"x"}}"#, 1, None),
            (r#"{"type":"Recreate"}"#, 1, None),
        ];
        for (text, replicas, expected) in cases {
            let strategy: Strategy = serde_json::from_str(text).unwrap();
            assert_eq!(strategy.room(replicas), expected, "{text}");
        }
    }

    #[test]
    fn a_leftover_is_recognized() {
        let leftover = |text| {
            serde_json::from_str::<Strategy>(text).unwrap() == Strategy::Recreate { leftover: true }
        };
        assert!(leftover(r#"{"type":"Recreate","rollingUpdate":{}}"#));
        assert!(!leftover(r#"{"type":"Recreate","rollingUpdate":null}"#));
        assert!(!leftover(r#"{"type":"Recreate"}"#));
    }
}
