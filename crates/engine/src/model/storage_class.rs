//! Storage classes, CSI drivers and CSINodes.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::Text;
use super::de::{Named, nullable};
use super::labels::Labels;
use super::metadata::{DEFAULT_CLASS, DEFAULT_CLASS_BETA, Metadata};
use super::node::{NodeSelector, NodeSelectorTerm};
use super::resource::Resource;
use super::selector::{Operator, Requirement};
use super::ser::is_default;

/// The provisioner of classes whose volumes are all created manually (Kubernetes documentation,
/// "Storage Classes", "Local").
pub(crate) const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The parameter in which classes on Huawei Cloud name the CSI driver, as all of them have the
/// same provisioner (Cloud Container Engine documentation, "StorageClass"). The
/// external-provisioner of other drivers rejects it.
const DRIVER: &str = "csi.storage.k8s.io/csi-driver-name";

/// A storage class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StorageClass {
    /// Name, annotations and creation time.
    #[serde(deserialize_with = "nullable")]
    pub metadata: Metadata,
    /// The provisioner of the volumes.
    #[serde(deserialize_with = "nullable")]
    pub provisioner: Text,
    /// The provisioner's parameters.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub parameters: Labels,
    /// The time at which claims are bound: `WaitForFirstConsumer`, or immediately.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub volume_binding_mode: Text,
    /// The topologies that volumes are limited to.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub allowed_topologies: Box<[TopologyTerm]>,
}

/// A topology: all expressions must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopologyTerm {
    /// The required node labels.
    #[serde(deserialize_with = "nullable")]
    pub match_label_expressions: Box<[TopologyExpression]>,
}

/// A label and its allowed values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyExpression {
    /// The label.
    pub key: Text,
    /// Its allowed values.
    #[serde(default, deserialize_with = "nullable")]
    pub values: Box<[Text]>,
}

impl StorageClass {
    /// The class, or one of which nothing is known.
    pub(crate) fn or_unknown(class: Option<&Self>) -> &Self {
        static UNKNOWN: LazyLock<StorageClass> = LazyLock::new(StorageClass::default);
        class.unwrap_or(&UNKNOWN)
    }

    /// The driver of the volumes: the CSI driver in the parameters, or else the provisioner.
    pub fn driver(&self) -> &str {
        self.parameters.get(DRIVER).filter(|name| !name.is_empty()).unwrap_or(&self.provisioner)
    }

    /// Whether claims are bound only when a pod that uses them is scheduled.
    pub fn binds_late(&self) -> bool {
        self.volume_binding_mode == "WaitForFirstConsumer"
    }

    /// Whether it is a default class.
    pub fn is_default(&self) -> bool {
        let yes = |key| self.metadata.annotations.get(key) == Some("true");
        yes(DEFAULT_CLASS) || yes(DEFAULT_CLASS_BETA)
    }

    /// The nodes that the volumes are limited to; `None` for all.
    pub(crate) fn allowed_nodes(&self) -> Option<NodeSelector> {
        let requirement = |expression: &TopologyExpression| Requirement {
            key: expression.key.clone(),
            operator: Operator::In,
            values: expression.values.clone(),
        };
        let terms = self.allowed_topologies.iter().map(|term| NodeSelectorTerm {
            match_expressions: term.match_label_expressions.iter().map(requirement).collect(),
            match_fields: Box::default(),
        });
        let node_selector_terms: Box<[_]> = terms.filter(|term| !term.is_empty()).collect();
        (!node_selector_terms.is_empty()).then_some(NodeSelector { node_selector_terms })
    }
}

/// A CSIDriver, which has the driver's name.
pub type CsiDriver = Resource<CsiDriverSpec>;

/// The properties of a CSI driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CsiDriverSpec {
    /// Whether the attach-detach controller attaches its volumes; see [`CsiDriver::is_attached`].
    #[serde(skip_serializing_if = "is_default")]
    pub attach_required: Option<bool>,
    /// Whether its volumes may be mounted with an SELinux label (`-o context`), which all
    /// their pods on a node then share.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub se_linux_mount: bool,
    /// Whether the scheduler keeps pods with its volumes off nodes that lack the driver
    /// (`VolumeLimitScaling`).
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub prevent_pod_scheduling_if_missing: bool,
}

impl CsiDriver {
    /// Whether the attach-detach controller attaches the driver's volumes, as it does by default
    /// (Kubernetes API, `CSIDriverSpec.attachRequired`).
    pub fn is_attached(&self) -> bool {
        self.spec.attach_required.unwrap_or(true)
    }
}

/// The CSINode of a node, which has the node's name.
pub type CsiNode = Resource<CsiNodeSpec>;

/// The drivers of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CsiNodeSpec {
    /// The drivers that have registered with its kubelet.
    #[serde(deserialize_with = "nullable")]
    pub drivers: Box<[Named]>,
}

impl CsiNode {
    /// Whether the node has the driver.
    pub(crate) fn has(&self, driver: &str) -> bool {
        self.spec.drivers.iter().any(|installed| installed.name == driver)
    }
}
