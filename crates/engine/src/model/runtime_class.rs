//! Runtime classes, which decide how and on which nodes the containers of a pod run.

use serde::{Deserialize, Serialize};

use super::de::nullable;
use super::labels::Labels;
use super::metadata::Metadata;
use super::node::Toleration;
use super::ser::is_default;

/// A RuntimeClass, reduced to the fields that it adds to the pods that name it
/// (`plugin/pkg/admission/runtimeclass`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuntimeClass {
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub metadata: Metadata,
    /// The constraints that it adds to its pods.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub scheduling: RuntimeScheduling,
}

/// The node labels and tolerations that a RuntimeClass adds to its pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RuntimeScheduling {
    /// Labels a node must have.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub node_selector: Labels,
    /// Taints the pods tolerate.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub tolerations: Box<[Toleration]>,
}
