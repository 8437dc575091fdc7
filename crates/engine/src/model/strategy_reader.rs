//! The update strategy of workloads, in the notation of each kind's API.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Text;
use super::amount::Amount;
use super::de::{nullable, present};
use super::pod::Required;
use super::strategy::{SideBySide, Strategy};
use super::workload::WorkloadKind;

/// The settings that are read from a workload's strategy.
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

/// `spec.strategy` or `spec.updateStrategy`, with the fields of every kind.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WrittenStrategy {
    #[serde(deserialize_with = "nullable")]
    r#type: Text,
    /// The amounts of the built-in kinds.
    rolling_update: Option<Settings>,
    /// The settings of a Rollout.
    blue_green: Option<Settings>,
    canary: Option<Settings>,
    /// The settings of a DeploymentConfig.
    #[serde(deserialize_with = "nullable")]
    rolling_params: Settings,
    #[serde(deserialize_with = "nullable")]
    recreate_params: Settings,
    /// The amounts of a CloneSet.
    max_surge: Option<Amount>,
    max_unavailable: Option<Amount>,
}

/// The settings of one strategy, with the fields of every kind.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Settings {
    max_surge: Option<Amount>,
    max_unavailable: Option<Amount>,
    /// The partition of a StatefulSet.
    partition: Option<i64>,
    /// Whether a Rollout splits the traffic.
    #[serde(deserialize_with = "present")]
    traffic_routing: bool,
    /// The anti-affinity that Argo Rollouts adds between the pods of the stable revision and those
    /// of the next one (`GenerateReplicaSetAffinity` in its `utils/replicaset`).
    #[serde(deserialize_with = "nullable")]
    anti_affinity: Required<Option<IgnoredAny>>,
    /// The hooks of a DeploymentConfig that run beside pods. The `mid` hook does not: no pods run
    /// at that time.
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

impl WrittenStrategy {
    /// The update settings of a workload of `kind`.
    pub(super) fn rollouts(self, kind: WorkloadKind) -> Rollouts {
        match kind {
            WorkloadKind::Rollout => self.of_rollout(),
            WorkloadKind::DeploymentConfig => self.of_deployment_config(),
            WorkloadKind::CloneSet => self.of_clone_set().into(),
            WorkloadKind::StatefulSet => Rollouts {
                partition: self.partition(),
                ..self.one_by_one().into()
            },
            WorkloadKind::DaemonSet => self.one_by_one().into(),
            _ => self.built_in().into(),
        }
    }

    /// The ordinal below which a StatefulSet's pods are not updated.
    fn partition(&self) -> i64 {
        if self.r#type == "OnDelete" {
            return i64::MAX;
        }
        let rolling = self.rolling_update.as_ref();
        rolling.and_then(|rolling| rolling.partition).unwrap_or(0)
    }

    fn built_in(self) -> Strategy {
        match self.r#type.as_str() {
            "" | "RollingUpdate" => {
                let rolling = self.rolling_update.unwrap_or_default();
                Strategy::RollingUpdate {
                    max_surge: rolling.max_surge,
                    max_unavailable: rolling.max_unavailable,
                }
            }
            "Recreate" => Strategy::Recreate {
                leftover: self.rolling_update.is_some(),
            },
            _ => Strategy::Other(self.r#type),
        }
    }

    /// The strategy of a DaemonSet or StatefulSet: no surge and one pod unavailable by default. A
    /// StatefulSet's `partition` only delays the consequences.
    fn one_by_one(self) -> Strategy {
        match self.built_in() {
            Strategy::RollingUpdate {
                max_surge,
                max_unavailable,
            } => Strategy::RollingUpdate {
                max_surge: max_surge.or(Some(Amount::Count(0))),
                max_unavailable: max_unavailable.or(Some(Amount::Count(1))),
            },
            other => other,
        }
    }

    /// A missing amount is 25 %, as in a Deployment (`DefaultMaxSurge` and `DefaultMaxUnavailable`
    /// in Argo Rollouts' `utils/defaults`).
    fn of_rollout(self) -> Rollouts {
        let canary = self.canary.as_ref().map(|it| &it.anti_affinity);
        let blue_green = self.blue_green.as_ref().map(|it| &it.anti_affinity);
        let keeps_revisions_apart = (blue_green.or(canary)).is_some_and(|it| it.required.is_some());
        let strategy = match self.canary {
            _ if self.blue_green.is_some() => Strategy::SideBySide(SideBySide::BlueGreen),
            // The stable pods stay (`CalculateReplicaCountsForTrafficRoutedCanary`).
            Some(canary) if canary.traffic_routing => {
                Strategy::SideBySide(SideBySide::TrafficRouting)
            }
            Some(canary) => Strategy::RollingUpdate {
                max_surge: canary.max_surge,
                max_unavailable: canary.max_unavailable,
            },
            // The controller does not act on such a Rollout (`InvalidSpec`).
            None => Strategy::Other(Text::default()),
        };
        Rollouts {
            keeps_revisions_apart,
            ..strategy.into()
        }
    }

    fn of_deployment_config(self) -> Rollouts {
        let (strategy, pre, post) = match self.r#type.as_str() {
            "" | "Rolling" => {
                let params = self.rolling_params;
                let strategy = rolling(params.max_surge, params.max_unavailable);
                (strategy, params.pre, params.post)
            }
            "Recreate" => {
                let Settings { pre, post, .. } = self.recreate_params;
                (Strategy::Recreate { leftover: false }, pre, post)
            }
            _ => return Strategy::Other(self.r#type).into(),
        };
        let volumes = [pre, post].map(|hook| hook.exec_new_pod.volumes);
        Rollouts {
            hook_volumes: volumes.into_iter().flatten().collect(),
            ..strategy.into()
        }
    }

    /// No surge and 20 % unavailable by default.
    fn of_clone_set(self) -> Strategy {
        if self.r#type == "InPlaceOnly" {
            return Strategy::Other(self.r#type);
        }
        Strategy::RollingUpdate {
            max_surge: self.max_surge.or(Some(Amount::Count(0))),
            max_unavailable: self.max_unavailable.or(Some(Amount::Percent(20))),
        }
    }
}

/// The strategy with OpenShift's defaults: a missing amount is 25 % if the other one is missing too
/// or is 0, and 0 otherwise (`SetDefaults_RollingDeploymentStrategyParams` in its API server).
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

    fn room(kind: WorkloadKind, text: &str) -> Option<(i64, i64)> {
        let written: WrittenStrategy = serde_json::from_str(text).unwrap();
        let room = written.rollouts(kind).strategy.room(2);
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
            assert_eq!(room(WorkloadKind::Rollout, text), expected, "{text}");
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
            assert_eq!(
                room(WorkloadKind::DeploymentConfig, text),
                expected,
                "{text}"
            );
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
            assert_eq!(room(WorkloadKind::CloneSet, text), expected, "{text}");
        }
    }
}
