//! How sure a finding is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How sure a finding is, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// The objects at hand show it.
    Verified,
    /// A StorageClass is not at hand, but has a name that distributions or
    /// drivers' installation documents create.
    Likely,
    /// Nothing is known of the storage, so it is taken for the most common kind:
    /// attached to one node at a time.
    Assumed,
}

impl Certainty {
    /// Every certainty, the surest first.
    pub(crate) const ALL: [Self; 3] = [Self::Verified, Self::Likely, Self::Assumed];

    /// The name used in policy files and reports, `verified` for example.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Likely => "likely",
            Self::Assumed => "assumed",
        }
    }
}

impl fmt::Display for Certainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_with_serde_and_the_surest_sorts_first() {
        for certainty in Certainty::ALL {
            let text = serde_json::to_string(&certainty).unwrap();
            assert_eq!(text, format!("\"{certainty}\""));
        }
        assert!(Certainty::ALL.is_sorted());
    }
}
