//! What changes a workload's replicas from outside: autoscalers and scales.

use serde::Deserialize;
use serde::de::Deserializer;

use super::Text;
use super::de::nullable;
use super::metadata::Metadata;

/// A HorizontalPodAutoscaler, of either version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autoscaler {
    /// Name, namespace and the rest.
    pub metadata: Metadata,
    /// The kind of the workload it scales.
    pub target_kind: Text,
    /// The API group of that kind, without the version.
    pub target_group: Text,
    /// The name of that workload.
    pub target_name: Text,
    /// The most replicas it may set.
    pub max_replicas: i64,
    /// Whether it never adds replicas (`behavior.scaleUp.selectPolicy: Disabled`).
    pub never_scales_up: bool,
}

impl Autoscaler {
    /// The most replicas it leaves a workload that asks for `replicas`. At 0 it
    /// does not scale at all (`reconcileAutoscaler` in
    /// `pkg/controller/podautoscaler/horizontal.go`).
    #[must_use]
    pub const fn most(&self, replicas: i64) -> i64 {
        if replicas <= 0 || (self.never_scales_up && replicas < self.max_replicas) {
            replicas
        } else {
            self.max_replicas
        }
    }
}

impl<'de> Deserialize<'de> for Autoscaler {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default, deserialize_with = "nullable")]
            metadata: Metadata,
            #[serde(default, deserialize_with = "nullable")]
            spec: Spec,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Spec {
            #[serde(deserialize_with = "nullable")]
            scale_target_ref: Target,
            #[serde(deserialize_with = "nullable")]
            max_replicas: i64,
            #[serde(deserialize_with = "nullable")]
            behavior: Behavior,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Behavior {
            #[serde(deserialize_with = "nullable")]
            scale_up: ScaleUp,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct ScaleUp {
            #[serde(deserialize_with = "nullable")]
            select_policy: Text,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Target {
            #[serde(deserialize_with = "nullable")]
            api_version: Text,
            #[serde(deserialize_with = "nullable")]
            kind: Text,
            #[serde(deserialize_with = "nullable")]
            name: Text,
        }

        let Wire { metadata, spec } = Wire::deserialize(deserializer)?;
        let target = spec.scale_target_ref;
        Ok(Self {
            metadata,
            target_group: target
                .api_version
                .split_once('/')
                .map_or_else(Text::default, |(group, _)| group.into()),
            target_kind: target.kind,
            target_name: target.name,
            max_replicas: spec.max_replicas,
            never_scales_up: spec.behavior.scale_up.select_policy == "Disabled",
        })
    }
}

/// A request to set a workload's replicas (`kubectl scale`, or an autoscaler's
/// own). The workload's kind is not in it; the request names the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Name and namespace of the workload.
    pub metadata: Metadata,
    /// The replicas asked for.
    pub replicas: i64,
}

impl<'de> Deserialize<'de> for Scale {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default, deserialize_with = "nullable")]
            metadata: Metadata,
            #[serde(default, deserialize_with = "nullable")]
            spec: Spec,
        }

        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Spec {
            // The API server leaves a count of 0 out.
            #[serde(deserialize_with = "nullable")]
            replicas: i64,
        }

        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            metadata: wire.metadata,
            replicas: wire.spec.replicas,
        })
    }
}
