//! What a pod template says about nodes and volumes. Of containers, only what
//! decides where a pod can be is read: host ports and extended resources.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Text;
use super::amount::Amount;
use super::claim::Claim;
use super::de::{name, nullable};
use super::in_tree::InTreeType;
use super::labels::Labels;
use super::node::{ExtendedResources, NodeSelector, Toleration};
use super::selector::LabelSelector;

/// The label that holds a node's host name.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// A pod template, reduced to what decides where its pods can be and which
/// volumes they use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodTemplate {
    /// The labels every pod gets.
    pub labels: Labels,
    /// The node the pods are bound to, where one is named.
    pub node_name: Option<Text>,
    /// Labels a node must have.
    pub node_selector: Labels,
    /// The required node affinity.
    pub node_affinity: Option<NodeSelector>,
    /// The required pod affinity.
    pub affinity: Box<[PodAffinityTerm]>,
    /// The required pod anti-affinity.
    pub anti_affinity: Box<[PodAffinityTerm]>,
    /// The taints the pods tolerate.
    pub tolerations: Box<[Toleration]>,
    /// The topology spread constraints, hard and soft.
    pub spread: Box<[TopologySpread]>,
    /// The volumes that may be attached to a node; the others are not kept.
    pub volumes: Box<[PodVolume]>,
    /// The claims that are made anew for each pod (generic ephemeral volumes).
    pub ephemeral: Box<[EphemeralClaim]>,
    /// The resources that only some nodes have (a GPU for example) and the pods
    /// ask for, in order.
    pub extended_resources: Box<[Text]>,
    /// Whether the pods take a port of their node, which then no other of them can have.
    pub takes_host_port: bool,
    /// Whether the pods run to an end (`restartPolicy` Never or OnFailure).
    pub ends: bool,
}

/// One required term of pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodAffinityTerm {
    /// The pods it speaks of; `None` matches no pod, an empty selector every pod.
    #[serde(default)]
    pub label_selector: Option<LabelSelector>,
    /// The node label whose equal values make one place.
    #[serde(default, deserialize_with = "nullable")]
    pub topology_key: Text,
    /// The namespaces it looks in, by name.
    #[serde(default, deserialize_with = "nullable")]
    pub namespaces: Box<[Text]>,
    /// The namespaces it looks in, by label; `None` adds none, an empty selector all.
    #[serde(default)]
    pub namespace_selector: Option<LabelSelector>,
    /// Keys whose values on the incoming pod narrow the selector.
    #[serde(default, deserialize_with = "nullable")]
    pub match_label_keys: Box<[Text]>,
    /// Keys whose values on the incoming pod must differ.
    #[serde(default, deserialize_with = "nullable")]
    pub mismatch_label_keys: Box<[Text]>,
}

impl PodAffinityTerm {
    /// Whether the term looks only at the pod's own namespace, as it does
    /// where it names none.
    #[must_use]
    pub(crate) fn own_namespace_only(&self) -> bool {
        self.namespaces.is_empty() && self.namespace_selector.is_none()
    }
}

/// One topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpread {
    /// How much fuller than the emptiest place a place may be, in pods.
    #[serde(default = "one")]
    pub max_skew: i64,
    /// The node label whose equal values make one place.
    #[serde(default, deserialize_with = "nullable")]
    pub topology_key: Text,
    /// `true` for `DoNotSchedule`, which is what absence means too.
    #[serde(
        default = "hard",
        rename = "whenUnsatisfiable",
        deserialize_with = "do_not_schedule"
    )]
    pub hard: bool,
    /// With fewer places than this, the emptiest counts as one without pods.
    #[serde(default)]
    pub min_domains: Option<i64>,
    /// The pods that are counted; `None` counts none.
    #[serde(default)]
    pub label_selector: Option<LabelSelector>,
    /// Keys whose values on the incoming pod narrow the selector.
    #[serde(default, deserialize_with = "nullable")]
    pub match_label_keys: Box<[Text]>,
    /// Whether nodes count that the pod's selector and affinity do not choose:
    /// `true` for `Ignore`; absence means `Honor`.
    #[serde(default, rename = "nodeAffinityPolicy", deserialize_with = "ignored")]
    pub ignores_affinity: bool,
    /// Whether nodes count whose taints the pod does not tolerate: `true` for
    /// `Ignore`, which is what absence means too.
    #[serde(
        default = "ignores",
        rename = "nodeTaintsPolicy",
        deserialize_with = "not_honoured"
    )]
    pub ignores_taints: bool,
}

const fn one() -> i64 {
    1
}

const fn hard() -> bool {
    true
}

const fn ignores() -> bool {
    true
}

fn ignored<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<Text>::deserialize(deserializer)?.as_deref() == Some("Ignore"))
}

fn not_honoured<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<Text>::deserialize(deserializer)?.as_deref() != Some("Honor"))
}

fn do_not_schedule<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<Text>::deserialize(deserializer)?.as_deref() != Some("ScheduleAnyway"))
}

/// One volume of a pod template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodVolume {
    /// Its place in `spec.volumes`.
    pub index: usize,
    /// Its name in the pod.
    pub name: Text,
    /// Where it comes from.
    pub source: PodVolumeSource,
}

/// A claim that each pod gets and takes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EphemeralClaim {
    /// The place of its volume in `spec.volumes`.
    pub index: usize,
    /// The claim, with the volume's name in the pod for a name.
    pub claim: Claim,
}

/// Where a pod's volume comes from. Only sources that can hold a node are kept:
/// generic ephemeral volumes, `emptyDir`, config maps and the like are made
/// anew for each pod and are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodVolumeSource {
    /// A claim in the pod's own namespace.
    Claim {
        /// The claim's name.
        name: Text,
    },
    /// A volume of an in-tree type, written into the pod itself.
    Inline {
        /// The type.
        in_tree: &'static InTreeType,
        /// Whether the source asks for a read-only volume.
        read_only: bool,
    },
}

impl<'de> Deserialize<'de> for PodTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Template {
            #[serde(deserialize_with = "nullable")]
            metadata: TemplateMetadata,
            #[serde(deserialize_with = "nullable")]
            spec: PodSpec,
        }

        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct TemplateMetadata {
            #[serde(deserialize_with = "nullable")]
            labels: Labels,
        }

        let template = Option::<Template>::deserialize(deserializer)?.unwrap_or_default();
        Ok(template.spec.with_labels(template.metadata.labels))
    }
}

/// A pod's specification as it stands in the template or in a pod of its own.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodSpec {
    node_name: Option<Text>,
    #[serde(deserialize_with = "nullable")]
    node_selector: Labels,
    #[serde(deserialize_with = "nullable")]
    affinity: Affinity,
    #[serde(deserialize_with = "nullable")]
    tolerations: Box<[Toleration]>,
    #[serde(deserialize_with = "nullable")]
    topology_spread_constraints: Box<[TopologySpread]>,
    #[serde(deserialize_with = "nullable")]
    volumes: Volumes,
    #[serde(deserialize_with = "nullable")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    init_containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    host_network: bool,
    restart_policy: Option<Text>,
}

/// What is read of a container.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    #[serde(deserialize_with = "nullable")]
    ports: Vec<Port>,
    #[serde(deserialize_with = "nullable")]
    resources: Resources,
    /// `Always` for an init container that keeps running beside the others.
    restart_policy: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Port {
    host_port: Option<Amount>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources {
    #[serde(deserialize_with = "nullable")]
    limits: ExtendedResources,
    #[serde(deserialize_with = "nullable")]
    requests: ExtendedResources,
}

impl PodSpec {
    fn takes_host_port(&self) -> bool {
        let always = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
        self.containers
            .iter()
            .chain(self.init_containers.iter().filter(always))
            .flat_map(|container| &container.ports)
            // With the node's own network, every port of a container is one of the node.
            .any(|port| {
                self.host_network
                    || matches!(port.host_port, Some(Amount::Count(number)) if number != 0)
            })
    }

    fn extended_resources(&self) -> Box<[Text]> {
        let mut names: Vec<Text> = self
            .containers
            .iter()
            .chain(&self.init_containers)
            .flat_map(|container| [&container.resources.limits, &container.resources.requests])
            .flat_map(|resources| resources.0.iter().cloned())
            .collect();
        names.sort_unstable();
        names.dedup();
        names.into_boxed_slice()
    }
}

impl PodSpec {
    /// The template these fields and `labels` make.
    pub(super) fn with_labels(self, labels: Labels) -> PodTemplate {
        PodTemplate {
            extended_resources: self.extended_resources(),
            takes_host_port: self.takes_host_port(),
            ends: matches!(self.restart_policy.as_deref(), Some("Never" | "OnFailure")),
            labels,
            node_name: self.node_name.filter(|name| !name.is_empty()),
            node_selector: self.node_selector,
            node_affinity: self.affinity.node_affinity.required,
            affinity: self.affinity.pod_affinity.required,
            anti_affinity: self.affinity.pod_anti_affinity.required,
            tolerations: self.tolerations,
            spread: self.topology_spread_constraints,
            volumes: self.volumes.kept.into_boxed_slice(),
            ephemeral: self.volumes.ephemeral.into_boxed_slice(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Affinity {
    #[serde(deserialize_with = "nullable")]
    node_affinity: RequiredNodes,
    #[serde(deserialize_with = "nullable")]
    pod_affinity: RequiredPods,
    #[serde(deserialize_with = "nullable")]
    pod_anti_affinity: RequiredPods,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RequiredNodes {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<NodeSelector>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RequiredPods {
    #[serde(
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "nullable"
    )]
    required: Box<[PodAffinityTerm]>,
}

#[derive(Default)]
struct Volumes {
    kept: Vec<PodVolume>,
    ephemeral: Vec<EphemeralClaim>,
}

impl<'de> Deserialize<'de> for Volumes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Volumes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of volumes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Volumes, A::Error> {
                let mut volumes = Volumes::default();
                let mut index = 0;
                while let Some(entry) = seq.next_element::<VolumeEntry>()? {
                    if let Some(mut claim) = entry.ephemeral {
                        claim.metadata.name.clone_from(&entry.name);
                        volumes.ephemeral.push(EphemeralClaim {
                            index,
                            claim: *claim,
                        });
                    }
                    if let Some(source) = entry.source {
                        volumes.kept.push(PodVolume {
                            index,
                            name: entry.name,
                            source,
                        });
                    }
                    index += 1;
                }
                Ok(volumes)
            }
        }

        deserializer.deserialize_seq(List)
    }
}

#[derive(Default)]
struct VolumeEntry {
    name: Text,
    source: Option<PodVolumeSource>,
    /// Boxed, as few have one, and each entry counts with its size.
    ephemeral: Option<Box<Claim>>,
}

impl<'de> Deserialize<'de> for VolumeEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry;

        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ClaimSource {
            #[serde(default, deserialize_with = "name")]
            claim_name: Text,
        }

        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Ephemeral {
            volume_claim_template: Option<Claim>,
        }

        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InlineSource {
            #[serde(default, deserialize_with = "nullable")]
            read_only: bool,
        }

        impl<'de> Visitor<'de> for Entry {
            type Value = VolumeEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a volume")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<VolumeEntry, A::Error> {
                let mut entry = VolumeEntry::default();
                while let Some(key) = map.next_key::<Text>()? {
                    if key == "name" {
                        entry.name = map.next_value()?;
                    } else if key == "persistentVolumeClaim" {
                        if let Some(claim) = map.next_value::<Option<ClaimSource>>()? {
                            entry.source = Some(PodVolumeSource::Claim {
                                name: claim.claim_name,
                            });
                        }
                    } else if key == "ephemeral" {
                        let ephemeral: Option<Ephemeral> = map.next_value()?;
                        entry.ephemeral = ephemeral
                            .and_then(|it| it.volume_claim_template)
                            .map(Box::new);
                    } else if let Some(in_tree) =
                        InTreeType::of_field(&key).filter(|it| it.counts_in_pods())
                    {
                        if let Some(inline) = map.next_value::<Option<InlineSource>>()? {
                            entry.source = Some(PodVolumeSource::Inline {
                                in_tree,
                                read_only: inline.read_only,
                            });
                        }
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(entry)
            }
        }

        deserializer.deserialize_map(Entry)
    }
}
