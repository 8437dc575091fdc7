//! What a reader of a report may do next.

use std::collections::BTreeSet;

use super::CheckOptions;
use engine::policy::{Action, keys};
use engine::rules::{Certainty, Outcome};
use report::{Located, Report};

/// A sentence for each way that is open.
pub(super) fn of(report: &Report, options: &CheckOptions) -> Vec<String> {
    let reported: Vec<&Located> = report
        .findings
        .iter()
        .filter(|located| located.finding.action != Action::Ignore)
        .filter(|located| located.is_new != Some(false))
        .collect();
    let Some(first) = reported.first() else {
        return Vec::new();
    };
    let mut ways = Vec::new();
    let fixable: BTreeSet<String> = reported
        .iter()
        .filter(|located| is_fixable(located))
        .map(|located| located.finding.object.to_string())
        .collect();
    if !fixable.is_empty() && !options.fix && !options.diff {
        let objects = match fixable.len() {
            1 => "1 object".to_owned(),
            more => format!("{more} objects"),
        };
        ways.push(format!(
            "`check --fix` repairs {objects}; `check --diff` shows how."
        ));
    }
    let unknown = reported
        .iter()
        .filter(|located| {
            let finding = &located.finding;
            let is_unknown = finding.outcome == Outcome::Unknown;
            (is_unknown || finding.certainty == Certainty::Assumed) && !located.is_unrendered
        })
        .count();
    if unknown > 0 && options.facts.is_empty() && !options.reads_cluster() {
        let findings = match unknown {
            1 => "1 finding is a guess".to_owned(),
            more => format!("{more} findings are guesses"),
        };
        ways.push(format!(
            "{findings}, because the checked files do not say what the storage can do. To be certain, pass --cluster, or --facts with a file from `multi-attach-guard snapshot`."
        ));
    }
    let rule = first.finding.rule;
    ways.push(format!(
        "`multi-attach-guard rules {rule}` explains the rule. To silence it, annotate the object with {}: \"{rule}\" and give the reason in {}.",
        keys::IGNORE,
        keys::REASON
    ));
    ways
}

/// Whether the file can be edited, be it that a kustomization takes the object from
/// it, and the remedy is one that nobody has to ask for.
fn is_fixable(located: &Located) -> bool {
    let in_file = located.fix.is_some()
        || located
            .place
            .as_ref()
            .is_some_and(|place| place.path.is_some() && place.template.is_none());
    let remedies = &located.finding.remedies;
    in_file
        && matches!(located.finding.action, Action::Deny | Action::Fix)
        && remedies
            .first()
            .is_some_and(|proposal| proposal.remedy.name != "colocate")
}
