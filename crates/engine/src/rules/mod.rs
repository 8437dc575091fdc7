//! The rules: what can go wrong with a volume, one file a rule.
//!
//! A rule's file starts with its documentation, which is also what `rules CODE`
//! prints. [`RULES`] is the one list of them all.

mod access_mode_change;
mod autoscaler_exceeds_volume;
mod co_location_impossible;
mod fencing_live_node;
mod hazard;
mod impossible_name;
mod leftover_rolling_update;
mod messages;
mod mislabelled_volume;
mod no_node_for_volume;
mod outcome;
mod replicas_share_volume;
mod rolling_update_overlap;
mod same_node_advice;
mod selinux_label_conflict;
mod single_pod_volume;
mod strategies;
mod unguarded_volume;
mod unresolved_claim;
mod unsupported_access_mode;
mod unsupported_strategy;
mod workloads_share_volume;

pub(crate) use hazard::{Hazard, supposed};
pub use messages::SETTLE;
pub(crate) use messages::described;
pub use outcome::Outcome;
pub use strategies::pods_at_once;
pub(crate) use strategies::{RECREATE_ONCE, RECREATE_OR_ZERO_SURGE, patch_once, recreate_once};

use hashbrown::HashSet;
use jiff::Timestamp;

pub use crate::analysis::Certainty;
use crate::analysis::{Analysis, Facts, UsedVolume};
use crate::model::Text;
use crate::model::autoscaler::Autoscaler;
use crate::model::claim::Claim;
use crate::model::node::Node;
use crate::model::volume_attachment::VolumeAttachment;

/// A rule: its public name, its documentation and the subjects that it judges.
pub struct Rule {
    /// The public name, which never changes.
    pub code: &'static str,
    /// The fault of the field, for a label at its line.
    pub at_fault: &'static str,
    /// The subjects that the rule judges.
    on: &'static [On],
}

/// A subject that a rule judges, with the function that adds the hazards it finds.
enum On {
    /// A workload in its cluster.
    Workload(fn(&Analysis<'_>, &mut Vec<Hazard>)),
    /// A claim.
    Claim(fn(&ClaimReview<'_>, &mut Vec<Hazard>)),
    /// A workload whose replicas an autoscaler or a request to scale sets.
    Scaled(fn(&Scaling<'_>, &mut Vec<Hazard>)),
    /// A request that may take volumes from a node.
    Fencing(fn(&FencingReview<'_>, &mut Vec<Hazard>)),
}

/// A claim in its cluster.
#[derive(Clone, Copy)]
pub(crate) struct ClaimReview<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// The claim before the update under way; `None` for a new claim.
    pub old: Option<&'a Claim>,
    /// The facts of its cluster.
    pub facts: Facts<'a>,
}

/// A workload whose replicas an autoscaler or a request to scale sets.
pub(crate) struct Scaling<'a> {
    /// The workload with the replicas it would have.
    pub analysis: Analysis<'a>,
    /// The replicas that it has now.
    pub before: i64,
    /// The autoscaler that sets them; `None` for a request to scale.
    pub autoscaler: Option<&'a Autoscaler>,
}

/// A request after which the volumes of a node may be attached to another one.
#[derive(Clone, Copy)]
pub(crate) struct FencingReview<'a> {
    /// The request.
    pub fencing: Fencing<'a>,
    /// The facts of its cluster.
    pub facts: Facts<'a>,
    /// The time of the request.
    pub now: Timestamp,
}

/// A request that takes volumes from a node.
#[derive(Clone, Copy)]
pub(crate) enum Fencing<'a> {
    /// The out-of-service taint is added; the node as it was before.
    Taint(&'a Node),
    /// The node is deleted.
    DeleteNode(&'a Node),
    /// One of its VolumeAttachments is deleted.
    DeleteAttachment(&'a VolumeAttachment),
}

impl Scaling<'_> {
    /// The field that sets the replicas.
    fn field(&self) -> String {
        let field = self.autoscaler.map_or("replicas", |autoscaler| autoscaler.fields()[1]);
        format!("spec.{field}")
    }
}

impl Rule {
    /// A verified hazard of this rule, to be filled in.
    const fn hazard(&self, outcome: Outcome) -> Hazard {
        Hazard::new(self.code, outcome)
    }

    fn source(&self) -> &'static str {
        codes::ALL
            .into_iter()
            .zip(SOURCES)
            .find(|(code, _)| *code == self.code)
            .map_or("", |(_, source)| source)
    }

    /// The documentation, as Markdown: the comment at the top of the rule's file.
    pub fn documentation(&self) -> String {
        self.source()
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)))
            .collect()
    }

    /// The hazard that the rule finds, in a sentence: the first line of its documentation.
    pub fn summary(&self) -> &'static str {
        self.source().lines().next().unwrap_or_default().trim_start_matches("//! ")
    }
}

/// Makes, from the one list of rules, the list itself and the rules' public names.
macro_rules! rules {
    ($($CODE:ident: $file:ident,)+) => {
        /// Every rule, in the order in which the documentation lists them.
        pub const RULES: [Rule; codes::ALL.len()] = [$($file::RULE),+];

        /// The source file of each rule, which begins with its documentation.
        const SOURCES: [&str; codes::ALL.len()] =
            [$(include_str!(concat!(stringify!($file), ".rs"))),+];

        /// The public names of the rules.
        ///
        /// Findings, policy files and annotations contain them, so they never change.
        pub mod codes {
            $(
                #[doc = concat!("The public name of the rule in `", stringify!($file), ".rs`.")]
                pub const $CODE: &str = super::$file::RULE.code;
            )+

            /// Every code, in the order the documentation lists them.
            pub const ALL: [&str; [$(stringify!($file)),+].len()] = [$($CODE),+];

            /// The entry of [`ALL`] that equals `code`; `None` if there is no such rule.
            pub fn find(code: &str) -> Option<&'static str> {
                ALL.into_iter().find(|known| *known == code)
            }
        }
    };
}

rules! {
    ROLLING_UPDATE_OVERLAP: rolling_update_overlap,
    REPLICAS_SHARE_VOLUME: replicas_share_volume,
    SINGLE_POD_VOLUME: single_pod_volume,
    WORKLOADS_SHARE_VOLUME: workloads_share_volume,
    AUTOSCALER_EXCEEDS_VOLUME: autoscaler_exceeds_volume,
    CO_LOCATION_IMPOSSIBLE: co_location_impossible,
    UNSUPPORTED_ACCESS_MODE: unsupported_access_mode,
    ACCESS_MODE_CHANGE: access_mode_change,
    LEFTOVER_ROLLING_UPDATE: leftover_rolling_update,
    UNSUPPORTED_STRATEGY: unsupported_strategy,
    IMPOSSIBLE_NAME: impossible_name,
    NO_NODE_FOR_VOLUME: no_node_for_volume,
    UNGUARDED_VOLUME: unguarded_volume,
    MISLABELLED_VOLUME: mislabelled_volume,
    SELINUX_LABEL_CONFLICT: selinux_label_conflict,
    UNRESOLVED_CLAIM: unresolved_claim,
    FENCING_LIVE_NODE: fencing_live_node,
}

/// A subject that the rules judge.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'a> {
    Workload(&'a Analysis<'a>),
    Claim(&'a ClaimReview<'a>),
    Scaled(&'a Scaling<'a>),
    Fencing(&'a FencingReview<'a>),
}

/// The most hazards that are reported for one object.
const MOST_HAZARDS: usize = 100;

/// The hazards that the rules find, the gravest first.
pub(crate) fn judge(subject: Subject<'_>) -> Vec<Hazard> {
    let mut found = Vec::new();
    let only = match subject {
        Subject::Workload(analysis) | Subject::Scaled(Scaling { analysis, .. }) => analysis.facts,
        Subject::Claim(review) => review.facts,
        Subject::Fencing(review) => review.facts,
    }
    .rule;
    let rules = RULES.iter().filter(|rule| only.is_none_or(|code| rule.code == code));
    for on in rules.flat_map(|rule| rule.on) {
        match (on, subject) {
            (On::Workload(judge), Subject::Workload(analysis)) => judge(analysis, &mut found),
            (On::Claim(judge), Subject::Claim(review)) => judge(review, &mut found),
            (On::Scaled(judge), Subject::Scaled(scaling)) => judge(scaling, &mut found),
            (On::Fencing(judge), Subject::Fencing(review)) => judge(review, &mut found),
            _ => {}
        }
    }
    for hazard in &mut found {
        if hazard.outcome == Outcome::Unknown {
            hazard.certainty = hazard.certainty.max(Certainty::Assumed);
        }
    }
    found.sort_by_key(|hazard| hazard.outcome);
    found.truncate(MOST_HAZARDS);
    if let Subject::Workload(analysis) | Subject::Scaled(Scaling { analysis, .. }) = subject {
        for hazard in &mut found {
            weigh(hazard, analysis);
        }
    }
    found
}

/// The hazards that the rules find in a workload, the gravest first.
pub(crate) fn judge_workload(analysis: &Analysis<'_>) -> Vec<Hazard> {
    judge(Subject::Workload(analysis))
}

/// Adds to a hazard its certainty and, if that is an assumption, a sentence that says what would
/// settle it.
fn weigh(hazard: &mut Hazard, analysis: &Analysis<'_>) {
    // A set, as a pod may have thousands of volumes; of equals, the first one counts.
    let concerned: HashSet<&Text> = hazard.volumes.iter().collect();
    let Some(surest) = analysis
        .volumes
        .iter()
        .filter(|volume| concerned.contains(volume.shown_name()))
        .filter_map(UsedVolume::grounds)
        .min_by_key(|grounds| grounds.certainty())
    else {
        return;
    };
    hazard.certainty = surest.certainty().max(hazard.certainty);
    if let Some(condition) = messages::condition(surest)
        && hazard.rule != codes::UNRESOLVED_CLAIM
    {
        hazard.brief = supposed(&hazard.brief, &condition);
    }
    hazard.advice.push_str(&messages::what_would_settle(surest));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_as_written_only_and_each_is_there_once() {
        assert_eq!(codes::find("single-pod-volume"), Some(codes::SINGLE_POD_VOLUME));
        assert_eq!(codes::find("Single-Pod-Volume"), None);
        let mut sorted = codes::ALL.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), codes::ALL.len());
    }

    #[test]
    fn every_rule_is_documented() {
        for rule in &RULES {
            let documentation = rule.documentation();
            for heading in ["Fires on", "Why", "Example", "What to do", "Claims", "Silent on"] {
                assert!(
                    documentation.contains(&format!("# {heading}")),
                    "{} lacks the part {heading:?}",
                    rule.code
                );
            }
            for claims in ["Named by the pod template", "A StatefulSet's own"] {
                let is_said = ["read", "not read"]
                    .iter()
                    .any(|it| documentation.contains(&format!("\n* {claims}: {it}")));
                assert!(is_said, "{} does not say whether it reads {claims:?}", rule.code);
            }
            assert!(rule.summary().ends_with('.'), "{}", rule.code);
        }
    }
}
