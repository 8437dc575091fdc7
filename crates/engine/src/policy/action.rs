//! The words a policy is written in.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::rules::Outcome;

/// What to do about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Refuse the object.
    Deny,
    /// Repair the object, then let it pass.
    Fix,
    /// Let the object pass and say what is wrong.
    Warn,
    /// Let the object pass in silence.
    Ignore,
}

impl Action {
    /// Every action, the strictest first.
    pub(crate) const ALL: [Self; 4] = [Self::Deny, Self::Fix, Self::Warn, Self::Ignore];

    /// The name used in policy files and annotations, `deny` for example.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Fix => "fix",
            Self::Warn => "warn",
            Self::Ignore => "ignore",
        }
    }

    /// The action of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }

    /// What to do instead where this is [`Action::Fix`] and no remedy helps:
    /// refuse what cannot work, warn about what heals or is not certain.
    #[must_use]
    pub(crate) const fn without_remedy(self, outcome: Outcome) -> Self {
        match (self, outcome) {
            (Self::Fix, Outcome::Delay | Outcome::Unknown) => Self::Warn,
            (Self::Fix, _) => Self::Deny,
            (action, _) => action,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which remedy is used where the action is [`Action::Fix`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemedyChoice {
    /// The one that fits the workload.
    #[default]
    Auto,
    /// Set the strategy to Recreate.
    Recreate,
    /// Keep the rolling update, without surge.
    ZeroSurge,
    /// Keep the pods on one node.
    Colocate,
    /// Drop a `rollingUpdate` block that stands beside Recreate.
    DropLeftover,
}

impl RemedyChoice {
    /// Every choice, `auto` first.
    pub const ALL: [Self; 5] = [
        Self::Auto,
        Self::Recreate,
        Self::ZeroSurge,
        Self::Colocate,
        Self::DropLeftover,
    ];

    /// The name used in policy files and annotations, `zero-surge` for example.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Recreate => "recreate",
            Self::ZeroSurge => "zero-surge",
            Self::Colocate => "colocate",
            Self::DropLeftover => "drop-leftover",
        }
    }

    /// The choice of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == name)
    }
}

impl fmt::Display for RemedyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who may depart from the policy file, the most lenient first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overrides {
    /// Annotations on the object, and labels or annotations on its Namespace.
    Allow,
    /// Labels or annotations on the Namespace only.
    Namespaces,
    /// Nobody: the policy file has the last word.
    Forbid,
}

/// How objects are treated that a controller owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Controlled {
    /// Findings are warned about at most, for the controller would write the
    /// object again.
    Warn,
    /// As any other object.
    Judge,
}

/// How an update is treated that is not to blame for what is wrong, and yet
/// starts a rollout that will meet it. The stricter first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Existing {
    /// As any other object.
    Deny,
    /// What was wrong before is warned about at most.
    Warn,
}

/// What is done about an object that is too much to judge, as it is larger than any honest
/// one. The stricter first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TooComplex {
    /// It is denied.
    Deny,
    /// It passes with a warning.
    Warn,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_with_serde_and_are_read_back() {
        for action in Action::ALL {
            assert_eq!(serde_json::to_value(action).unwrap(), action.name());
            assert_eq!(Action::from_name(action.name()), Some(action));
        }
        for choice in RemedyChoice::ALL {
            assert_eq!(serde_json::to_value(choice).unwrap(), choice.name());
            assert_eq!(RemedyChoice::from_name(choice.name()), Some(choice));
        }
        assert_eq!(Action::from_name("Deny"), None);
        assert_eq!(RemedyChoice::from_name("rewrite"), None);
    }

    #[test]
    fn a_fix_that_is_impossible_denies_what_cannot_work_only() {
        let expected = [
            (Outcome::DataLoss, Action::Deny),
            (Outcome::Deadlock, Action::Deny),
            (Outcome::Stuck, Action::Deny),
            (Outcome::Refused, Action::Deny),
            (Outcome::Delay, Action::Warn),
            (Outcome::Unknown, Action::Warn),
        ];
        for (outcome, action) in expected {
            assert_eq!(Action::Fix.without_remedy(outcome), action, "{outcome}");
            for other in [Action::Deny, Action::Warn, Action::Ignore] {
                assert_eq!(other.without_remedy(outcome), other, "{other} {outcome}");
            }
        }
    }
}
