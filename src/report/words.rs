//! Sentences that several formats say.

use std::collections::BTreeMap;

use super::{Report, Severity, Summary, Unopened};
use engine::verdict::Finding;

/// The summary in words.
pub(super) fn summary(summary: &Summary) -> String {
    let looked_past = !summary.unopened.is_empty();
    let mut said = match (summary.deny + summary.fix, summary.warn) {
        (0, 0) if looked_past => "No findings in what was looked at".to_owned(),
        (0, 0) => "No findings".to_owned(),
        (errors, warnings) => severities(errors, warnings),
    };
    if summary.suppressed > 0 {
        said += &format!("; {} suppressed", summary.suppressed);
    }
    if summary.notices > 0 {
        said += &format!("; {}", amount(summary.notices, "notice"));
    }
    said += &format!(". {} judged in ", amount(summary.judged, "object"));
    if summary.cluster {
        said += "the cluster";
    } else if summary.files > 0 || summary.rendered == 0 {
        said += &amount(summary.files, "file");
    }
    if summary.files > 0 && summary.rendered > 0 {
        said += " and ";
    }
    if summary.rendered > 0 {
        let roots = if summary.rendered == 1 {
            "chart or kustomization"
        } else {
            "charts and kustomizations"
        };
        said += &format!("{} rendered {roots}", summary.rendered);
    }
    if summary.facts > 0 {
        said += &format!(", {} used as facts", summary.facts);
    }
    let skipped: usize = summary.skipped.values().sum();
    if skipped > 0 {
        let mut kinds: Vec<(&String, &usize)> = summary.skipped.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let named: Vec<String> = kinds
            .iter()
            .take(3)
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        let rest = if kinds.len() > 3 { ", …" } else { "" };
        said += &format!(
            ", {skipped} of other kinds passed over ({}{rest})",
            named.join(", ")
        );
    }
    for (number, what, how) in [
        (summary.templates, "template", "not judged"),
        (summary.fragments, "fragment", "not judged"),
        (summary.links, "link", "not followed"),
    ] {
        if number > 0 {
            said += &format!(", {} {how}", amount(number, what));
        }
    }
    if summary.unreadable > 0 {
        said += &format!("; {} could not be read", summary.unreadable);
    }
    said.push('.');
    if looked_past {
        let counted: Vec<String> = summary
            .unopened
            .iter()
            .map(|(what, count)| amount(*count, what))
            .collect();
        said += &format!(" Not looked into: {}.", listed(&counted));
    }
    said
}

/// Why something was not looked into.
pub(super) fn unopened(unopened: &Unopened) -> String {
    format!(
        "The {} {} was not rendered: {}.",
        unopened.what, unopened.path, unopened.reason
    )
}

/// For each rule, how many findings there are: the most frequent first.
pub(super) fn by_rule(report: &Report) -> Vec<(&'static str, usize, usize)> {
    let mut rules: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
    for (severity, located) in report.told() {
        let (errors, warnings) = rules.entry(located.finding.rule).or_default();
        match severity {
            Severity::Error => *errors += 1,
            Severity::Warning => *warnings += 1,
        }
    }
    let mut rules: Vec<_> = rules
        .into_iter()
        .map(|(rule, (errors, warnings))| (rule, errors, warnings))
        .collect();
    rules.sort_by_key(|(_, errors, warnings)| std::cmp::Reverse(errors + warnings));
    rules
}

/// `2 errors, 1 warning`, without what there is none of.
#[must_use]
pub fn severities(errors: usize, warnings: usize) -> String {
    match (errors, warnings) {
        (errors, 0) => amount(errors, "error"),
        (0, warnings) => amount(warnings, "warning"),
        (errors, warnings) => format!(
            "{}, {}",
            amount(errors, "error"),
            amount(warnings, "warning")
        ),
    }
}

pub(super) fn amount(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [words @ .., last] => format!("{} and {last}", words.join(", ")),
    }
}

/// What was found, in a few words on one line.
pub(super) fn brief(finding: &Finding) -> String {
    finding.brief.replace(char::is_control, " ")
}
