//! Suggestions for the next steps of a report's reader.

use std::collections::BTreeSet;

use engine::policy::{Action, RemedyChoice};
use engine::rules::{Certainty, Outcome};
use engine::verdict::Finding;
use report::{Located, Place, Report};

/// The options of the user that decide about the suggestions.
#[derive(Clone, Copy, Debug)]
pub struct Hints {
    /// Whether `--fix` is given.
    pub fix: bool,
    /// Whether `--diff` is given.
    pub diff: bool,
    /// The remedy that `--remedy` names.
    pub remedy: Option<RemedyChoice>,
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
    let by_default = Hints { remedy: None, ..options };
    let (fixable, left): (Vec<&Located>, Vec<&Located>) =
        reported().partition(|located| left_alone(located, by_default).is_none());
    let objects = |found: Vec<&Located>| -> BTreeSet<String> {
        found.into_iter().map(|located| located.finding.object.to_string()).collect()
    };
    let fixable = &objects(fixable) - &objects(left);
    if fixable.len() > 1 && !options.fix && !options.diff {
        let count = fixable.len();
        ways.push(format!("`check --fix` repairs {count} objects; `check --diff` shows how."));
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
    let Some(remedy) = remedy(finding, options) else {
        return Some(match finding.remedies[..] {
            [] => "`--fix` has no remedy for it".to_owned(),
            _ => "`--fix` changes only errors".to_owned(),
        });
    };
    let fix = match remedy {
        Remedy::Named(name) => format!("`--fix --remedy {name}`"),
        Remedy::Chosen => "`--fix`".to_owned(),
    };
    let is_piped = place.is_some_and(Place::is_of_stdin);
    let applied = match remedy {
        Remedy::Named(name) => Some(name),
        Remedy::Chosen => options.remedy,
    };
    // The help names the change of the first remedy.
    let mut further = finding.remedies.iter().skip(1).map(|proposal| proposal.remedy);
    let other = applied.and_then(|applied| {
        further.find(|other| RemedyChoice::from_name(other.name) == Some(applied))
    });
    Some(match (remedy, located.template()) {
        (Remedy::Chosen, _) if is_piped && options.fix => return None,
        _ if is_piped && !options.diff => {
            format!("{fix} writes the repaired text to standard output")
        }
        (_, Some(template)) if located.fix.is_none() => {
            format!("{fix} prints a patch, as it is rendered from {template}")
        }
        _ if place.is_none_or(|place| place.path.is_none()) => {
            format!("{fix} prints a patch, as it was piped")
        }
        _ => match (other, remedy) {
            (Some(other), _) => format!("{fix} does only this: {}", other.change),
            (None, Remedy::Named(_)) => format!("{fix} does it"),
            (None, Remedy::Chosen) => return None,
        },
    })
}

/// The remedy that `--fix` applies.
#[derive(Clone, Copy)]
enum Remedy {
    /// The one that the options or the policy choose.
    Chosen,
    /// One that is applied only if `--remedy` names it.
    Named(RemedyChoice),
}

/// The remedy for the finding; `None` if `--fix` applies none.
fn remedy(finding: &Finding, options: Hints) -> Option<Remedy> {
    let mut offered = finding
        .remedies
        .iter()
        .filter_map(|proposal| RemedyChoice::from_name(proposal.remedy.name));
    if finding.action != Action::Warn {
        let first = offered.next()?;
        let on_request = first == RemedyChoice::Colocate && options.remedy.is_none();
        return Some(if on_request { Remedy::Named(first) } else { Remedy::Chosen });
    }
    let is_guess = finding.certainty == Certainty::Assumed
        && finding.outcome != Outcome::Delay
        && finding.lowered.is_none();
    let mut offered = offered.filter(|choice| is_guess && choice.suits_every_class());
    match options.remedy {
        Some(named) if offered.clone().any(|choice| choice == named) => Some(Remedy::Chosen),
        _ => offered.next().map(Remedy::Named),
    }
}
