//! How workloads are rolled out, as the API of each kind writes it.

use serde::Deserialize;
use serde::de::Deserializer;

use super::Text;
use super::amount::Amount;
use super::de::{nullable, present};
use super::strategy::{SideBySide, Strategy, Written};

/// What is read of a workload's strategy.
#[derive(Default)]
pub(super) struct Rollouts {
    pub(super) strategy: Strategy,
    /// The pods of a StatefulSet with a smaller ordinal are not updated.
    pub(super) partition: i64,
    /// Whether required anti-affinity is added between the pods of two revisions.
    pub(super) keeps_revisions_apart: bool,
    /// The volumes, by name, that hook pods mount while other pods run.
    pub(super) hook_volumes: Box<[Text]>,
}

impl From<Strategy> for Rollouts {
    fn from(strategy: Strategy) -> Self {
        Self {
            strategy,
            ..Self::default()
        }
    }
}

/// `spec.updateStrategy` of a StatefulSet.
#[derive(Default)]
pub(super) struct OfStatefulSet {
    strategy: Strategy,
    partition: i64,
}

impl<'de> Deserialize<'de> for OfStatefulSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Option::<Written>::deserialize(deserializer)?.unwrap_or_default();
        Ok(Self {
            partition: match &written {
                Written { r#type, .. } if r#type.as_deref() == Some("OnDelete") => i64::MAX,
                _ => written.partition().unwrap_or(0),
            },
            strategy: written.into(),
        })
    }
}

impl From<OfStatefulSet> for Rollouts {
    fn from(written: OfStatefulSet) -> Self {
        Self {
            partition: written.partition,
            ..written.strategy.into()
        }
    }
}

/// `spec.strategy` of a Rollout. Without an amount, 25 % counts, as in a Deployment
/// (`DefaultMaxSurge` and `DefaultMaxUnavailable` in Argo Rollouts' `utils/defaults`).
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OfRollout {
    blue_green: Option<BlueGreen>,
    canary: Option<Canary>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BlueGreen {
    #[serde(deserialize_with = "nullable")]
    anti_affinity: AntiAffinity,
}

/// The anti-affinity that Argo Rollouts adds between the pods of the stable revision and those of
/// the next one (`GenerateReplicaSetAffinity` in its `utils/replicaset`).
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AntiAffinity {
    #[serde(
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "present"
    )]
    is_required: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Canary {
    max_surge: Option<Amount>,
    max_unavailable: Option<Amount>,
    #[serde(deserialize_with = "present")]
    traffic_routing: bool,
    #[serde(deserialize_with = "nullable")]
    anti_affinity: AntiAffinity,
}

impl From<OfRollout> for Rollouts {
    fn from(written: OfRollout) -> Self {
        let canary = written.canary.as_ref().map(|it| &it.anti_affinity);
        let blue_green = written.blue_green.as_ref().map(|it| &it.anti_affinity);
        let keeps_revisions_apart = blue_green.or(canary).is_some_and(|it| it.is_required);
        let strategy = match written.canary {
            _ if written.blue_green.is_some() => Strategy::SideBySide(SideBySide::BlueGreen),
            // The stable pods stay (`CalculateReplicaCountsForTrafficRoutedCanary`).
            Some(canary) if canary.traffic_routing => {
                Strategy::SideBySide(SideBySide::TrafficRouting)
            }
            Some(canary) => Strategy::RollingUpdate {
                max_surge: canary.max_surge,
                max_unavailable: canary.max_unavailable,
            },
            // The controller leaves such a Rollout alone (`InvalidSpec`).
            None => Strategy::Other(Text::default()),
        };
        Self {
            keeps_revisions_apart,
            ..strategy.into()
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
    #[serde(deserialize_with = "nullable")]
    recreate_params: Hooks,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RollingParams {
    max_surge: Option<Amount>,
    max_unavailable: Option<Amount>,
    #[serde(deserialize_with = "nullable")]
    pre: Hook,
    #[serde(deserialize_with = "nullable")]
    post: Hook,
}

/// The hooks while pods run. `mid` is when none does.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Hooks {
    #[serde(deserialize_with = "nullable")]
    pre: Hook,
    #[serde(deserialize_with = "nullable")]
    post: Hook,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Hook {
    #[serde(deserialize_with = "nullable")]
    exec_new_pod: HookPod,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HookPod {
    #[serde(deserialize_with = "nullable")]
    volumes: Vec<Text>,
}

impl From<OfDeploymentConfig> for Rollouts {
    fn from(written: OfDeploymentConfig) -> Self {
        let (strategy, hooks) = match written.r#type.as_str() {
            "" | "Rolling" => {
                let params = written.rolling_params;
                let hooks = Hooks {
                    pre: params.pre,
                    post: params.post,
                };
                (rolling(params.max_surge, params.max_unavailable), hooks)
            }
            "Recreate" => (
                Strategy::Recreate { leftover: false },
                written.recreate_params,
            ),
            _ => (Strategy::Other(written.r#type), Hooks::default()),
        };
        let Hooks { pre, post } = hooks;
        let volumes = [pre, post].map(|hook| hook.exec_new_pod.volumes);
        Self {
            hook_volumes: volumes.into_iter().flatten().collect(),
            ..strategy.into()
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

impl From<OfCloneSet> for Rollouts {
    fn from(written: OfCloneSet) -> Self {
        if written.r#type == "InPlaceOnly" {
            return Strategy::Other(written.r#type).into();
        }
        let strategy = Strategy::RollingUpdate {
            max_surge: written.max_surge.or(Some(Amount::Count(0))),
            max_unavailable: written.max_unavailable.or(Some(Amount::Percent(20))),
        };
        strategy.into()
    }
}

/// The strategy with OpenShift's defaults: 25 % where neither amount is given or the given
/// one is 0, and 0 where the other one is given
/// (`SetDefaults_RollingDeploymentStrategyParams` in its API server).
fn rolling(max_surge: Option<Amount>, max_unavailable: Option<Amount>) -> Strategy {
    let is_zero = |amount: &Amount| matches!(amount, Amount::Count(0) | Amount::Percent(0));
    let beside = |other: &Option<Amount>| match other {
        Some(other) if !is_zero(other) => Amount::Count(0),
        _ => Amount::Percent(25),
    };
    let (surge, unavailable) = (beside(&max_unavailable), beside(&max_surge));
    Strategy::RollingUpdate {
        max_surge: max_surge.or(Some(surge)),
        max_unavailable: max_unavailable.or(Some(unavailable)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::strategy::Room;
    use super::*;

    fn room<'de, S: Deserialize<'de> + Into<Rollouts>>(text: &'de str) -> Option<(i64, i64)> {
        let strategy: S = serde_json::from_str(text).unwrap();
        let room = strategy.into().strategy.room(2);
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
