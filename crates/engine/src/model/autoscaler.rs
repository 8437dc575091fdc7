//! What changes a workload's replicas from outside: autoscalers and scales.

use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

use super::Text;
use super::de::nullable;
use super::metadata::Metadata;
use super::ser::is_default;

/// A HorizontalPodAutoscaler, of either version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Autoscaler {
    /// Name, namespace and the rest.
    #[serde(deserialize_with = "nullable")]
    pub metadata: Metadata,
    /// What it scales, and how far.
    #[serde(deserialize_with = "nullable")]
    pub spec: AutoscalerSpec,
    /// Whether it has itself brought its workload down to 0, and will bring it up again
    /// (condition `ScaledToZero`, Kubernetes 1.37).
    #[serde(
        rename = "status",
        deserialize_with = "scaled_to_zero",
        skip_serializing
    )]
    pub scaled_to_zero: bool,
}

/// What an autoscaler scales, and how far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AutoscalerSpec {
    /// The workload it scales.
    #[serde(deserialize_with = "nullable")]
    pub scale_target_ref: ScaleTarget,
    /// The fewest replicas it leaves; 1 where it does not say.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub min_replicas: Option<i64>,
    /// The most replicas it may set.
    #[serde(deserialize_with = "nullable")]
    pub max_replicas: i64,
    /// How it scales.
    #[serde(deserialize_with = "nullable")]
    pub behavior: ScalingBehavior,
}

/// How an autoscaler scales.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScalingBehavior {
    /// How it adds replicas.
    #[serde(deserialize_with = "nullable")]
    pub scale_up: ScalingRules,
}

/// How an autoscaler adds replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScalingRules {
    /// `Disabled` where it never does.
    #[serde(deserialize_with = "nullable")]
    pub select_policy: Text,
}

impl Autoscaler {
    /// The most replicas it leaves a workload that asks for `replicas`. At 0 it
    /// does not scale at all, unless it was itself that scaled to 0, and to its minimum it goes whatever its policies say
    /// (`reconcileAutoscaler` in `pkg/controller/podautoscaler/horizontal.go`).
    #[must_use]
    pub fn most(&self, replicas: i64) -> i64 {
        let most = self.spec.max_replicas;
        let never_adds = self.spec.behavior.scale_up.select_policy == "Disabled";
        if replicas <= 0 && !self.scaled_to_zero {
            return replicas;
        }
        match never_adds {
            true => replicas.max(self.fewest()).min(most),
            false => most,
        }
    }

    /// The ScaledObject of KEDA that writes the autoscaler, and writes it back where
    /// somebody changes it (`updateHPAIfNeeded` in KEDA's `controllers/keda/hpa.go`).
    #[must_use]
    pub fn scaled_object(&self) -> Option<&Text> {
        let owner = self.metadata.controller.as_deref()?;
        let is_keda = owner.group == "keda.sh" && owner.kind == "ScaledObject";
        is_keda.then_some(&owner.name)
    }

    /// The fewest replicas it leaves a workload that has any.
    #[must_use]
    pub fn fewest(&self) -> i64 {
        self.spec.min_replicas.unwrap_or(1)
    }
}

fn scaled_to_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        #[serde(deserialize_with = "nullable")]
        conditions: Vec<Condition>,
    }

    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Condition {
        #[serde(deserialize_with = "nullable")]
        r#type: Text,
        #[serde(deserialize_with = "nullable")]
        status: Text,
    }

    let Status { conditions } = nullable(deserializer)?;
    let mut conditions = conditions.iter();
    Ok(conditions.any(|it| it.r#type == "ScaledToZero" && it.status == "True"))
}

/// Names the workload that an autoscaler scales.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScaleTarget {
    /// `apps/v1` for example.
    #[serde(deserialize_with = "nullable")]
    pub api_version: Text,
    /// The workload's kind.
    #[serde(deserialize_with = "nullable")]
    pub kind: Text,
    /// The workload's name.
    #[serde(deserialize_with = "nullable")]
    pub name: Text,
}

impl ScaleTarget {
    /// The API group of the kind, without the version; empty for the core.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }
}

/// A request to set a workload's replicas (`kubectl scale`, or an autoscaler's
/// own). The workload's kind is not in it; the request names the resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scale {
    /// Name and namespace of the workload.
    #[serde(deserialize_with = "nullable")]
    pub metadata: Metadata,
    /// What is asked for.
    #[serde(deserialize_with = "nullable")]
    pub spec: ScaleSpec,
}

/// What a scale asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScaleSpec {
    /// The replicas; the API server leaves a count of 0 out.
    #[serde(deserialize_with = "nullable")]
    pub replicas: i64,
}
