//! Pod templates: the fields that decide on which nodes pods can run and which volumes they use.

use std::fmt;

use hashbrown::HashSet;
use serde::Deserialize;
use serde::de::Deserializer;

use super::Text;
use super::claim::Claim;
use super::container::{ContainerList, Security, extended_resources, host_ports, mark};
use super::de::{for_each, name, nullable};
use super::in_tree::InTreeType;
use super::labels::Labels;
use super::node::{NodeSelector, Toleration};
use super::quantity::Quantity;
use super::selector::LabelSelector;

/// The label with a node's host name.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// A pod template, reduced to the fields that decide on which nodes its pods can run and which
/// volumes they use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodTemplate {
    /// The labels of the pods.
    pub labels: Labels,
    /// The node that the template names, if it does.
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
    /// The volumes that can be attached to a node; others are not kept. Those that a claim template
    /// of a StatefulSet replaces are not kept either.
    pub volumes: Box<[PodVolume]>,
    /// The volumes that a StatefulSet's claim templates add, each with the template's number and
    /// name.
    pub own_volumes: Box<[PodVolume]>,
    /// The claims that are created for each pod (generic ephemeral volumes).
    pub ephemeral: Box<[EphemeralClaim]>,
    /// The resources that each pod requests and only some nodes have, a GPU for example, sorted.
    pub extended_resources: Box<[(Text, Quantity)]>,
    /// The RuntimeClass, which can select nodes and tolerate taints; empty if there is none.
    pub runtime_class: Text,
    /// The ports of their node that the pods use, so that no two of them can share a node.
    pub host_ports: Box<[HostPort]>,
    /// Whether the pods run to completion (`restartPolicy` Never or OnFailure).
    pub ends: bool,
}

impl PodTemplate {
    /// The names of the claims that the pods use, except those of generic ephemeral volumes.
    pub fn claims(&self) -> impl Iterator<Item = &Text> {
        self.volumes.iter().filter_map(|volume| match &volume.source {
            PodVolumeSource::Claim { name } => Some(name),
            PodVolumeSource::Inline { .. } => None,
        })
    }
}

/// A port of a node that a pod uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// Its number.
    pub number: i64,
    /// Its protocol; empty for TCP.
    pub protocol: Text,
    /// The address of the node; empty for all its addresses.
    pub ip: Text,
}

impl HostPort {
    /// Whether no two pods can have these ports on one node (`CheckConflict` in
    /// `staging/src/k8s.io/kube-scheduler/framework/types.go`).
    pub(crate) fn clashes_with(&self, other: &Self) -> bool {
        let is_any = |ip: &Text| matches!(ip.as_str(), "" | "0.0.0.0");
        self.number == other.number
            && self.protocol() == other.protocol()
            && (self.ip == other.ip || is_any(&self.ip) || is_any(&other.ip))
    }

    fn protocol(&self) -> &str {
        match self.protocol.as_str() {
            "" => "TCP",
            other => other,
        }
    }
}

/// `80/TCP`.
impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.protocol())
    }
}

/// One required term of pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodAffinityTerm {
    /// The pods that it selects; `None` selects no pod, an empty selector every pod.
    pub label_selector: Option<LabelSelector>,
    /// The node label whose values are the topology domains.
    #[serde(default, deserialize_with = "nullable")]
    pub topology_key: Text,
    /// The namespaces of those pods, by name.
    #[serde(default, deserialize_with = "nullable")]
    pub namespaces: Box<[Text]>,
    /// The namespaces of those pods, by label; `None` adds none, an empty selector all.
    pub namespace_selector: Option<LabelSelector>,
    /// Keys whose values on the incoming pod narrow the selector.
    #[serde(default, deserialize_with = "nullable")]
    pub match_label_keys: Box<[Text]>,
    /// Keys whose values on the incoming pod must differ.
    #[serde(default, deserialize_with = "nullable")]
    pub mismatch_label_keys: Box<[Text]>,
}

impl PodAffinityTerm {
    /// Whether the term selects pods only in the pod's own namespace, as it names no other.
    pub(crate) fn own_namespace_only(&self) -> bool {
        self.namespaces.is_empty() && self.namespace_selector.is_none()
    }
}

/// One topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpread {
    /// The number of pods by which a domain may exceed the emptiest domain.
    #[serde(default = "one")]
    pub max_skew: i64,
    /// The node label whose values are the topology domains.
    #[serde(default, deserialize_with = "nullable")]
    pub topology_key: Text,
    /// Whether it is only a preference: `true` for `ScheduleAnyway`; the default is
    /// `DoNotSchedule`.
    #[serde(default, rename = "whenUnsatisfiable", deserialize_with = "soft")]
    pub is_soft: bool,
    /// The minimum number of domains. If there are fewer, the emptiest one counts as empty.
    pub min_domains: Option<i64>,
    /// The pods that are counted; `None` counts none.
    pub label_selector: Option<LabelSelector>,
    /// Keys whose values on the incoming pod narrow the selector.
    #[serde(default, deserialize_with = "nullable")]
    pub match_label_keys: Box<[Text]>,
    /// Whether nodes that the pod's selector and affinity exclude are counted: `true` for `Ignore`;
    /// the default is `Honor`.
    #[serde(default, rename = "nodeAffinityPolicy", deserialize_with = "ignored")]
    pub ignores_affinity: bool,
    /// Whether nodes with taints that the pod does not tolerate are left out: `true` for `Honor`;
    /// the default is `Ignore`.
    #[serde(default, rename = "nodeTaintsPolicy", deserialize_with = "honoured")]
    pub honours_taints: bool,
}

const fn one() -> i64 {
    1
}

fn ignored<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<Text>::deserialize(deserializer)?.as_deref() == Some("Ignore"))
}

fn honoured<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<Text>::deserialize(deserializer)?.as_deref() == Some("Honor"))
}

fn soft<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<Text>::deserialize(deserializer)?.as_deref() == Some("ScheduleAnyway"))
}

/// One volume of a pod template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodVolume {
    /// Its index in `spec.volumes`.
    pub index: usize,
    /// Its name in the pod.
    pub name: Text,
    /// Its source.
    pub source: PodVolumeSource,
    /// Whether a container mounts or maps it. The kubelet neither waits for nor mounts other
    /// volumes (`desired_state_of_world_populator.go`).
    pub mounted: bool,
    /// The SELinux label with which it is mounted, if the driver supports that: `None` if it is
    /// unknown or containers differ, empty if its files are relabelled one by one
    /// (`seLinuxChangePolicy: Recursive`). See `GetMountSELinuxLabel` in Kubernetes'
    /// `pkg/volume/util/selinux.go`.
    pub selinux_label: Option<Text>,
}

impl PodVolume {
    /// A volume of whose mounts nothing is known.
    const fn unmarked(index: usize, name: Text, source: PodVolumeSource) -> Self {
        Self { index, name, source, mounted: true, selinux_label: None }
    }
}

/// A claim that is created and deleted with each pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EphemeralClaim {
    /// The index of its volume in `spec.volumes`.
    pub index: usize,
    /// The claim, with the volume's name in the pod as its name.
    pub claim: Claim,
}

/// The source of a pod's volume. Only sources that can tie a pod to a node are kept: generic
/// ephemeral volumes, `emptyDir`, config maps and the like are created for each pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
        /// Whether the volume is read-only.
        read_only: bool,
    },
}

/// A pod template as it is written.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WrittenTemplate {
    #[serde(deserialize_with = "nullable")]
    pub(super) metadata: TemplateMetadata,
    #[serde(deserialize_with = "nullable")]
    pub(super) spec: PodSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct TemplateMetadata {
    #[serde(deserialize_with = "nullable")]
    pub(super) labels: Labels,
}

/// The spec of a pod or of a pod template.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodSpec {
    node_name: Option<Text>,
    #[serde(deserialize_with = "nullable")]
    node_selector: Labels,
    #[serde(deserialize_with = "nullable")]
    affinity: Affinity,
    #[serde(deserialize_with = "distinct")]
    tolerations: Box<[Toleration]>,
    #[serde(deserialize_with = "nullable")]
    topology_spread_constraints: Box<[TopologySpread]>,
    #[serde(deserialize_with = "nullable")]
    volumes: Volumes,
    containers: ContainerList,
    init_containers: ContainerList,
    ephemeral_containers: ContainerList,
    #[serde(deserialize_with = "nullable")]
    host_network: bool,
    restart_policy: Option<Text>,
    #[serde(deserialize_with = "nullable")]
    runtime_class_name: Text,
    #[serde(deserialize_with = "nullable")]
    security_context: Security,
}

/// The most tolerations that are kept. Nobody needs as many.
const MAX_TOLERATIONS: usize = 1024;

/// Reads tolerations, without repetitions. A pod with more than [`MAX_TOLERATIONS`] counts as one
/// that tolerates every taint.
fn distinct<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[Toleration]>, D::Error> {
    let mut known = HashSet::new();
    let mut distinct = Vec::new();
    for_each(deserializer, "a list", |toleration: Toleration| {
        if known.len() <= MAX_TOLERATIONS && known.insert(toleration.clone()) {
            distinct.push(toleration);
        }
    })?;
    if distinct.len() > MAX_TOLERATIONS {
        distinct = vec![Toleration { operator: "Exists".into(), ..Toleration::default() }];
    }
    Ok(distinct.into())
}

impl PodSpec {
    /// The template of pods with these fields and `labels`, which get a volume from each of the
    /// `claims`, in place of one of that name (`updateStorage` in the StatefulSet controller's
    /// `stateful_set_utils.go`).
    pub(super) fn template(self, labels: Labels, claims: &[Claim]) -> PodTemplate {
        let replaced: HashSet<&Text> = claims.iter().map(|claim| &claim.metadata.name).collect();
        let mut volumes = self.volumes.judged;
        volumes.retain(|volume| !replaced.contains(&volume.name));
        let declared = volumes.len();
        volumes.extend(claims.iter().enumerate().map(|(index, claim)| {
            let name = claim.metadata.name.clone();
            PodVolume::unmarked(index, name.clone(), PodVolumeSource::Claim { name })
        }));
        let (main, init) = (&self.containers, &self.init_containers);
        mark(&mut volumes, [main, init, &self.ephemeral_containers], &self.security_context);
        PodTemplate {
            extended_resources: extended_resources(main, init),
            host_ports: host_ports(main, init, self.host_network),
            runtime_class: self.runtime_class_name,
            ends: matches!(self.restart_policy.as_deref(), Some("Never" | "OnFailure")),
            labels,
            node_name: self.node_name.filter(|name| !name.is_empty()),
            node_selector: self.node_selector,
            node_affinity: self.affinity.node_affinity.required,
            affinity: self.affinity.pod_affinity.required,
            anti_affinity: self.affinity.pod_anti_affinity.required,
            tolerations: self.tolerations,
            spread: self.topology_spread_constraints,
            own_volumes: volumes.split_off(declared).into_boxed_slice(),
            volumes: volumes.into_boxed_slice(),
            ephemeral: self.volumes.ephemeral.into_boxed_slice(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Affinity {
    #[serde(deserialize_with = "nullable")]
    node_affinity: Required<Option<NodeSelector>>,
    #[serde(deserialize_with = "nullable")]
    pod_affinity: Required<Box<[PodAffinityTerm]>>,
    #[serde(deserialize_with = "nullable")]
    pod_anti_affinity: Required<Box<[PodAffinityTerm]>>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound = "T: Default + Deserialize<'de>")]
pub(super) struct Required<T> {
    #[serde(
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "nullable"
    )]
    pub(super) required: T,
}

#[derive(Default)]
struct Volumes {
    judged: Vec<PodVolume>,
    ephemeral: Vec<EphemeralClaim>,
}

impl<'de> Deserialize<'de> for Volumes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut volumes = Self::default();
        let mut index = 0;
        for_each(deserializer, "a list", |entry: VolumeEntry| {
            volumes.push(index, entry);
            index += 1;
        })?;
        Ok(volumes)
    }
}

impl Volumes {
    fn push(&mut self, index: usize, mut entry: VolumeEntry) {
        if let Some(mut claim) =
            entry.ephemeral.take().and_then(|ephemeral| ephemeral.volume_claim_template)
        {
            claim.metadata.name.clone_from(&entry.name);
            let claim = *claim;
            self.ephemeral.push(EphemeralClaim { index, claim });
        }
        if let Some(source) = entry.source() {
            self.judged.push(PodVolume::unmarked(index, entry.name, source));
        }
    }
}

/// A volume as it is written: its name and one of the sources.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "a volume")]
struct VolumeEntry {
    name: Text,
    persistent_volume_claim: Option<ClaimSource>,
    ephemeral: Option<EphemeralSource>,
    // The in-tree types for which an inline volume may be refused.
    aws_elastic_block_store: Option<InlineSource>,
    azure_disk: Option<InlineSource>,
    cinder: Option<InlineSource>,
    gce_persistent_disk: Option<InlineSource>,
    iscsi: Option<InlineSource>,
    portworx_volume: Option<InlineSource>,
    rbd: Option<InlineSource>,
    vsphere_volume: Option<InlineSource>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaimSource {
    #[serde(deserialize_with = "name")]
    claim_name: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EphemeralSource {
    /// Boxed, because a claim is large and few volumes have one.
    volume_claim_template: Option<Box<Claim>>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct InlineSource {
    #[serde(deserialize_with = "nullable")]
    read_only: bool,
}

impl VolumeEntry {
    fn source(&self) -> Option<PodVolumeSource> {
        if let Some(claim) = &self.persistent_volume_claim {
            let name = claim.claim_name.clone();
            return Some(PodVolumeSource::Claim { name });
        }
        let inline = [
            ("awsElasticBlockStore", self.aws_elastic_block_store),
            ("azureDisk", self.azure_disk),
            ("cinder", self.cinder),
            ("gcePersistentDisk", self.gce_persistent_disk),
            ("iscsi", self.iscsi),
            ("portworxVolume", self.portworx_volume),
            ("rbd", self.rbd),
            ("vsphereVolume", self.vsphere_volume),
        ];
        inline.into_iter().find_map(|(field, source)| {
            Some(PodVolumeSource::Inline {
                read_only: source?.read_only,
                in_tree: InTreeType::of_field(field)?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::in_tree::Inline;

    #[test]
    fn every_in_tree_type_that_counts_in_pods_is_read() {
        for in_tree in InTreeType::all() {
            let text = format!(r#"[{{"name":"v","{}":{{"readOnly":true}}}}]"#, in_tree.field);
            let volumes: Volumes = serde_json::from_str(&text).unwrap();
            let source = volumes.judged.into_iter().next().map(|volume| volume.source);
            let expected = PodVolumeSource::Inline { in_tree, read_only: true };
            assert_eq!(
                source,
                (in_tree.inline(false) != Inline::FREE).then_some(expected),
                "{text}"
            );
        }
    }
}
