//! The update strategy of workloads, in the notation of each kind's API.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Text;
use super::amount::Amount;
use super::de::nullable;
use super::pod::Required;
use super::strategy::{SideBySide, Strategy};
use super::workload::WorkloadKind;

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
    /// The way in which a Rollout splits the traffic.
    traffic_routing: Option<IgnoredAny>,
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

/// The default surge and unavailable pods of a Deployment and of a Rollout (`DefaultMaxSurge` and
/// `DefaultMaxUnavailable` in Argo Rollouts' `utils/defaults`).
const A_QUARTER: [Amount; 2] = [Amount::Percent(25), Amount::Percent(25)];

/// Those of a DaemonSet and a StatefulSet.
const ONE_BY_ONE: [Amount; 2] = [Amount::Count(0), Amount::Count(1)];

/// Those of a CloneSet.
const A_FIFTH: [Amount; 2] = [Amount::Count(0), Amount::Percent(20)];

impl WrittenStrategy {
    /// The update strategy of a workload of `kind`. A StatefulSet's `partition` only delays the
    /// consequences.
    pub(super) fn of_kind(self, kind: WorkloadKind) -> Strategy {
        match kind {
            WorkloadKind::Rollout => self.of_rollout(),
            WorkloadKind::DeploymentConfig => self.of_deployment_config(),
            WorkloadKind::CloneSet if self.r#type == "InPlaceOnly" => Strategy::Other(self.r#type),
            WorkloadKind::CloneSet => rolling(self.max_surge, self.max_unavailable, A_FIFTH),
            WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => self.built_in(ONE_BY_ONE),
            _ => self.built_in(A_QUARTER),
        }
    }

    /// The ordinal below which a StatefulSet's pods are not updated.
    pub(super) fn partition(&self) -> i64 {
        if self.r#type == "OnDelete" {
            return i64::MAX;
        }
        self.rolling_update.as_ref().and_then(|rolling| rolling.partition).unwrap_or(0)
    }

    /// Whether a Rollout adds required anti-affinity between the pods of two revisions.
    pub(super) fn keeps_revisions_apart(&self) -> bool {
        self.blue_green
            .as_ref()
            .or(self.canary.as_ref())
            .is_some_and(|settings| settings.anti_affinity.required.is_some())
    }

    /// The volumes, by name, that hook pods of a DeploymentConfig mount while other pods run.
    pub(super) fn take_hook_volumes(&mut self) -> Box<[Text]> {
        let params = match self.r#type.as_str() {
            "" | "Rolling" => &mut self.rolling_params,
            "Recreate" => &mut self.recreate_params,
            _ => return Box::default(),
        };
        [&mut params.pre, &mut params.post]
            .into_iter()
            .flat_map(|hook| std::mem::take(&mut hook.exec_new_pod.volumes))
            .collect()
    }

    fn built_in(self, defaults: [Amount; 2]) -> Strategy {
        match self.r#type.as_str() {
            "" | "RollingUpdate" => {
                let written = self.rolling_update.unwrap_or_default();
                rolling(written.max_surge, written.max_unavailable, defaults)
            }
            "Recreate" => Strategy::Recreate { leftover: self.rolling_update.is_some() },
            _ => Strategy::Other(self.r#type),
        }
    }

    fn of_rollout(self) -> Strategy {
        match self.canary {
            _ if self.blue_green.is_some() => Strategy::SideBySide(SideBySide::BlueGreen),
            // The stable pods stay (`CalculateReplicaCountsForTrafficRoutedCanary`).
            Some(canary) if canary.traffic_routing.is_some() => {
                Strategy::SideBySide(SideBySide::TrafficRouting)
            }
            Some(canary) => rolling(canary.max_surge, canary.max_unavailable, A_QUARTER),
            // The controller does not act on such a Rollout (`InvalidSpec`).
            None => Strategy::Other(Text::default()),
        }
    }

    /// A missing amount is 25 % if the other one is missing too or is 0, and 0 otherwise
    /// (`SetDefaults_RollingDeploymentStrategyParams` in OpenShift's API server).
    fn of_deployment_config(self) -> Strategy {
        let is_zero = |amount: &Amount| matches!(amount, Amount::Count(0) | Amount::Percent(0));
        let beside = |other: &Option<Amount>| match other {
            Some(other) if !is_zero(other) => Amount::Count(0),
            _ => Amount::Percent(25),
        };
        match self.r#type.as_str() {
            "" | "Rolling" => {
                let written = self.rolling_params;
                let defaults = [&written.max_unavailable, &written.max_surge].map(beside);
                rolling(written.max_surge, written.max_unavailable, defaults)
            }
            "Recreate" => Strategy::Recreate { leftover: false },
            _ => Strategy::Other(self.r#type),
        }
    }
}

fn rolling(
    max_surge: Option<Amount>,
    max_unavailable: Option<Amount>,
    [surge, unavailable]: [Amount; 2],
) -> Strategy {
    Strategy::RollingUpdate {
        max_surge: max_surge.unwrap_or(surge),
        max_unavailable: max_unavailable.unwrap_or(unavailable),
    }
}

#[cfg(test)]
mod tests {
    use super::super::strategy::Room;
    use super::*;

    fn room(kind: WorkloadKind, text: &str) -> Option<(i64, i64)> {
        let written: WrittenStrategy = serde_json::from_str(text).unwrap();
        let room = written.of_kind(kind).room(2);
        room.map(|Room { surge, unavailable }| (surge, unavailable))
    }

    #[test]
    fn a_rollout_has_no_way_to_stop_all_pods_first() {
        for (text, expected) in [
            ("{}", None),
            (r#"{"canary":{}}"#, Some((1, 0))),
            (r#"{"canary":{"maxSurge":0,"maxUnavailable":1}}"#, Some((0, 1))),
            (r#"{"canary":{"maxSurge":0,"maxUnavailable":1,"trafficRouting":{}}}"#, Some((2, 0))),
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
            assert_eq!(room(WorkloadKind::DeploymentConfig, text), expected, "{text}");
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
