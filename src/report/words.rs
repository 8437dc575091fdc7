//! Sentences that several formats say.

use std::collections::BTreeMap;

use super::{Missing, Report, Severity, Summary, Unopened};

/// The summary in words.
pub(super) fn summary(summary: &Summary) -> String {
    let unopened: Vec<String> = summary
        .unopened
        .iter()
        .map(|(what, count)| amount(*count, what))
        .collect();
    let mut text = match (summary.deny + summary.fix, summary.warn) {
        (0, 0) if unopened.is_empty() => "No findings".to_owned(),
        (0, 0) => "No findings in what was looked at".to_owned(),
        (errors, warnings) => severities(errors, warnings),
    };
    if summary.suppressed > 0 {
        text += &format!("; {} suppressed", summary.suppressed);
    }
    if summary.notices > 0 {
        text += &format!("; {}", amount(summary.notices, "notice"));
    }
    let judged = amount(summary.judged, "object");
    text += &format!(". {judged} judged in {}", origin(summary));
    let skipped = skipped(&summary.skipped);
    for (number, said) in [
        (summary.facts, format!("{} used as facts", summary.facts)),
        (summary.skipped.len(), skipped),
        (
            summary.templates,
            not(summary.templates, "template", "judged"),
        ),
        (
            summary.fragments,
            not(summary.fragments, "fragment", "judged"),
        ),
        (summary.links, not(summary.links, "link", "followed")),
    ] {
        if number > 0 {
            text += &format!(", {said}");
        }
    }
    if summary.unreadable > 0 {
        text += &format!("; {} could not be read", summary.unreadable);
    }
    text.push('.');
    if !unopened.is_empty() {
        text += &format!(" Not looked into: {}.", listed(&unopened));
    }
    text
}

/// Where the objects were found.
fn origin(summary: &Summary) -> String {
    let mut origin = Vec::new();
    if summary.cluster {
        origin.push("the cluster".to_owned());
    } else if summary.files > 0 || summary.rendered == 0 {
        origin.push(amount(summary.files, "file"));
    }
    match summary.rendered {
        0 => {}
        1 => origin.push("1 rendered chart or kustomization".to_owned()),
        roots => origin.push(format!("{roots} rendered charts and kustomizations")),
    }
    listed(&origin)
}

/// What was skipped, the most frequent kinds by name.
fn skipped(kinds: &BTreeMap<String, usize>) -> String {
    const NAMED: usize = 3;
    let all: usize = kinds.values().sum();
    let mut kinds: Vec<(&String, &usize)> = kinds.iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let named: Vec<String> = kinds
        .iter()
        .take(NAMED)
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let rest = if kinds.len() > NAMED { ", …" } else { "" };
    format!("{all} of other kinds skipped ({}{rest})", named.join(", "))
}

fn not(number: usize, what: &str, done: &str) -> String {
    format!("{} not {done}", amount(number, what))
}

/// What was not looked into and why, a sentence for each reason.
pub(super) fn unopened(report: &Report) -> Vec<String> {
    let mut reasons: Vec<((Option<Missing>, &str), Vec<&Unopened>)> = Vec::new();
    for unopened in &report.unopened {
        let reason = match unopened.missing {
            Some(missing) => (Some(missing), ""),
            None => (None, unopened.reason.as_str()),
        };
        match reasons.iter_mut().find(|(it, _)| *it == reason) {
            Some((_, all)) => all.push(unopened),
            None => reasons.push((reason, vec![unopened])),
        }
    }
    reasons.sort_by_key(|((missing, _), _)| *missing);
    let sentences = reasons.into_iter().map(|((missing, reason), all)| {
        let way_out = match missing {
            None => "",
            Some(Missing::Charts) => "; `--fetch` gets what is missing",
            Some(Missing::Files) => {
                ", and rendering has no network; render it yourself and pipe the result into `check -`"
            }
        };
        match (&all[..], missing) {
            ([one], _) => format!(
                "The {} {} was not rendered: {}{way_out}.",
                one.what, one.path, one.reason
            ),
            (_, None) => format!("{} were not rendered: {reason}.", by_kind(&all)),
            _ => format!(
                "{} were not rendered: they need what is not in this repository{way_out}.",
                by_kind(&all)
            ),
        }
    });
    sentences.collect()
}

/// How many there are of each kind, with the first few by name.
fn by_kind(all: &[&Unopened]) -> String {
    const NAMED: usize = 3;
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for unopened in all {
        *kinds.entry(&unopened.what).or_default() += 1;
    }
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(kind, count)| amount(*count, kind))
        .collect();
    let named: Vec<&str> = all.iter().take(NAMED).map(|it| it.path.as_str()).collect();
    let rest = if all.len() > NAMED { ", …" } else { "" };
    format!("{} ({}{rest})", listed(&kinds), named.join(", "))
}

/// For each rule, how many findings there are: the most frequent first.
pub(super) fn by_rule(report: &Report) -> Vec<(&'static str, usize, usize)> {
    let mut rules: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
    for (severity, located) in report.reported() {
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
