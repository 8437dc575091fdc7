//! Choosing namespaces and names.

use serde::Deserialize;
use wildmatch::WildMatch;

use crate::model::Text;
use crate::model::metadata::NAMESPACE_NAME;
use crate::model::selector::Requirement;

use super::{Target, is_unset_or_any};

/// A name with wildcards: `*` is any text, `?` any one character.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Text")]
pub(super) struct Glob(WildMatch);

/// Refuses a pattern that can match no name of a Kubernetes object: names are lower case letters,
/// digits, `-` and `.` (RFC 1123).
impl TryFrom<Text> for Glob {
    type Error = String;

    fn try_from(pattern: Text) -> Result<Self, String> {
        let possible = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '.' | '*' | '?');
        if !pattern.is_empty() && pattern.chars().all(possible) {
            return Ok(Self(WildMatch::new(&pattern)));
        }
        Err(format!(
            "no object can be called \"{pattern}\"; names are lower case letters, digits, \"-\" and \".\", \
             and here \"*\" stands for any text and \"?\" for one character"
        ))
    }
}

impl Glob {
    pub(super) fn matches(&self, name: &str) -> bool {
        self.0.matches(name)
    }

    /// The regular expression (RE2) that matches the same names.
    pub(super) fn to_regex(&self) -> String {
        let pattern = self.0.pattern();
        let text = pattern.replace('.', "\\.").replace('*', ".*").replace('?', ".");
        format!("^{text}$")
    }
}

/// The name of an account with the same wildcards,
/// `system:serviceaccount:kube-system:cluster-autoscaler` for example.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Text")]
pub(super) struct AccountGlob(pub(super) WildMatch);

/// Refuses a pattern that would match no account or every account: names of accounts may contain
/// any character, but have at least one.
impl TryFrom<Text> for AccountGlob {
    type Error = String;

    fn try_from(pattern: Text) -> Result<Self, String> {
        if pattern.chars().any(|c| !matches!(c, '*' | '?')) {
            return Ok(Self(WildMatch::new(&pattern)));
        }
        Err(format!(
            "\"{pattern}\" names no account; give the whole name of a user or service account, \
             as in system:serviceaccount:NAMESPACE:NAME, with \"*\" for any text and \"?\" for \
             one character in it"
        ))
    }
}

/// The condition on a namespace: one of the names (if there are any) and every requirement on the
/// labels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NamespaceMatch {
    pub(super) names: Vec<Glob>,
    pub(super) requirements: Vec<Requirement>,
}

impl NamespaceMatch {
    /// Whether the target's namespace matches; `None` if that depends on unknown labels.
    pub(super) fn matches(&self, target: &Target<'_>) -> Option<bool> {
        let is_named = is_unset_or_any(&self.names, |name| name.matches(target.namespace));
        if target.namespace.is_empty() || !is_named {
            return Some(false);
        }
        let mut known = true;
        for requirement in &self.requirements {
            let value = if requirement.key == NAMESPACE_NAME {
                Some(target.namespace)
            } else if let Some(metadata) = target.namespace_metadata {
                metadata.labels.get(&requirement.key)
            } else {
                known = false;
                continue;
            };
            if !requirement.accepts(value) {
                return Some(false);
            }
        }
        known.then_some(true)
    }
}
