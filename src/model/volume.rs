//! Persistent volumes.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::Text;
use super::access_mode::{AccessModes, VolumeMode};
use super::de::nullable;
use super::in_tree::InTreeType;
use super::labels::Labels;
use super::metadata::Metadata;
use super::node::NodeSelector;
use super::quantity::Quantity;

/// A persistent volume, reduced to what decides who may use it and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The volume's name.
    pub name: Text,
    /// All labels, for claims that select by them.
    pub labels: Labels,
    /// The access modes; these alone decide whether two nodes may have it
    /// (`IsMultiAttachAllowed` in the Kubernetes source).
    pub access_modes: AccessModes,
    /// File system or raw block device.
    pub volume_mode: VolumeMode,
    /// The size.
    pub capacity: Quantity,
    /// The class, empty for none.
    pub class: Text,
    /// What the volume is made of.
    pub source: VolumeSource,
    /// The nodes from which the volume can be reached, where that is said.
    pub node_affinity: Option<NodeSelector>,
    /// Namespace and name of the claim it belongs to.
    pub claim: Option<(Text, Text)>,
}

/// What a persistent volume is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeSource {
    /// A volume of the named CSI driver.
    Csi(Text),
    /// A volume of an in-tree type.
    InTree(&'static InTreeType),
    /// A type unknown here.
    Unknown,
}

impl<'de> Deserialize<'de> for Volume {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default, deserialize_with = "nullable")]
            metadata: Metadata,
            #[serde(default, deserialize_with = "nullable")]
            spec: Spec,
        }

        let Wire { metadata, spec } = Wire::deserialize(deserializer)?;
        Ok(Self {
            name: metadata.name,
            labels: metadata.labels,
            access_modes: spec.access_modes,
            volume_mode: spec.volume_mode,
            capacity: spec.capacity,
            class: spec.class,
            source: spec.source.unwrap_or(VolumeSource::Unknown),
            node_affinity: spec.node_affinity,
            claim: spec.claim,
        })
    }
}

#[derive(Default)]
struct Spec {
    access_modes: AccessModes,
    volume_mode: VolumeMode,
    capacity: Quantity,
    class: Text,
    source: Option<VolumeSource>,
    node_affinity: Option<NodeSelector>,
    claim: Option<(Text, Text)>,
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Capacity {
            #[serde(deserialize_with = "nullable")]
            storage: Quantity,
        }

        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Affinity {
            required: Option<NodeSelector>,
        }

        #[derive(Deserialize)]
        struct ClaimRef {
            #[serde(default)]
            namespace: Text,
            #[serde(default)]
            name: Text,
        }

        #[derive(Deserialize)]
        struct Csi {
            #[serde(default)]
            driver: Text,
        }

        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Spec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a persistent volume's spec")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Spec, A::Error> {
                let mut spec = Spec::default();
                while let Some(key) = map.next_key::<Text>()? {
                    match key.as_str() {
                        "accessModes" => spec.access_modes = map.next_value()?,
                        "volumeMode" => spec.volume_mode = map.next_value()?,
                        "capacity" => {
                            spec.capacity = map
                                .next_value::<Option<Capacity>>()?
                                .unwrap_or_default()
                                .storage;
                        }
                        "storageClassName" => {
                            spec.class = map.next_value::<Option<Text>>()?.unwrap_or_default();
                        }
                        "nodeAffinity" => {
                            spec.node_affinity = map
                                .next_value::<Option<Affinity>>()?
                                .unwrap_or_default()
                                .required;
                        }
                        "claimRef" => {
                            spec.claim = map
                                .next_value::<Option<ClaimRef>>()?
                                .map(|claim| (claim.namespace, claim.name));
                        }
                        "csi" => {
                            spec.source = map
                                .next_value::<Option<Csi>>()?
                                .map(|csi| VolumeSource::Csi(csi.driver))
                                .or(spec.source);
                        }
                        other => {
                            let there = map.next_value::<Option<IgnoredAny>>()?.is_some();
                            if let (Some(in_tree), true) = (InTreeType::of_field(other), there) {
                                spec.source = Some(VolumeSource::InTree(in_tree));
                            }
                        }
                    }
                }
                Ok(spec)
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_is_found_by_its_field() {
        let read = |text: &str| serde_json::from_str::<Volume>(text).unwrap();
        let csi = read(
            r#"{"metadata":{"name":"pv"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},
               "csi":{"driver":"ebs.csi.aws.com","volumeHandle":"v"},"claimRef":{"namespace":"a","name":"b"}}}"#,
        );
        assert_eq!(csi.source, VolumeSource::Csi("ebs.csi.aws.com".into()));
        assert_eq!(csi.claim, Some(("a".into(), "b".into())));
        let local = read(r#"{"spec":{"local":{"path":"/x"},"nfs":null}}"#);
        let expected = InTreeType::of_field("local").unwrap();
        assert_eq!(local.source, VolumeSource::InTree(expected));
        assert_eq!(read(r#"{"spec":{}}"#).source, VolumeSource::Unknown);
    }
}
