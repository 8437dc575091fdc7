//! The rules: what can go wrong with a volume, one file a rule.
//!
//! A rule's file starts with its documentation, which is also what `rules CODE`
//! prints. [`RULES`] is the one list of them all.

mod access_mode_change;
mod autoscaler_exceeds_volume;
mod co_location_impossible;
pub mod codes;
pub mod documentation;
pub mod hazard;
mod leftover_rolling_update;
mod outcome;
mod replicas_share_volume;
mod rolling_update_overlap;
mod single_pod_volume;
mod unresolved_claim;
mod unsupported_access_mode;
mod words;
mod workloads_share_volume;

pub use documentation::Documentation;
pub use hazard::Hazard;
pub use outcome::Outcome;

use crate::model::autoscaler::Autoscaler;
use crate::model::claim::Claim;
use crate::situation::{Situation, World};

/// What is judged.
pub enum Subject<'a> {
    /// A workload in its cluster.
    Workload(Situation<'a>),
    /// A claim; `old` is the claim before the update under way.
    Claim {
        /// The claim.
        claim: &'a Claim,
        /// The claim before the update.
        old: Option<&'a Claim>,
        /// Where it lives.
        world: World<'a>,
    },
    /// A workload whose replicas something else sets.
    Scaled {
        /// The workload with the replicas it would have.
        situation: Situation<'a>,
        /// The replicas it has without.
        before: i64,
        /// The autoscaler that sets them; `None` for a request to scale.
        autoscaler: Option<&'a Autoscaler>,
    },
}

/// A rule: its public name, its documentation and how it judges.
pub struct Rule {
    /// The public name, which never changes.
    pub code: &'static str,
    /// The source of the rule's own file, where its documentation stands.
    source: &'static str,
    /// Adds what the rule finds in the subject.
    pub judge: fn(&Subject<'_>, &mut Vec<Hazard>),
}

impl Rule {
    /// The rule's documentation.
    #[must_use]
    pub fn documentation(&self) -> Documentation {
        Documentation::of_source(self.source)
    }
}

/// Every rule, in the order in which the documentation lists them.
pub const RULES: [Rule; 10] = [
    rolling_update_overlap::RULE,
    replicas_share_volume::RULE,
    single_pod_volume::RULE,
    workloads_share_volume::RULE,
    autoscaler_exceeds_volume::RULE,
    co_location_impossible::RULE,
    unsupported_access_mode::RULE,
    access_mode_change::RULE,
    leftover_rolling_update::RULE,
    unresolved_claim::RULE,
];

/// Everything the rules find in `subject`, the gravest first.
#[must_use]
pub fn judge(subject: &Subject<'_>) -> Vec<Hazard> {
    let mut found = Vec::new();
    for rule in &RULES {
        (rule.judge)(subject, &mut found);
    }
    found.sort_by_key(|hazard| hazard.outcome);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_codes_agree_and_every_rule_is_documented() {
        let table: Vec<&str> = RULES.iter().map(|rule| rule.code).collect();
        assert_eq!(table, codes::ALL);
        for rule in &RULES {
            let documentation = rule.documentation();
            for heading in ["Fires on", "Why", "Example", "What to do", "Silent on"] {
                assert!(
                    documentation.text().contains(&format!("# {heading}")),
                    "{} lacks the part {heading:?}",
                    rule.code
                );
            }
            assert!(documentation.summary().ends_with('.'), "{}", rule.code);
        }
    }
}
