//! The words in which a policy is written.

use serde::Deserialize;

use crate::model::words::words;
use crate::rules::Outcome;

words! {
    /// The action on a finding, the strictest first.
    Action {
        /// Refuse the object.
        Deny = "deny",
        /// Repair the object, then let it pass.
        Fix = "fix",
        /// Let the object pass and say what is wrong.
        Warn = "warn",
        /// Let the object pass in silence.
        Ignore = "ignore",
    }
}

impl Action {
    /// The action if no remedy helps. [`Action::Fix`] then becomes a denial, or a warning if the
    /// hazard heals or is not certain.
    pub(crate) const fn without_remedy(self, outcome: Outcome) -> Self {
        match (self, outcome) {
            (Self::Fix, Outcome::Delay | Outcome::Unknown) => Self::Warn,
            (Self::Fix, _) => Self::Deny,
            (action, _) => action,
        }
    }
}

words! {
    /// The remedy that is used if the action is [`Action::Fix`].
    #[derive(Default)]
    RemedyChoice {
        /// The one that fits the workload.
        #[default]
        Auto = "auto",
        /// Set the strategy to Recreate.
        Recreate = "recreate",
        /// Keep the rolling update, without surge.
        ZeroSurge = "zero-surge",
        /// Keep the pods on one node.
        Colocate = "colocate",
        /// Drop a `rollingUpdate` block that stands beside Recreate.
        DropLeftover = "drop-leftover",
    }
}

impl RemedyChoice {
    /// Whether the remedy is right whatever class the volume has: the old pod stops first.
    pub const fn suits_every_class(self) -> bool {
        matches!(self, Self::Recreate | Self::ZeroSurge)
    }
}

/// The sources that may override the policy file, the most lenient first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Overrides {
    /// Annotations on the object, and labels or annotations on its Namespace.
    Allow,
    /// Labels or annotations on the Namespace only.
    Namespaces,
    /// None: only the policy file decides.
    Forbid,
}

/// The treatment of objects that a controller owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Controlled {
    /// Findings are warned about at most, because the controller would write the object again.
    Warn,
    /// They are judged as any other object.
    Judge,
}

/// Whether something is denied or only warned about, the stricter first: an update that did not
/// cause the fault but starts a rollout that will meet it, or an object that is larger than any
/// real one and too complex to judge. In VolumeFacts it is a word with a capital first letter.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize,
)]
#[serde(rename_all(deserialize = "kebab-case"))]
pub enum Strictness {
    /// It is treated as any other object.
    #[default]
    Deny,
    /// It is warned about at most.
    Warn,
}

#[cfg(test)]
mod tests {
    use super::*;

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
