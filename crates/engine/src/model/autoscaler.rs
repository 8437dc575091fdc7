//! Autoscalers and scales, which change a workload's replicas.

use serde::Deserialize;
use serde::de::Deserializer;

use super::Text;
use super::condition::Condition;
use super::de::nullable;
use super::metadata::{KEDA_PAUSED, KEDA_PAUSED_REPLICAS, KEDA_PAUSED_SCALE_OUT};
use super::object::{ObjectKind, group_of};
use super::resource::{Resource, Skipped};
use super::workload::WorkloadKind;

/// A HorizontalPodAutoscaler, of either version, or the one that KEDA makes of a ScaledObject.
pub type Autoscaler = Resource<AutoscalerSpec, AutoscalerStatus>;

/// The target and the limits of an autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AutoscalerSpec {
    /// Whether it is the spec of KEDA's ScaledObject. Set from the kind, never read from a field.
    #[serde(skip)]
    pub is_scaled_object: bool,
    /// The workload it scales.
    #[serde(deserialize_with = "nullable")]
    pub scale_target_ref: ScaleTarget,
    /// The minimum of replicas; 1 by default.
    pub min_replicas: Option<i64>,
    /// The maximum of replicas.
    #[serde(deserialize_with = "nullable")]
    pub max_replicas: i64,
    /// The rules by which it scales.
    #[serde(deserialize_with = "nullable")]
    pub behavior: ScalingBehavior,
}

/// The state of an autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct AutoscalerStatus {
    /// Whether it has itself brought its workload down to 0, and will bring it up again
    /// (condition `ScaledToZero`, Kubernetes 1.37).
    #[serde(rename = "conditions", deserialize_with = "scaled_to_zero")]
    pub scaled_to_zero: bool,
}

/// The rules by which an autoscaler scales.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScalingBehavior {
    /// The rules by which it adds replicas.
    #[serde(deserialize_with = "nullable")]
    pub scale_up: ScalingRules,
}

/// The rules by which an autoscaler adds replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScalingRules {
    /// `Disabled` if it never adds any.
    #[serde(deserialize_with = "nullable")]
    pub select_policy: Text,
}

impl Autoscaler {
    /// Its kind.
    pub const fn kind(&self) -> ObjectKind {
        if self.spec.is_scaled_object { ObjectKind::ScaledObject } else { ObjectKind::Autoscaler }
    }

    /// The fields with the fewest and the most replicas.
    pub const fn fields(&self) -> [&'static str; 2] {
        if self.spec.is_scaled_object {
            ["minReplicaCount", "maxReplicaCount"]
        } else {
            ["minReplicas", "maxReplicas"]
        }
    }

    /// The most replicas it gives a workload that has `replicas`. It does not scale from 0,
    /// unless it scaled to 0 itself, and it scales to its minimum regardless of its policies
    /// (`reconcileAutoscaler` in `pkg/controller/podautoscaler/horizontal.go`).
    pub fn most(&self, replicas: i64) -> i64 {
        if let Some(fixed) = self.paused_at(replicas) {
            return fixed;
        }
        let most = self.spec.max_replicas;
        let never_adds = self.spec.behavior.scale_up.select_policy == "Disabled";
        if replicas <= 0 && !self.status.scaled_to_zero {
            return replicas;
        }
        if never_adds { replicas.max(self.fewest()).min(most) } else { most }
    }

    /// The number of replicas above which it scales its workload down at once; `None` if it never
    /// does.
    pub(crate) fn cap(&self) -> Option<i64> {
        let most = self.spec.max_replicas;
        (most >= 1 && self.paused_at(most).is_none()).then_some(most)
    }

    /// The number of replicas at which KEDA leaves a workload that has `replicas`, if the
    /// autoscaler is paused.
    fn paused_at(&self, replicas: i64) -> Option<i64> {
        self.metadata
            .annotations
            .get(KEDA_PAUSED_REPLICAS)
            .and_then(|at| at.parse().ok())
            .or_else(|| self.metadata.is_set(KEDA_PAUSED).then_some(replicas))
    }

    /// Reads KEDA's ScaledObject. KEDA makes a HorizontalPodAutoscaler of it, and scales the
    /// workload to 0 and back by itself (its documentation, "ScaledObject specification").
    ///
    /// # Errors
    ///
    /// A field does not have the type that it has in the API.
    pub(crate) fn read_scaled_object<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Self, D::Error> {
        let object = Resource::<ScaledObjectSpec, Skipped>::deserialize(deserializer)?;
        let mut spec = object.spec;
        // KEDA writes this into the HorizontalPodAutoscaler, and does not scale from 0 itself
        // (`controllers/keda/hpa.go`).
        let never_adds = object.metadata.is_set(KEDA_PAUSED_SCALE_OUT);
        let behavior = &mut spec.advanced.horizontal_pod_autoscaler_config.behavior;
        if never_adds {
            behavior.scale_up.select_policy = "Disabled".into();
        }
        let mut target = spec.scale_target_ref;
        if target.kind.is_empty() {
            target.kind = "Deployment".into();
        }
        if target.api_version.is_empty() {
            target.api_version = "apps/v1".into();
        }
        Ok(Self {
            metadata: object.metadata,
            spec: AutoscalerSpec {
                is_scaled_object: true,
                scale_target_ref: target,
                min_replicas: spec.min_replica_count,
                max_replicas: spec.max_replica_count.unwrap_or(MAX_REPLICA_COUNT),
                behavior: spec.advanced.horizontal_pod_autoscaler_config.behavior,
            },
            status: AutoscalerStatus { scaled_to_zero: !never_adds },
        })
    }

    /// The name of KEDA's ScaledObject: the autoscaler itself, or the owner that reverts changes to
    /// it (`updateHPAIfNeeded` in KEDA's `controllers/keda/hpa.go`).
    pub fn scaled_object(&self) -> Option<&Text> {
        if self.spec.is_scaled_object {
            return Some(&self.metadata.name);
        }
        let owner = self.metadata.controller.as_deref()?;
        let is_keda = owner.group() == "keda.sh" && owner.kind == "ScaledObject";
        is_keda.then_some(&owner.name)
    }

    /// The fewest replicas that it gives a workload that has any.
    pub fn fewest(&self) -> i64 {
        self.spec.min_replicas.unwrap_or(1)
    }
}

/// The most replicas of a ScaledObject without `maxReplicaCount`.
const MAX_REPLICA_COUNT: i64 = 100;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ScaledObjectSpec {
    #[serde(deserialize_with = "nullable")]
    scale_target_ref: ScaleTarget,
    min_replica_count: Option<i64>,
    max_replica_count: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    advanced: Advanced,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Advanced {
    #[serde(deserialize_with = "nullable")]
    horizontal_pod_autoscaler_config: HorizontalConfig,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HorizontalConfig {
    #[serde(deserialize_with = "nullable")]
    behavior: ScalingBehavior,
}

fn scaled_to_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let conditions: Vec<Condition> = nullable(deserializer)?;
    Ok(conditions
        .iter()
        .any(|condition| condition.kind == "ScaledToZero" && condition.status == "True"))
}

/// A reference to the workload that an autoscaler scales.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
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
    /// The kind of workload, if it is one of those that are read.
    pub(crate) fn workload_kind(&self) -> Option<WorkloadKind> {
        WorkloadKind::find(&self.kind, group_of(&self.api_version))
    }

    /// Whether it refers to a workload of that kind and name. It contains no namespace, so callers
    /// compare the namespaces themselves.
    pub(crate) fn is(&self, kind: WorkloadKind, name: &str) -> bool {
        self.name == name && self.workload_kind() == Some(kind)
    }
}

/// A request to set a workload's replicas, by `kubectl scale` or an autoscaler. It does not
/// contain the workload's kind, which is in the request's resource. Its name and namespace are
/// those of the workload.
pub type Scale = Resource<ScaleSpec>;

/// The requested replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ScaleSpec {
    /// The replicas; the API server omits 0.
    #[serde(deserialize_with = "nullable")]
    pub replicas: i64,
}
