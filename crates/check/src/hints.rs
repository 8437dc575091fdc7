//! Suggestions for the next steps of a report's reader.

use std::collections::BTreeSet;

use engine::policy::Action;
use engine::rules::{Certainty, Outcome};
use report::{Located, Report};

/// The options of the user that decide about the suggestions.
#[derive(Clone, Copy, Debug)]
pub struct Hints {
    /// Whether `--fix` is given.
    pub fix: bool,
    /// Whether `--diff` is given.
    pub diff: bool,
    /// Whether `--remedy` is given.
    pub names_remedy: bool,
    /// Whether facts about the cluster are known.
    pub knows_cluster: bool,
}

impl Hints {
    /// Adds how `--fix` handles each finding, and one suggestion for each possible next step.
    pub fn add_to(self, report: &mut Report) {
        let found = report.findings.iter_mut();
        for located in found.filter(|located| located.finding.action != Action::Ignore) {
            let by_fix = match left_alone(located, self) {
                None if self.diff => "`--fix` does it".to_owned(),
                None if self.fix => "`--fix` could not edit the file".to_owned(),
                None => "`check --fix` does it".to_owned(),
                Some(why) => why,
            };
            located.by_fix = Some(by_fix);
        }
        report.hints = ways(report, self);
    }
}

fn ways(report: &Report, options: Hints) -> Vec<String> {
    let reported = || report.reported().map(|(_, located)| located);
    let mut ways = Vec::new();
    // A remedy that is applied only on request does not count.
    let by_default = Hints { names_remedy: false, ..options };
    let fixable: BTreeSet<String> = reported()
        .filter(|located| left_alone(located, by_default).is_none())
        .map(|located| located.finding.object.to_string())
        .collect();
    if fixable.len() > 1 && !options.fix && !options.diff {
        let objects = fixable.len();
        ways.push(format!("`check --fix` repairs {objects} objects; `check --diff` shows how."));
    }
    let is_guess = |located: &&Located| {
        let finding = &located.finding;
        let is_unknown = finding.outcome == Outcome::Unknown;
        (is_unknown || finding.certainty == Certainty::Assumed) && !located.is_unrendered
    };
    let guesses = reported().filter(is_guess).count();
    if guesses > 0 && !options.knows_cluster {
        let findings = match guesses {
            1 => "1 finding is a guess".to_owned(),
            more => format!("{more} findings are guesses"),
        };
        ways.push(format!(
            "{findings}: pass --cluster, or --facts FILE from `multi-attach-guard snapshot`."
        ));
    }
    ways
}

/// The reason why `--fix` does not change the object at fault.
fn left_alone(located: &Located, options: Hints) -> Option<String> {
    let finding = &located.finding;
    let place = located.place.as_ref();
    let first = finding.remedies.first().map(|proposal| proposal.remedy.name);
    Some(match (first, located.template()) {
        (None, _) => "`--fix` has no remedy for it".to_owned(),
        _ if finding.action == Action::Warn => "`--fix` changes only errors".to_owned(),
        (Some(COLOCATE), _) if !options.names_remedy => {
            format!("`--fix --remedy {COLOCATE}` does it")
        }
        (_, Some(template)) if located.fix.is_none() => {
            format!("`--fix` prints a patch, as it is rendered from {template}")
        }
        _ if place.is_none_or(|place| place.path.is_none()) => {
            "`--fix` prints a patch, as it was piped".to_owned()
        }
        _ => return None,
    })
}

/// The remedy that is applied only on request.
const COLOCATE: &str = "colocate";
