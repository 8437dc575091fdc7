//! Nodes, node selectors, taints and tolerations.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::Text;
use super::condition::Condition;
use super::de::{Named, nullable};
use super::labels::Labels;
use super::metadata::Metadata;
use super::quantity::Quantity;
use super::resource::Resource;
use super::selector::Requirement;
use super::ser::is_default;

/// A node: its labels, lasting taints and condition.
pub type Node = Resource<NodeSpec, NodeStatus>;

/// The taints of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "NodeStateSpec")]
pub struct NodeSpec {
    /// Lasting taints that keep pods off.
    #[serde(skip_serializing_if = "is_default")]
    pub taints: Box<[Taint]>,
    /// Whether the node has the taint [`OUT_OF_SERVICE`].
    #[serde(skip)]
    pub out_of_service: bool,
}

/// The resources and the condition of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStatus {
    /// The resources that pods can request; `None` if unknown.
    #[serde(skip_serializing_if = "is_default")]
    pub allocatable: Option<ExtendedResources>,
    /// The condition `Ready`: `None` if it is missing or `Unknown`, as when the kubelet has not
    /// reported for a while.
    #[serde(rename = "conditions", deserialize_with = "readiness", skip_serializing)]
    pub ready: Option<bool>,
    /// The volumes that the attach-detach controller has attached to it, by the controller's
    /// names: `kubernetes.io/csi/DRIVER^HANDLE`.
    #[serde(deserialize_with = "nullable", skip_serializing)]
    pub volumes_attached: Box<[Named]>,
}

/// The taint that declares a machine to be off: the volumes of its pods are then detached at once,
/// whether or not they are mounted (`TaintNodeOutOfService` in `k8s.io/api/core/v1`).
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The prefix of the names of CSI volumes in a Node's status (`GetUniqueVolumeName` in
/// `pkg/volume/util`).
pub(crate) const CSI: &str = "kubernetes.io/csi/";

/// The taints that are temporary, or disappear with their node:
///
/// * cordons, health, pressure (`staging/src/k8s.io/api/core/v1/well_known_taints.go`),
/// * a node that its cloud has not initialized yet, or has stopped
///   (`staging/src/k8s.io/cloud-provider/api/well_known_taints.go`),
/// * a node that an autoscaler has just created, or drains
///   (`cluster-autoscaler/utils/taints` of kubernetes/autoscaler, `pkg/apis/v1/taints.go` of
///   kubernetes-sigs/karpenter, which had another name until its v1). Pods move at that time,
/// * a node that Cluster API or the CNI agent of Istio has not made ready yet, or that
///   Google's cloud takes away.
const TEMPORARY_TAINTS: [&str; 17] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
    OUT_OF_SERVICE,
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/unregistered",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "node.cluster.x-k8s.io/uninitialized",
    "cni.istio.io/not-ready",
    "cloud.google.com/impending-node-termination",
];

/// The prefixes of other taints that are temporary:
///
/// * those with which aws-node-termination-handler drains a node that its cloud takes away,
/// * those by which the Cluster Autoscaler recognizes taints that nodes have while they start, or
///   that keep pods off for a time (its FAQ, "How does Cluster Autoscaler treat nodes with
///   taints").
const TEMPORARY_PREFIXES: [&str; 4] = [
    "aws-node-termination-handler/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
];

/// The suffix of taints that a node has until an agent of its driver or network runs there
/// (`ebs.csi.aws.com/agent-not-ready`, `node.cilium.io/agent-not-ready`).
const UNTIL_AN_AGENT_RUNS: &str = "/agent-not-ready";

/// Whether the taint is temporary, so that pods can be on its node at other times.
fn is_temporary(taint: &str) -> bool {
    TEMPORARY_TAINTS.contains(&taint)
        || taint.ends_with(UNTIL_AN_AGENT_RUNS)
        || TEMPORARY_PREFIXES.iter().any(|prefix| taint.starts_with(prefix))
}

/// The names of resources that only some nodes have, `example.com/gpu` or huge pages of some
/// size for example; those with a quantity of 0 are omitted.
///
/// Source: `IsExtendedResourceName` in `pkg/apis/core/v1/helper`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExtendedResources(pub BTreeMap<Text, Quantity>);

impl<'de> Deserialize<'de> for ExtendedResources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = ExtendedResources;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("resources by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut resources = BTreeMap::new();
                while let Some(name) = map.next_key::<Text>()? {
                    let is_huge_pages = name.starts_with("hugepages-");
                    if !is_huge_pages && (!name.contains('/') || name.contains("kubernetes.io/")) {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    // The readers that serde derives refuse duplicate fields too.
                    if resources.contains_key(&name) {
                        return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
                    }
                    resources.insert(name, map.next_value::<Quantity>()?);
                }
                resources.retain(|_, amount| *amount != Quantity(0));
                Ok(ExtendedResources(resources))
            }
        }

        deserializer.deserialize_map(Names)
    }
}

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Taint {
    /// Its key.
    pub key: Text,
    /// Its value; empty if there is none.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub value: Text,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: Text,
}

/// A toleration of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// The taint's key; empty with `Exists` tolerates every key.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub key: Text,
    /// `Equal` (the default), `Exists`, `Lt` or `Gt`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub operator: Text,
    /// The taint's value.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub value: Text,
    /// The taint's effect; empty tolerates every effect.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub effect: Text,
}

/// `dedicated=db:NoSchedule`, `dedicated`, or `every taint`.
impl fmt::Display for Toleration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            return f.write_str("every taint");
        }
        f.write_str(&self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        if !self.effect.is_empty() {
            write!(f, ":{}", self.effect)?;
        }
        Ok(())
    }
}

impl Toleration {
    /// Whether the toleration covers `taint`.
    ///
    /// Source: `Toleration.ToleratesTaint` in the Kubernetes API helpers,
    /// including the integer operators of the feature `TaintTolerationComparisonOperators`.
    pub(crate) fn tolerates(&self, taint: &Taint) -> bool {
        let differs = |own: &Text, theirs: &Text| !own.is_empty() && own != theirs;
        if differs(&self.effect, &taint.effect) || differs(&self.key, &taint.key) {
            return false;
        }
        let number = |text: &Text| text.parse::<i64>().ok();
        let numbers = || Some((number(&taint.value)?, number(&self.value)?));
        match self.operator.as_str() {
            "" | "Equal" => !self.key.is_empty() && self.value == taint.value,
            "Exists" => true,
            "Lt" => numbers().is_some_and(|(value, bound)| value < bound),
            "Gt" => numbers().is_some_and(|(value, bound)| value > bound),
            _ => false,
        }
    }
}

impl Node {
    /// Whether the node has as much of every resource as in `requests`; `None` if its resources
    /// are unknown.
    pub(crate) fn has(&self, requests: &[(Text, Quantity)]) -> Option<bool> {
        let has = self.status.allocatable.as_ref()?;
        Some(requests.iter().all(|(name, amount)| has.0.get(name).is_some_and(|has| has >= amount)))
    }

    /// Whether pods with `tolerations` can be scheduled to the node despite its taints.
    pub(crate) fn admits<'t>(
        &self,
        tolerations: &(impl Iterator<Item = &'t Toleration> + Clone),
    ) -> bool {
        self.spec
            .taints
            .iter()
            .all(|taint| tolerations.clone().any(|toleration| toleration.tolerates(taint)))
    }
}

/// A node with its current state.
pub type NodeState = Resource<NodeStateSpec, NodeStateStatus>;

/// The spec of a node as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeStateSpec {
    /// All its taints.
    #[serde(deserialize_with = "nullable")]
    pub taints: Vec<Taint>,
    /// Whether it is cordoned, so that it accepts no new pods.
    #[serde(deserialize_with = "nullable")]
    pub unschedulable: bool,
}

/// The state that a kubelet reports of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStateStatus {
    /// The condition `Ready`, as in [`NodeStatus`].
    #[serde(rename = "conditions", deserialize_with = "readiness")]
    pub ready: Option<bool>,
    /// The attachable volumes that are mounted, or about to be, by the controller's names.
    #[serde(deserialize_with = "nullable")]
    pub volumes_in_use: Vec<Text>,
}

/// Keeps lasting taints that keep pods off.
impl From<NodeStateSpec> for NodeSpec {
    fn from(NodeStateSpec { taints, .. }: NodeStateSpec) -> Self {
        let lasts = |taint: &Taint| {
            matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute") && !is_temporary(&taint.key)
        };
        Self {
            // The effect does not matter: Kubernetes checks only the key.
            out_of_service: taints.iter().any(|taint| taint.key == OUT_OF_SERVICE),
            taints: taints.into_iter().filter(lasts).collect(),
        }
    }
}

/// Reads whether the condition `Ready` is true or false.
fn readiness<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    let conditions: Vec<Condition> = nullable(deserializer)?;
    let ready = conditions.iter().find(|condition| condition.kind == "Ready");
    Ok(ready.and_then(|ready| match ready.status.as_str() {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }))
}

/// A selector over nodes: it matches a node if one of its terms does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    /// The terms; none at all match no node.
    #[serde(default, deserialize_with = "nullable")]
    pub node_selector_terms: Box<[NodeSelectorTerm]>,
}

/// One term of a node selector; a term without requirements matches no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelectorTerm {
    /// Requirements on labels.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub match_expressions: Box<[Requirement]>,
    /// Requirements on fields; Kubernetes supports only `metadata.name`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub match_fields: Box<[Requirement]>,
}

impl NodeSelector {
    /// The terms that can match a node.
    pub(crate) fn terms_that_match(&self) -> impl Iterator<Item = &NodeSelectorTerm> {
        let has_any = |term: &&NodeSelectorTerm| !term.is_empty();
        self.node_selector_terms.iter().filter(has_any)
    }

    /// Whether it matches no node that has these labels.
    pub(crate) fn excludes(&self, labels: &Labels) -> bool {
        self.terms_that_match().all(|term| {
            term.match_expressions.iter().any(|requirement| {
                let value = labels.get(&requirement.key);
                value.is_some_and(|value| !requirement.accepts(Some(value)))
            })
        })
    }

    /// Whether the selector matches `node`.
    pub fn matches(&self, node: &Node) -> bool {
        self.node_selector_terms.iter().any(|term| term.matches(node))
    }
}

impl NodeSelectorTerm {
    /// Its requirements on labels and on fields.
    pub(crate) fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.match_expressions.iter().chain(&self.match_fields)
    }

    /// Whether it has no requirement, and so matches no node.
    pub fn is_empty(&self) -> bool {
        self.match_expressions.is_empty() && self.match_fields.is_empty()
    }

    /// Whether the term matches `node`.
    pub fn matches(&self, node: &Node) -> bool {
        let Metadata { name, labels, .. } = &node.metadata;
        !self.is_empty()
            && self
                .match_expressions
                .iter()
                .all(|requirement| requirement.accepts(labels.get(&requirement.key)))
            && self.match_fields.iter().all(|requirement| {
                requirement.key == "metadata.name" && requirement.accepts(Some(name))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toleration(text: &str) -> Toleration {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn tolerations_cover_taints_as_in_kubernetes() {
        let taint = Taint { key: "gpu".into(), value: "7".into(), effect: "NoSchedule".into() };
        let cases = [
            (r#"{"operator":"Exists"}"#, true),
            (r#"{"key":"gpu","operator":"Exists"}"#, true),
            (r#"{"key":"gpu","operator":"Exists","effect":"NoExecute"}"#, false),
            (r#"{"key":"gpu","value":"7"}"#, true),
            (r#"{"key":"gpu","operator":"Equal","value":"8"}"#, false),
            (r#"{"key":"cpu","operator":"Exists"}"#, false),
            (r#"{"key":"gpu","operator":"Lt","value":"8"}"#, true),
            (r#"{"key":"gpu","operator":"Gt","value":"8"}"#, false),
            (r#"{"key":"gpu","operator":"Gt","value":"x"}"#, false),
            (r#"{"key":"gpu","operator":"Like","value":"7"}"#, false),
            (r#"{"value":"7"}"#, false),
        ];
        for (text, expected) in cases {
            assert_eq!(toleration(text).tolerates(&taint), expected, "{text}");
        }
    }

    #[test]
    fn temporary_taints_are_not_kept() {
        let node: Node = serde_json::from_str(
            r#"{"metadata":{"name":"n","labels":{"zone":"a"}},"spec":{"taints":[
                {"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"},
                {"key":"spot","effect":"PreferNoSchedule"},
                {"key":"node.kubernetes.io/os","value":"windows","effect":"NoSchedule"},
                {"key":"gpu","value":"yes","effect":"NoExecute"}]}}"#,
        )
        .unwrap();
        assert_eq!(node.spec.taints.len(), 2);
        assert!(!node.admits(&[].iter()));
        assert!(node.admits(&[toleration(r#"{"operator":"Exists"}"#)].iter()));
    }

    #[test]
    fn the_condition_of_a_node_is_read() {
        let node: Node = serde_json::from_str(
            r#"{"metadata":{"name":"n"},
                "spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"PreferNoSchedule"}]},
                "status":{
                    "conditions":[{"type":"MemoryPressure","status":"True"},{"type":"Ready","status":"False"}],
                    "volumesAttached":[{"name":"kubernetes.io/csi/a^1","devicePath":""}]}}"#,
        )
        .unwrap();
        assert!(node.spec.out_of_service);
        assert!(node.spec.taints.is_empty());
        assert_eq!(node.status.ready, Some(false));
        let attached = node.status.volumes_attached.iter().map(|volume| &volume.name);
        assert!(attached.eq(["kubernetes.io/csi/a^1"]));

        for (conditions, expected) in [
            (r#"[{"type":"Ready","status":"True"}]"#, Some(true)),
            (r#"[{"type":"Ready","status":"Unknown"}]"#, None),
            (r#"[{"type":"DiskPressure","status":"False"}]"#, None),
            ("null", None),
        ] {
            let text =
                format!(r#"{{"status":{{"conditions":{conditions},"volumesAttached":null}}}}"#);
            let ready = serde_json::from_str::<Node>(&text).unwrap().status.ready;
            assert_eq!(ready, expected, "{conditions}");
        }
    }

    #[test]
    fn terms_are_alternatives_and_an_empty_one_matches_nothing() {
        let node = Node {
            metadata: Metadata {
                name: "n1".into(),
                labels: [("zone", "a")].into_iter().collect(),
                ..Metadata::default()
            },
            ..Node::default()
        };
        let cases = [
            (r#"{"nodeSelectorTerms":[]}"#, false),
            (r#"{"nodeSelectorTerms":[{}]}"#, false),
            (
                r#"{"nodeSelectorTerms":[{},{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}]}"#,
                true,
            ),
            (
                r#"{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}"#,
                true,
            ),
            (
                r#"{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n1"]}]}]}"#,
                false,
            ),
        ];
        for (text, expected) in cases {
            let selector: NodeSelector = serde_json::from_str(text).unwrap();
            assert_eq!(selector.matches(&node), expected, "{text}");
        }
    }
}
