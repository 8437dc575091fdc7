//! Label selectors.

use serde::{Deserialize, Serialize};

use super::Text;
use super::de::nullable;
use super::labels::Labels;
use super::ser::is_default;
use super::words::words;

words! {
    /// The operator of a requirement.
    Operator {
        /// The label has one of the values.
        In = "In",
        /// The label is missing or has none of the values.
        NotIn = "NotIn",
        /// The label exists.
        Exists = "Exists",
        /// The label is missing.
        DoesNotExist = "DoesNotExist",
        /// The label is an integer greater than the only value (nodes only).
        Gt = "Gt",
        /// The label is an integer less than the only value (nodes only).
        Lt = "Lt",
        /// An unknown operator, which matches nothing.
        #[serde(other)]
        Unknown = "Unknown",
    }
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Requirement {
    /// The label's key.
    pub key: Text,
    /// The operator.
    pub operator: Operator,
    /// The values that the label is compared with.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub values: Box<[Text]>,
}

impl Requirement {
    /// Whether a label with this value (`None`: missing) satisfies the requirement.
    pub(crate) fn accepts(&self, value: Option<&str>) -> bool {
        let listed = |label: &str| self.values.iter().any(|candidate| candidate == label);
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

/// A label selector. An empty one matches everything. Fields in which an absent selector matches
/// nothing have an `Option`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must have these values.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub match_labels: Labels,
    /// Further requirements. All must hold.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub match_expressions: Box<[Requirement]>,
}

impl LabelSelector {
    /// Whether `labels` satisfy the selector.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.is_subset(labels)
            && self
                .match_expressions
                .iter()
                .all(|requirement| requirement.accepts(labels.get(&requirement.key)))
    }

    /// Whether it matches only objects that have this value of the label.
    pub(crate) fn demands(&self, key: &str, value: &str) -> bool {
        let is_that_one = |requirement: &Requirement| {
            requirement.operator == Operator::In
                && requirement.key == key
                && matches!(&*requirement.values, [only] if only == value)
        };
        self.match_labels.get(key) == Some(value) || self.match_expressions.iter().any(is_that_one)
    }

    /// Whether the selector has no requirement and so matches everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_follow_the_operators_of_kubernetes() {
        let cases = [
            (r#"{"key":"a","operator":"In","values":["1","2"]}"#, Some("2"), true),
            (r#"{"key":"a","operator":"In","values":["1"]}"#, None, false),
            (r#"{"key":"a","operator":"NotIn","values":["1"]}"#, Some("1"), false),
            (r#"{"key":"a","operator":"NotIn","values":["1"]}"#, None, true),
            (r#"{"key":"a","operator":"Exists"}"#, Some(""), true),
            (r#"{"key":"a","operator":"Exists"}"#, None, false),
            (r#"{"key":"a","operator":"DoesNotExist","values":null}"#, None, true),
            (r#"{"key":"a","operator":"DoesNotExist"}"#, Some("1"), false),
            (r#"{"key":"a","operator":"Gt","values":["4"]}"#, Some("5"), true),
            (r#"{"key":"a","operator":"Gt","values":["4"]}"#, Some("x"), false),
            (r#"{"key":"a","operator":"Lt","values":["4"]}"#, Some("3"), true),
            (r#"{"key":"a","operator":"Lt","values":["4"]}"#, None, false),
            (r#"{"key":"a","operator":"Like","values":["4"]}"#, Some("4"), false),
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
        let labels = |pairs: &[(&str, &str)]| pairs.iter().copied().collect::<Labels>();
        assert!(selector.matches(&labels(&[("app", "web"), ("tier", "front")])));
        assert!(!selector.matches(&labels(&[("app", "web"), ("tier", "db")])));
        assert!(!selector.matches(&labels(&[("tier", "front")])));
        assert!(LabelSelector::default().matches(&labels(&[])));
    }
}
