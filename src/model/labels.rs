//! Labels and the selectors that choose by them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::Text;
use super::de::nullable;

/// Keys with values, sorted by key, as in labels, annotations and parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels(Box<[(Text, Text)]>);

impl Labels {
    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .binary_search_by(|(candidate, _)| candidate.as_str().cmp(key))
            .ok()
            .map(|at| self.0[at].1.as_str())
    }

    /// Every key with its value, sorted by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> + Clone {
        self.0
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every pair of these labels is in `other`.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.iter()
            .all(|(key, value)| other.get(key) == Some(value))
    }

    /// These labels with `key` set to `value`.
    #[must_use]
    pub fn with(&self, key: &str, value: &str) -> Self {
        self.iter()
            .filter(|(candidate, _)| *candidate != key)
            .chain([(key, value)])
            .collect()
    }
}

impl<K: Into<Text>, V: Into<Text>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<(Text, Text)> = pairs
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        pairs.dedup_by(|later, earlier| later.0 == earlier.0);
        Self(pairs.into_boxed_slice())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Pairs(|_: &str| true))
    }
}

/// Reads a map of strings but keeps only the keys that `keep` wants; the
/// others are skipped unread, however long they are.
pub(crate) fn filtered<'de, D: Deserializer<'de>>(
    deserializer: D,
    keep: fn(&str) -> bool,
) -> Result<Labels, D::Error> {
    deserializer.deserialize_any(Pairs(keep))
}

struct Pairs<F>(F);

impl<'de, F: Fn(&str) -> bool> Visitor<'de> for Pairs<F> {
    type Value = Labels;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }

    fn visit_unit<E>(self) -> Result<Labels, E> {
        Ok(Labels::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
        let mut pairs: Vec<(Text, Text)> = Vec::new();
        while let Some(key) = map.next_key::<Text>()? {
            if self.0(&key) {
                let value = map.next_value::<Option<Text>>()?.unwrap_or_default();
                pairs.push((key, value));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(pairs.into_iter().collect())
    }
}

/// How a requirement compares a label with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is missing or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// The label is an integer greater than the one value (nodes only).
    Gt,
    /// The label is an integer less than the one value (nodes only).
    Lt,
    /// A word Kubernetes does not know; it matches nothing.
    Unknown,
}

impl<'de> Deserialize<'de> for Operator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Text::deserialize(deserializer)?.as_str() {
            "In" => Self::In,
            "NotIn" => Self::NotIn,
            "Exists" => Self::Exists,
            "DoesNotExist" => Self::DoesNotExist,
            "Gt" => Self::Gt,
            "Lt" => Self::Lt,
            _ => Self::Unknown,
        })
    }
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
pub struct Requirement {
    /// The label's key.
    pub key: Text,
    /// How the label is compared.
    pub operator: Operator,
    /// What it is compared with.
    #[serde(default, deserialize_with = "nullable")]
    pub values: Box<[Text]>,
}

impl Requirement {
    /// Whether a label with this value (`None`: missing) satisfies the requirement.
    #[must_use]
    pub fn accepts(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|candidate| candidate == value);
        match (self.operator, value) {
            (Operator::In, Some(value)) => listed(value),
            (Operator::NotIn, Some(value)) => !listed(value),
            (Operator::Exists, value) => value.is_some(),
            (Operator::NotIn | Operator::DoesNotExist, None) => true,
            (Operator::Gt, Some(value)) => self.compare(value).is_some_and(|(a, b)| a > b),
            (Operator::Lt, Some(value)) => self.compare(value).is_some_and(|(a, b)| a < b),
            (Operator::DoesNotExist, Some(_))
            | (Operator::In | Operator::Gt | Operator::Lt, None)
            | (Operator::Unknown, _) => false,
        }
    }

    fn compare(&self, value: &str) -> Option<(i64, i64)> {
        let [bound] = &*self.values else { return None };
        Some((value.parse().ok()?, bound.parse().ok()?))
    }
}

/// A selector over labels. An empty one matches everything; where Kubernetes
/// takes an absent selector for "nothing", it is an `Option` that is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must be there as written.
    #[serde(default, deserialize_with = "nullable")]
    pub match_labels: Labels,
    /// Further requirements, all of which must hold.
    #[serde(default, deserialize_with = "nullable")]
    pub match_expressions: Box<[Requirement]>,
}

impl LabelSelector {
    /// Whether `labels` satisfy the selector.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.is_subset(labels)
            && self
                .match_expressions
                .iter()
                .all(|requirement| requirement.accepts(labels.get(&requirement.key)))
    }

    /// Whether the selector has no requirement and so matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().copied().collect()
    }

    #[test]
    fn requirements_follow_the_operators_of_kubernetes() {
        let cases = [
            (
                r#"{"key":"a","operator":"In","values":["1","2"]}"#,
                Some("2"),
                true,
            ),
            (r#"{"key":"a","operator":"In","values":["1"]}"#, None, false),
            (
                r#"{"key":"a","operator":"NotIn","values":["1"]}"#,
                Some("1"),
                false,
            ),
            (
                r#"{"key":"a","operator":"NotIn","values":["1"]}"#,
                None,
                true,
            ),
            (r#"{"key":"a","operator":"Exists"}"#, Some(""), true),
            (r#"{"key":"a","operator":"Exists"}"#, None, false),
            (
                r#"{"key":"a","operator":"DoesNotExist","values":null}"#,
                None,
                true,
            ),
            (r#"{"key":"a","operator":"DoesNotExist"}"#, Some("1"), false),
            (
                r#"{"key":"a","operator":"Gt","values":["4"]}"#,
                Some("5"),
                true,
            ),
            (
                r#"{"key":"a","operator":"Gt","values":["4"]}"#,
                Some("x"),
                false,
            ),
            (
                r#"{"key":"a","operator":"Lt","values":["4"]}"#,
                Some("3"),
                true,
            ),
            (r#"{"key":"a","operator":"Lt","values":["4"]}"#, None, false),
            (
                r#"{"key":"a","operator":"Like","values":["4"]}"#,
                Some("4"),
                false,
            ),
        ];
        for (text, value, expected) in cases {
            let requirement: Requirement = serde_json::from_str(text).unwrap();
            assert_eq!(requirement.accepts(value), expected, "{text} {value:?}");
        }
    }

    #[test]
    fn a_selector_needs_all_its_parts_and_an_empty_one_matches_all() {
        let selector: LabelSelector = serde_json::from_str(
            r#"{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"tier","operator":"NotIn","values":["db"]}]}"#,
        )
        .unwrap();
        assert!(selector.matches(&labels(&[("app", "web"), ("tier", "front")])));
        assert!(!selector.matches(&labels(&[("app", "web"), ("tier", "db")])));
        assert!(!selector.matches(&labels(&[("tier", "front")])));
        assert!(LabelSelector::default().matches(&labels(&[])));
    }
}
