//! Storage classes and CSI drivers.

use serde::Deserialize;
use serde::de::Deserializer;

use super::Text;
use super::de::nullable;
use super::labels::Labels;
use super::metadata::{DEFAULT_CLASS, DEFAULT_CLASS_BETA, Metadata, relevant_annotations};
use super::node::{NodeSelector, NodeSelectorTerm};
use super::selector::{Operator, Requirement};

/// The provisioner of classes whose volumes are all made by hand (Kubernetes
/// documentation, "Storage Classes", "Local").
pub const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// A storage class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageClass {
    /// The class's name.
    pub name: Text,
    /// The project's own annotations on it.
    pub annotations: Labels,
    /// Who makes the volumes.
    pub provisioner: Text,
    /// What the provisioner is told.
    pub parameters: Labels,
    /// Whether claims that name no class get this one.
    pub is_default: bool,
    /// When the class was made, as RFC 3339 in UTC with whole seconds, as the API
    /// server writes it, so that texts compare like times; empty where unknown.
    /// Of several default classes the newest counts (`GetDefaultClass` in the
    /// Kubernetes source).
    pub created: Text,
    /// The nodes the class's volumes are limited to (`allowedTopologies`); `None`: no limit.
    pub allowed_nodes: Option<NodeSelector>,
}

impl<'de> Deserialize<'de> for StorageClass {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            #[serde(default, deserialize_with = "nullable")]
            metadata: ClassMetadata,
            #[serde(default, deserialize_with = "nullable")]
            provisioner: Text,
            #[serde(default, deserialize_with = "nullable")]
            parameters: Labels,
            #[serde(default, deserialize_with = "nullable")]
            allowed_topologies: Vec<Topology>,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct ClassMetadata {
            #[serde(deserialize_with = "nullable")]
            name: Text,
            #[serde(deserialize_with = "relevant_annotations")]
            annotations: Labels,
            #[serde(deserialize_with = "nullable")]
            creation_timestamp: Text,
        }

        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Topology {
            #[serde(default, deserialize_with = "nullable")]
            match_label_expressions: Vec<TopologyRequirement>,
        }

        #[derive(Deserialize)]
        struct TopologyRequirement {
            key: Text,
            #[serde(default, deserialize_with = "nullable")]
            values: Box<[Text]>,
        }

        let wire = Wire::deserialize(deserializer)?;
        let terms: Box<[NodeSelectorTerm]> = wire
            .allowed_topologies
            .into_iter()
            .filter(|topology| !topology.match_label_expressions.is_empty())
            .map(|topology| NodeSelectorTerm {
                match_expressions: topology
                    .match_label_expressions
                    .into_iter()
                    .map(|requirement| Requirement {
                        key: requirement.key,
                        operator: Operator::In,
                        values: requirement.values,
                    })
                    .collect(),
                match_fields: Box::default(),
            })
            .collect();
        let yes = |key| wire.metadata.annotations.get(key) == Some("true");
        Ok(Self {
            is_default: yes(DEFAULT_CLASS) || yes(DEFAULT_CLASS_BETA),
            name: wire.metadata.name,
            created: wire.metadata.creation_timestamp,
            annotations: wire.metadata.annotations,
            provisioner: wire.provisioner,
            parameters: wire.parameters,
            allowed_nodes: (!terms.is_empty()).then_some(NodeSelector {
                node_selector_terms: terms,
            }),
        })
    }
}

/// What a cluster says of a CSI driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsiDriver {
    /// The driver's name.
    pub name: Text,
    /// Whether the attach-detach controller acts for it; absence means it does
    /// (Kubernetes API, `CSIDriverSpec.attachRequired`).
    pub attach_required: bool,
}

impl<'de> Deserialize<'de> for CsiDriver {
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
            attach_required: Option<bool>,
        }

        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            name: wire.metadata.name,
            attach_required: wire.spec.attach_required.unwrap_or(true),
        })
    }
}
