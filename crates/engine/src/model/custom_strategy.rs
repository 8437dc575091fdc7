//! The strategies of kinds that are not Kubernetes' own, as their API writes them.

use serde::Deserialize;

use super::Text;
use super::amount::Amount;
use super::de::{nullable, present};
use super::strategy::{SideBySide, Strategy};

/// `spec.strategy` of a Rollout. Without an amount, 25 % counts, as in a Deployment
/// (`DefaultMaxSurge` and `DefaultMaxUnavailable` in Argo Rollouts' `utils/defaults`).
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OfRollout {
    #[serde(deserialize_with = "present")]
    blue_green: bool,
    canary: Option<Canary>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Canary {
    max_surge: Option<Amount>,
    max_unavailable: Option<Amount>,
    #[serde(deserialize_with = "present")]
    traffic_routing: bool,
}

impl From<OfRollout> for Strategy {
    fn from(strategy: OfRollout) -> Self {
        match strategy.canary {
            _ if strategy.blue_green => Self::SideBySide(SideBySide::BlueGreen),
            // The stable pods stay (`CalculateReplicaCountsForTrafficRoutedCanary`).
            Some(canary) if canary.traffic_routing => Self::SideBySide(SideBySide::TrafficRouting),
            Some(canary) => Self::RollingUpdate {
                max_surge: canary.max_surge,
                max_unavailable: canary.max_unavailable,
            },
            // The controller leaves such a Rollout alone (`InvalidSpec`).
            None => Self::Other(Text::default()),
        }
    }
}

/// `spec.strategy` of a DeploymentConfig.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OfDeploymentConfig {
    #[serde(deserialize_with = "nullable")]
    r#type: Text,
    #[serde(deserialize_with = "nullable")]
    rolling_params: RollingParams,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RollingParams {
    max_surge: Option<Amount>,
    max_unavailable: Option<Amount>,
}

impl From<OfDeploymentConfig> for Strategy {
    fn from(strategy: OfDeploymentConfig) -> Self {
        match strategy.r#type.as_str() {
            "" | "Rolling" => strategy.rolling_params.strategy(),
            "Recreate" => Self::Recreate { leftover: false },
            _ => Self::Other(strategy.r#type),
        }
    }
}

/// `spec.updateStrategy` of a CloneSet: no surge and 20 % unavailable by default.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OfCloneSet {
    #[serde(deserialize_with = "nullable")]
    r#type: Text,
    max_surge: Option<Amount>,
    max_unavailable: Option<Amount>,
}

impl From<OfCloneSet> for Strategy {
    fn from(strategy: OfCloneSet) -> Self {
        if strategy.r#type == "InPlaceOnly" {
            return Self::Other(strategy.r#type);
        }
        Self::RollingUpdate {
            max_surge: strategy.max_surge.or(Some(Amount::Count(0))),
            max_unavailable: strategy.max_unavailable.or(Some(Amount::Percent(20))),
        }
    }
}

impl RollingParams {
    /// The strategy with OpenShift's defaults: 25 % where neither amount is given or the given
    /// one is 0, and 0 where the other one is given
    /// (`SetDefaults_RollingDeploymentStrategyParams` in its API server).
    fn strategy(self) -> Strategy {
        let is_zero = |amount: &Amount| matches!(amount, Amount::Count(0) | Amount::Percent(0));
        let beside = |other: &Option<Amount>| match other {
            Some(other) if !is_zero(other) => Amount::Count(0),
            _ => Amount::Percent(25),
        };
        let (surge, unavailable) = (beside(&self.max_unavailable), beside(&self.max_surge));
        Strategy::RollingUpdate {
            max_surge: self.max_surge.or(Some(surge)),
            max_unavailable: self.max_unavailable.or(Some(unavailable)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::strategy::Room;
    use super::*;

    fn room<'de, S: Deserialize<'de> + Into<Strategy>>(text: &'de str) -> Option<(i64, i64)> {
        let strategy: S = serde_json::from_str(text).unwrap();
        let room = strategy.into().room(2);
        room.map(|Room { surge, unavailable }| (surge, unavailable))
    }

    #[test]
    fn a_rollout_has_no_way_to_stop_all_pods_first() {
        for (text, expected) in [
            ("{}", None),
            (r#"{"canary":{}}"#, Some((1, 0))),
            (
                r#"{"canary":{"maxSurge":0,"maxUnavailable":1}}"#,
                Some((0, 1)),
            ),
            (
                r#"{"canary":{"maxSurge":0,"maxUnavailable":1,"trafficRouting":{}}}"#,
                Some((2, 0)),
            ),
            (r#"{"blueGreen":{"maxUnavailable":1}}"#, Some((2, 0))),
        ] {
            assert_eq!(room::<OfRollout>(text), expected, "{text}");
        }
    }

    #[test]
    fn a_deployment_config_has_the_defaults_of_openshift() {
        for (text, expected) in [
            ("{}", Some((1, 0))),
            (r#"{"type":"Recreate"}"#, None),
            (r#"{"type":"Custom"}"#, None),
            (r#"{"rollingParams":{"maxSurge":0}}"#, Some((0, 1))),
            (r#"{"rollingParams":{"maxUnavailable":0}}"#, Some((1, 0))),
            (r#"{"rollingParams":{"maxUnavailable":1}}"#, Some((0, 1))),
            (r#"{"rollingParams":{"maxSurge":"50%"}}"#, Some((1, 0))),
        ] {
            assert_eq!(room::<OfDeploymentConfig>(text), expected, "{text}");
        }
    }

    #[test]
    fn a_clone_set_stops_a_pod_first_by_default() {
        for (text, expected) in [
            ("{}", Some((0, 1))),
            (r#"{"type":"InPlaceIfPossible"}"#, Some((0, 1))),
            (r#"{"maxSurge":1}"#, Some((1, 0))),
            (r#"{"type":"InPlaceOnly"}"#, None),
        ] {
            assert_eq!(room::<OfCloneSet>(text), expected, "{text}");
        }
    }
}
