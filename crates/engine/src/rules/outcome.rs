//! How a hazard ends when nobody steps in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What happens if nobody intervenes.
///
/// Ordered by severity: the gravest is the smallest, so that sorting findings
/// puts it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Two nodes write to one volume at the same time and its data is damaged.
    DataLoss,
    /// The rollout can never finish.
    Deadlock,
    /// Some pod can never start.
    Stuck,
    /// The API server itself will say no.
    Refused,
    /// It heals by itself once the old pod is gone.
    Delay,
    /// A fact on which the verdict depends is missing.
    Unknown,
}

impl Outcome {
    /// Every outcome, the gravest first.
    pub(crate) const ALL: [Self; 6] = [
        Self::DataLoss,
        Self::Deadlock,
        Self::Stuck,
        Self::Refused,
        Self::Delay,
        Self::Unknown,
    ];

    /// The name used in policy files and reports, `data-loss` for example.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataLoss => "data-loss",
            Self::Deadlock => "deadlock",
            Self::Stuck => "stuck",
            Self::Refused => "refused",
            Self::Delay => "delay",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_with_serde_and_the_gravest_sorts_first() {
        for outcome in Outcome::ALL {
            let text = serde_json::to_string(&outcome).unwrap();
            assert_eq!(text, format!("\"{outcome}\""));
            assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), outcome);
        }
        assert!(Outcome::ALL.is_sorted());
    }
}
