//! Suppressions that have no effect.

use std::collections::HashSet;
use std::path::Path;

use super::files::Files;
use super::line;
use super::scope::Context;
use engine::model::object::Object;
use engine::policy::{Action, Policy, SuppressedBy, ignored_rules, keys};
use engine::rules::{Outcome, codes};
use engine::verdict::Finding;
use report::{Notice, Report};

/// The object's suppressing annotations that match no finding, one sentence each. If the object
/// could not be judged completely, they may be needed and none is named.
pub(super) fn on_object(context: &Context<'_>, findings: &[Finding]) -> Vec<String> {
    let known = context.known;
    // An object without pods may need the suppression once it has some. Others may need it with
    // what was not rendered, or in another overlay.
    let asleep = matches!(&known.object, Object::Workload(workload) if !workload.has_pods());
    let varies = context.doubt().is_some() || context.parsed.is_shared(known);
    if asleep || varies || is_unknown(findings) {
        return Vec::new();
    }
    let annotations = &known.object.metadata().annotations;
    let mut unused: Vec<String> = ignored_rules(annotations)
        .filter(|rule| findings.iter().all(|finding| finding.rule != *rule))
        .filter_map(|rule| match codes::find(rule) {
            Some(_) => Some(format!(
                "The annotation {} lists {rule}, but that rule finds nothing here; take it off the list.",
                keys::IGNORE
            )),
            // If there are findings, the policy has already reported the unknown rule.
            None => findings.is_empty().then(|| {
                format!(
                    "The annotation {} lists \"{rule}\", and there is no such rule.",
                    keys::IGNORE
                )
            }),
        })
        .collect();
    let action = annotations.get(keys::ACTION).map(str::trim);
    if findings.is_empty() && action.and_then(Action::from_name) == Some(Action::Ignore) {
        unused.push(format!(
            "The annotation {} has nothing to silence here; remove it.",
            keys::ACTION
        ));
    }
    unused
}

/// The exemptions of the policy `file`, with the given `text`, that cover no finding of a report on
/// everything to which the policy applies.
pub fn unused_exemptions(
    policy: &Policy,
    file: &Path,
    text: &str,
    report: &Report,
    files: &dyn Files,
) -> Vec<Notice> {
    let all_seen = report.unread.is_empty()
        && report.not_judged.is_empty()
        && !is_unknown(report.findings.iter().map(|located| &located.finding));
    if !all_seen {
        return Vec::new();
    }
    let used: HashSet<u64> = report
        .findings
        .iter()
        .filter_map(|located| match located.finding.suppressed.as_ref()?.by {
            SuppressedBy::Exemption { line } => Some(line),
            SuppressedBy::Namespace | SuppressedBy::Owner | SuppressedBy::Object => None,
        })
        .collect();
    policy
        .exemptions()
        .filter(|(line, _)| !used.contains(line))
        .map(|(line, reason)| {
            let number = usize::try_from(line).unwrap_or(1);
            let exemption = line::whole(number, text.lines().nth(number - 1).unwrap_or_default());
            let name = file.display().to_string();
            Notice {
                object: None,
                place: Some(line::in_file(exemption, name, None, files)),
                text: format!(
                    "The exemption \"{reason}\" of the policy covers nothing that was found; remove it, unless the cluster needs it."
                ),
            }
        })
        .collect()
}

fn is_unknown<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> bool {
    findings.into_iter().any(|finding| finding.outcome == Outcome::Unknown)
}
