//! Nodes, what selects them, and what pods tolerate.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::Text;
use super::de::nullable;
use super::labels::Labels;
use super::quantity::Quantity;
use super::selector::Requirement;

/// A node: its labels and the taints that last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The node's name.
    pub name: Text,
    /// All labels.
    pub labels: Labels,
    /// The taints that keep pods away for good. Those Kubernetes sets and lifts
    /// by itself ([`PASSING_TAINTS`]) are left out, and so is
    /// `PreferNoSchedule`, which keeps nobody away.
    pub taints: Box<[Taint]>,
    /// The extended resources it has; `None` where it does not say what it has.
    pub extended_resources: Option<ExtendedResources>,
}

/// The taints that Kubernetes or an administrator sets and lifts as things come
/// and go: cordons, health, pressure (`staging/src/k8s.io/api/core/v1/well_known_taints.go`).
pub const PASSING_TAINTS: [&str; 8] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/out-of-service",
];

/// The names of resources that only some nodes have, `example.com/gpu` for
/// example, those of which there are none left out.
///
/// Source: `IsExtendedResourceName` in `pkg/apis/core/v1/helper`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtendedResources(pub Box<[Text]>);

impl<'de> Deserialize<'de> for ExtendedResources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = ExtendedResources;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("resources by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = map.next_key::<Text>()? {
                    if !name.contains('/') || name.contains("kubernetes.io/") {
                        map.next_value::<IgnoredAny>()?;
                    } else if map.next_value::<Quantity>()? != Quantity(0) {
                        names.push(name);
                    }
                }
                Ok(ExtendedResources(names.into_boxed_slice()))
            }
        }

        deserializer.deserialize_map(Names)
    }
}

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Taint {
    /// Its key.
    pub key: Text,
    /// Its value, empty where there is none.
    #[serde(default, deserialize_with = "nullable")]
    pub value: Text,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: Text,
}

/// A toleration, as a pod carries it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Toleration {
    /// The taint's key; empty with `Exists` tolerates every key.
    #[serde(default, deserialize_with = "nullable")]
    pub key: Text,
    /// `Equal` (also where empty), `Exists`, `Lt` or `Gt`.
    #[serde(default, deserialize_with = "nullable")]
    pub operator: Text,
    /// The taint's value.
    #[serde(default, deserialize_with = "nullable")]
    pub value: Text,
    /// The taint's effect; empty tolerates every effect.
    #[serde(default, deserialize_with = "nullable")]
    pub effect: Text,
}

impl Toleration {
    /// Whether the toleration covers `taint`.
    ///
    /// Source: `Toleration.ToleratesTaint` in the Kubernetes API helpers,
    /// the integer operators of the `TaintTolerationComparisonOperators` feature included.
    #[must_use]
    pub fn tolerates(&self, taint: &Taint) -> bool {
        if !self.effect.is_empty() && self.effect != taint.effect {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        let numbers = || {
            Some((
                taint.value.parse::<i64>().ok()?,
                self.value.parse::<i64>().ok()?,
            ))
        };
        match self.operator.as_str() {
            "" | "Equal" => !self.key.is_empty() && self.value == taint.value,
            "Exists" => true,
            "Lt" => numbers().is_some_and(|(taint, bound)| taint < bound),
            "Gt" => numbers().is_some_and(|(taint, bound)| taint > bound),
            _ => false,
        }
    }
}

impl Node {
    /// Whether the node has, as far as it says, every resource of `names`.
    #[must_use]
    pub fn has(&self, names: &[Text]) -> bool {
        self.extended_resources
            .as_ref()
            .is_none_or(|has| names.iter().all(|name| has.0.contains(name)))
    }

    /// Whether pods with `tolerations` can be put on the node in spite of its taints.
    #[must_use]
    pub fn admits(&self, tolerations: &[Toleration]) -> bool {
        self.taints.iter().all(|taint| {
            tolerations
                .iter()
                .any(|toleration| toleration.tolerates(taint))
        })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default)]
            metadata: super::metadata::Metadata,
            #[serde(default, deserialize_with = "nullable")]
            spec: Spec,
            #[serde(default, deserialize_with = "nullable")]
            status: Status,
        }

        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Spec {
            #[serde(deserialize_with = "nullable")]
            taints: Vec<Taint>,
        }

        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Status {
            allocatable: Option<ExtendedResources>,
        }

        let wire = Wire::deserialize(deserializer)?;
        let lasting = |taint: &Taint| {
            matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
                && !PASSING_TAINTS.contains(&taint.key.as_str())
        };
        Ok(Self {
            name: wire.metadata.name,
            labels: wire.metadata.labels,
            taints: wire.spec.taints.into_iter().filter(lasting).collect(),
            extended_resources: wire.status.allocatable,
        })
    }
}

/// A selector over nodes: it matches where one of its terms does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    /// The terms; none at all match no node.
    #[serde(default, deserialize_with = "nullable")]
    pub node_selector_terms: Box<[NodeSelectorTerm]>,
}

/// One term of a node selector; a term without requirements matches no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelectorTerm {
    /// Requirements on labels.
    #[serde(default, deserialize_with = "nullable")]
    pub match_expressions: Box<[Requirement]>,
    /// Requirements on fields; Kubernetes knows `metadata.name` alone.
    #[serde(default, deserialize_with = "nullable")]
    pub match_fields: Box<[Requirement]>,
}

impl NodeSelector {
    /// Whether the selector matches `node`.
    #[must_use]
    pub fn matches(&self, node: &Node) -> bool {
        self.node_selector_terms
            .iter()
            .any(|term| term.matches(node))
    }
}

impl NodeSelectorTerm {
    /// Whether the term matches `node`.
    #[must_use]
    pub fn matches(&self, node: &Node) -> bool {
        if self.match_expressions.is_empty() && self.match_fields.is_empty() {
            return false;
        }
        self.match_expressions
            .iter()
            .all(|requirement| requirement.accepts(node.labels.get(&requirement.key)))
            && self.match_fields.iter().all(|requirement| {
                requirement.key == "metadata.name" && requirement.accepts(Some(&node.name))
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
        let taint = Taint {
            key: "gpu".into(),
            value: "7".into(),
            effect: "NoSchedule".into(),
        };
        let cases = [
            (r#"{"operator":"Exists"}"#, true),
            (r#"{"key":"gpu","operator":"Exists"}"#, true),
            (
                r#"{"key":"gpu","operator":"Exists","effect":"NoExecute"}"#,
                false,
            ),
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
    fn passing_taints_are_not_kept() {
        let node: Node = serde_json::from_str(
            r#"{"metadata":{"name":"n","labels":{"zone":"a"}},"spec":{"taints":[
                {"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"},
                {"key":"spot","effect":"PreferNoSchedule"},
                {"key":"node.kubernetes.io/os","value":"windows","effect":"NoSchedule"},
                {"key":"gpu","value":"yes","effect":"NoExecute"}]}}"#,
        )
        .unwrap();
        assert_eq!(node.taints.len(), 2);
        assert!(!node.admits(&[]));
        assert!(node.admits(&[toleration(r#"{"operator":"Exists"}"#)]));
    }

    #[test]
    fn terms_are_alternatives_and_an_empty_one_matches_nothing() {
        let node = Node {
            name: "n1".into(),
            labels: [("zone", "a")].into_iter().collect(),
            taints: Box::default(),
            extended_resources: None,
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
