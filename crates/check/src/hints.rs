//! What a reader of a report may do next.

use std::collections::BTreeSet;

use engine::policy::Action;
use engine::rules::{Certainty, Outcome};
use report::{Located, Report};

/// What the user asked for, as far as it decides what to do next.
#[derive(Clone, Copy, Debug)]
pub struct Hints {
    /// `--fix`.
    pub fix: bool,
    /// `--diff`.
    pub diff: bool,
    /// `--remedy`.
    pub names_remedy: bool,
    /// Whether facts about the cluster are known.
    pub knows_cluster: bool,
}

impl Hints {
    /// Says what `--fix` does about each finding, and a sentence for each way that is open.
    pub fn add_to(self, report: &mut Report) {
        explain_fix(report, self);
        report.hints = ways(report, self);
    }
}

fn ways(report: &Report, options: Hints) -> Vec<String> {
    let reported: Vec<&Located> = report
        .findings
        .iter()
        .filter(|located| located.finding.action != Action::Ignore)
        .filter(|located| located.is_new != Some(false))
        .collect();
    let mut ways = Vec::new();
    let fixable: BTreeSet<String> = reported
        .iter()
        .filter(|located| is_fixable(located))
        .map(|located| located.finding.object.to_string())
        .collect();
    if fixable.len() > 1 && !options.fix && !options.diff {
        let objects = fixable.len();
        ways.push(format!(
            "`check --fix` repairs {objects} objects; `check --diff` shows how."
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
    if unknown > 0 && !options.knows_cluster {
        let findings = match unknown {
            1 => "1 finding is a guess".to_owned(),
            more => format!("{more} findings are guesses"),
        };
        ways.push(format!(
            "{findings}: pass --cluster, or --facts FILE from `multi-attach-guard snapshot`."
        ));
    }
    ways
}

/// Says of each finding what `--fix` does about it, or why it leaves it alone.
fn explain_fix(report: &mut Report, options: Hints) {
    let found = report.findings.iter_mut();
    for located in found.filter(|it| it.finding.action != Action::Ignore) {
        let by_fix = match left_alone(located, options) {
            None if options.diff => "`--fix` does it".to_owned(),
            None if options.fix => "`--fix` could not edit the file".to_owned(),
            None => "`check --fix` does it".to_owned(),
            Some(why) => why,
        };
        located.by_fix = Some(by_fix);
    }
}

/// Why `--fix` does not change what is at fault.
fn left_alone(located: &Located, options: Hints) -> Option<String> {
    let finding = &located.finding;
    let place = located.place.as_ref();
    let template = place.and_then(|it| it.template.as_deref());
    let first = finding.remedies.first().map(|it| it.remedy.name);
    Some(match (first, template) {
        (None, _) => "`--fix` has no remedy for it".to_owned(),
        _ if finding.action == Action::Warn => "`--fix` changes only what is an error".to_owned(),
        (Some(COLOCATE), _) if !options.names_remedy => {
            format!("`--fix --remedy {COLOCATE}` does it")
        }
        (_, Some(template)) if located.fix.is_none() => {
            format!("`--fix` prints a patch, as it is rendered from {template}")
        }
        _ if place.is_none_or(|it| it.path.is_none()) => {
            "`--fix` prints a patch, as it was piped".to_owned()
        }
        _ => return None,
    })
}

/// The remedy that nobody gets who does not ask for it.
const COLOCATE: &str = "colocate";

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
            .is_some_and(|proposal| proposal.remedy.name != COLOCATE)
}
