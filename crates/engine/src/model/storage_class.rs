//! Storage classes and CSI drivers.

use serde::{Deserialize, Serialize};

use super::Text;
use super::de::nullable;
use super::labels::Labels;
use super::metadata::{DEFAULT_CLASS, DEFAULT_CLASS_BETA, Metadata};
use super::node::{NodeSelector, NodeSelectorTerm};
use super::selector::{Operator, Requirement};
use super::ser::is_default;

/// The provisioner of classes whose volumes are all created manually (Kubernetes
/// documentation, "Storage Classes", "Local").
pub const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The parameter in which classes of Huawei's cloud name the CSI driver, as all of them have one
/// provisioner (Cloud Container Engine documentation, "StorageClass"). The
/// external-provisioner of other drivers refuses it.
const DRIVER: &str = "csi.storage.k8s.io/csi-driver-name";

/// A storage class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StorageClass {
    /// Name, annotations and when it was made.
    #[serde(deserialize_with = "nullable")]
    pub metadata: Metadata,
    /// Who makes the volumes.
    #[serde(deserialize_with = "nullable")]
    pub provisioner: Text,
    /// What the provisioner is told.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub parameters: Labels,
    /// When claims are bound: `WaitForFirstConsumer`, or at once.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub volume_binding_mode: Text,
    /// Alternatives, of which a volume is limited to one.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub allowed_topologies: Box<[TopologyTerm]>,
}

/// Where volumes may be: all expressions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopologyTerm {
    /// What the nodes' labels must be.
    #[serde(deserialize_with = "nullable")]
    pub match_label_expressions: Box<[TopologyExpression]>,
}

/// Values of which a label must have one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyExpression {
    /// The label.
    pub key: Text,
    /// Its possible values.
    #[serde(default, deserialize_with = "nullable")]
    pub values: Box<[Text]>,
}

impl StorageClass {
    /// Who serves the volumes: the CSI driver that the class names beside its provisioner,
    /// or else the provisioner.
    #[must_use]
    pub fn driver(&self) -> &str {
        self.parameters
            .get(DRIVER)
            .filter(|name| !name.is_empty())
            .unwrap_or(&self.provisioner)
    }

    /// Whether claims are bound only when a pod that uses them is placed.
    #[must_use]
    pub fn binds_late(&self) -> bool {
        self.volume_binding_mode == "WaitForFirstConsumer"
    }

    /// Whether claims that name no class may get this one.
    #[must_use]
    pub fn is_default(&self) -> bool {
        let yes = |key| self.metadata.annotations.get(key) == Some("true");
        yes(DEFAULT_CLASS) || yes(DEFAULT_CLASS_BETA)
    }

    /// The nodes the class's volumes are limited to; `None`: no limit.
    #[must_use]
    pub(crate) fn allowed_nodes(&self) -> Option<NodeSelector> {
        let terms: Box<[NodeSelectorTerm]> = self
            .allowed_topologies
            .iter()
            .filter(|term| !term.match_label_expressions.is_empty())
            .map(|term| NodeSelectorTerm {
                match_expressions: term
                    .match_label_expressions
                    .iter()
                    .map(|expression| Requirement {
                        key: expression.key.clone(),
                        operator: Operator::In,
                        values: expression.values.clone(),
                    })
                    .collect(),
                match_fields: Box::default(),
            })
            .collect();
        (!terms.is_empty()).then_some(NodeSelector {
            node_selector_terms: terms,
        })
    }
}

/// What a cluster says of a CSI driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CsiDriver {
    /// The driver's name.
    #[serde(deserialize_with = "nullable")]
    pub metadata: Metadata,
    /// What it says of itself.
    #[serde(deserialize_with = "nullable")]
    pub spec: CsiDriverSpec,
}

/// What a CSI driver says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CsiDriverSpec {
    /// Whether the attach-detach controller acts for it; see [`CsiDriver::is_attached`].
    #[serde(skip_serializing_if = "is_default")]
    pub attach_required: Option<bool>,
}

impl CsiDriver {
    /// Whether the attach-detach controller acts for the driver; where nothing is
    /// said it does (Kubernetes API, `CSIDriverSpec.attachRequired`).
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.spec.attach_required.unwrap_or(true)
    }
}
