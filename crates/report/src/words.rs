//! Sentences that several formats share.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use doctor::diagnosis::{CaseEntry, WaitingEntry, span};

use super::live::Stuck;
use super::{Cause, Compared, Located, NotJudged, Report, Severity, Summary};
use engine::model::words::listed;

/// The summary in words. It begins with everything that was not judged.
pub fn summary(report: &Report) -> String {
    let summary = &report.summary;
    let mut text = not_judged_in_short(report);
    if !text.is_empty() {
        text = format!("Not judged: {text}. ");
    }
    if summary.stuck > 0 {
        text += &format!("{} stuck now. ", amount(summary.stuck, "volume"));
    }
    text += &findings(report);
    if summary.suppressed > 0 {
        text += &format!("; {} suppressed", summary.suppressed);
    }
    if summary.notices > 0 {
        text += &format!("; {}", amount(summary.notices, "note"));
    }
    let judged = amount(summary.judged, "object");
    let incomplete = match summary.incomplete {
        0 => String::new(),
        number => format!(" ({number} incomplete)"),
    };
    text += &format!(". {judged}{incomplete} checked in {}", origin(summary));
    if !summary.skipped.is_empty() {
        text += &format!(", {}", skipped(&summary.skipped));
    }
    if summary.fragments > 0 {
        text += &format!(", {} not judged", amount(summary.fragments, "fragment"));
    }
    text.push('.');
    if let Some(compared) = &summary.compared {
        text += &format!(" {}", since(compared));
    }
    text
}

/// The number of findings, in words.
fn findings(report: &Report) -> String {
    let summary = &report.summary;
    let is_all = report.not_judged.is_empty() && report.unread.is_empty();
    let (new, begin) = if summary.compared.is_some() { ("new ", "New: ") } else { ("", "") };
    match (summary.deny + summary.fix, summary.warn) {
        (0, 0) if is_all => format!(
            "No {new}findings{}",
            if summary.incomplete > 0 { " in the judged parts" } else { "" },
        ),
        (0, 0) => format!("Nothing {new}found in the rest"),
        (errors, warnings) => format!("{begin}{}", severities(errors, warnings)),
    }
}

/// The number of findings of an earlier report that remain, in words.
fn since(compared: &Compared) -> String {
    let count = |number: usize| match number {
        1 => "1 is".to_owned(),
        number => format!("{number} are"),
    };
    format!(
        "Of {}, {} still there and {} gone.",
        amount(compared.earlier, "earlier finding"),
        count(compared.still),
        count(compared.gone)
    )
}

/// The origin of the objects, in words.
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
    listed(&origin, "and")
}

/// The skipped objects, with the names of the most frequent kinds.
fn skipped(kinds: &BTreeMap<String, usize>) -> String {
    let all: usize = kinds.values().sum();
    let mut kinds: Vec<(&String, &usize)> = kinds.iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let named: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    format!("{all} of other kinds skipped ({})", beginning(&named))
}

/// The most names in a sentence.
const MOST_NAMES: usize = 3;

/// The first few names.
fn beginning<S: Borrow<str>>(names: &[S]) -> String {
    match names.split_at_checked(MOST_NAMES) {
        Some((first, [_, ..])) => first.join(", ") + ", …",
        _ => names.join(", "),
    }
}

/// The most reasons that are named if each applies to one object only.
const REASONS: usize = 10;

/// Everything that was not judged, in one sentence per reason.
pub(super) fn not_judged(report: &Report) -> Vec<String> {
    let mut reasons = grouped(report, |a, b| {
        let is_shared = matches!(a.cause, Cause::Elsewhere(_) | Cause::Files);
        is_same_kind(&a.cause, &b.cause) && (is_shared || a.reason == b.reason)
    });
    let mut alone = 0;
    let unnamed: Vec<&NotJudged> = reasons
        .extract_if(.., |all| {
            alone += usize::from(all.len() == 1);
            all.len() == 1 && alone > REASONS
        })
        .map(|all| all[0])
        .collect();
    let unnamed = (!unnamed.is_empty()).then(|| {
        let listed = by_kind(&unnamed);
        format!("{listed} were not judged either, each for its own reason; `--format json` lists them all.")
    });
    reasons.iter().map(|all| sentence(all)).chain(unnamed).collect()
}

/// The sentence about everything that was not judged for one reason.
fn sentence(all: &[&NotJudged]) -> String {
    let NotJudged { reason, cause, .. } = all[0];
    let done = if cause.is_of_rendering() { "rendered" } else { "judged" };
    let (who, why) = match (all, cause) {
        ([one], _) => (format!("The {} was", one.name()), reason.clone()),
        (_, Cause::Elsewhere(_) | Cause::Files) => {
            let why = "they need files that are not in this repository";
            (by_kind(all) + " were", why.to_owned())
        }
        _ => (by_kind(all) + " were", of_several(reason)),
    };
    let commands = commands(all);
    let run = if commands.is_empty() { String::new() } else { format!(" Run {commands}.") };
    format!("{who} not {done}: {why}.{run}")
}

/// The reason for one, as the reason for several: "it names no chart", "its chart is packed".
fn of_several(reason: &str) -> String {
    match reason.split_once(' ') {
        Some(("it", rest)) => format!("each {rest}"),
        Some(("its", rest)) => format!("their {rest}"),
        _ => reason.to_owned(),
    }
}

/// The counts of everything that was not judged, each with the reason and the commands in a few
/// words; empty if everything was.
pub fn not_judged_in_short(report: &Report) -> String {
    let unreadable = match report.unread.len() {
        0 => None,
        files => Some(format!("{} (unreadable)", amount(files, "file"))),
    };
    let causes = grouped(report, |a, b| is_same_kind(&a.cause, &b.cause));
    let parts = unreadable.into_iter().chain(causes.iter().map(|all| in_short(all)));
    parts.collect::<Vec<_>>().join("; ")
}

/// The counts of everything that was not judged for one cause, with the cause and the commands.
fn in_short(all: &[&NotJudged]) -> String {
    let hosts: BTreeSet<&Cause> = all.iter().map(|one| &one.cause).collect();
    let brief = all[0].cause.brief(&amount(hosts.len(), "host"));
    let counts = amounts(all);
    match commands(all).as_str() {
        "" => format!("{counts} ({brief})"),
        commands => format!("{counts} ({brief}: {commands})"),
    }
}

/// Everything that was not judged, in the order of the causes, in groups of those that are the
/// `same`.
fn grouped(report: &Report, same: impl Fn(&NotJudged, &NotJudged) -> bool) -> Vec<Vec<&NotJudged>> {
    let mut groups: Vec<Vec<&NotJudged>> = Vec::new();
    for one in &report.not_judged {
        match groups.iter_mut().find(|all| same(all[0], one)) {
            Some(all) => all.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups.sort_by_key(|all| &all[0].cause);
    groups
}

/// Whether two causes differ in their hosts at most.
fn is_same_kind(a: &Cause, b: &Cause) -> bool {
    a == b || matches!((a, b), (Cause::Elsewhere(_), Cause::Elsewhere(_)))
}

/// The first few commands, each once.
fn commands(all: &[&NotJudged]) -> String {
    let commands: BTreeSet<&String> = all.iter().filter_map(|one| one.command.as_ref()).collect();
    let quoted: Vec<String> = commands.iter().map(|command| format!("`{command}`")).collect();
    beginning(&quoted)
}

/// The number of each kind.
pub(super) fn kinds<'n>(all: impl Iterator<Item = &'n NotJudged>) -> BTreeMap<&'n str, usize> {
    let mut kinds = BTreeMap::new();
    for one in all {
        *kinds.entry(one.what.as_str()).or_default() += 1;
    }
    kinds
}

/// The number of each kind, and the names of the first few.
fn by_kind(all: &[&NotJudged]) -> String {
    let named: Vec<&str> = all.iter().map(|one| one.place.as_str()).collect();
    format!("{} ({})", amounts(all), beginning(&named))
}

/// The counts of each rule, the most frequent rule first.
pub(super) fn by_rule(report: &Report) -> Vec<Counts<'static>> {
    let found = report.reported();
    let mut rules =
        counted(found.map(|(severity, located)| (located.finding.rule, Some(severity))));
    rules.sort_by_key(|counts| std::cmp::Reverse(counts.errors + counts.warnings));
    rules
}

/// The counts of the problems in a namespace, or of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts<'r> {
    /// The name of the namespace or rule; empty for objects that have no namespace.
    pub name: &'r str,
    /// The number of volumes for which pods wait now.
    pub stuck: usize,
    /// The number of findings that the webhook would refuse or repair.
    pub errors: usize,
    /// The number of warnings.
    pub warnings: usize,
}

impl fmt::Display for Counts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "cluster" } else { self.name };
        let found = severities(self.errors, self.warnings);
        match (self.stuck, self.errors + self.warnings) {
            (0, _) => write!(f, "{name}: {found}"),
            (stuck, 0) => write!(f, "{name}: {stuck} stuck"),
            (stuck, _) => write!(f, "{name}: {stuck} stuck, {found}"),
        }
    }
}

/// The counts of problems by name, in the order of the names; a problem without a severity is a
/// stuck volume.
fn counted<'r>(problems: impl Iterator<Item = (&'r str, Option<Severity>)>) -> Vec<Counts<'r>> {
    let mut all: BTreeMap<&str, Counts<'_>> = BTreeMap::new();
    for (name, severity) in problems {
        let counts = all.entry(name).or_default();
        counts.name = name;
        match severity {
            None => counts.stuck += 1,
            Some(Severity::Error) => counts.errors += 1,
            Some(Severity::Warning) => counts.warnings += 1,
        }
    }
    all.into_values().collect()
}

/// The namespaces with reported problems, the worst first.
pub fn by_namespace(report: &Report) -> Vec<Counts<'_>> {
    let found = report.reported().map(|(severity, located)| (located.namespace(), Some(severity)));
    let stuck = report.stuck_now().map(|stuck| (stuck.case.volume.namespace.as_str(), None));
    let mut namespaces = counted(found.chain(stuck));
    namespaces
        .sort_by_key(|counts| std::cmp::Reverse((counts.stuck, counts.errors, counts.warnings)));
    namespaces
}

/// The reported problems of one namespace, or of all files.
pub(super) struct Section<'r> {
    /// The counts of the namespace; `None` if the report is not about a cluster.
    pub(super) counts: Option<Counts<'r>>,
    /// The stuck volumes.
    pub(super) stuck: Vec<&'r Stuck>,
    /// The findings, in a list for each object.
    pub(super) objects: Vec<Vec<(Severity, &'r Located)>>,
}

/// The sections of a report: for a cluster, one per namespace, the worst first.
pub(super) fn sections(report: &Report) -> Vec<Section<'_>> {
    let found: Vec<(Severity, &Located)> = report.reported().collect();
    let mut objects: Vec<Vec<_>> =
        found.chunk_by(|(_, a), (_, b)| same_object(a, b)).map(<[_]>::to_vec).collect();
    if !report.summary.cluster {
        return vec![Section { counts: None, stuck: Vec::new(), objects }];
    }
    let namespaces = by_namespace(report).into_iter();
    let sections = namespaces.map(|counts| {
        let stuck = report.stuck_now().filter(|stuck| stuck.case.volume.namespace == counts.name);
        let of_it = |findings: &mut Vec<(Severity, &Located)>| {
            findings.iter().any(|(_, located)| located.namespace() == counts.name)
        };
        Section {
            counts: Some(counts),
            stuck: stuck.collect(),
            objects: objects.extract_if(.., of_it).collect(),
        }
    });
    sections.collect()
}

/// Whether two findings are about one object of one file.
fn same_object(a: &Located, b: &Located) -> bool {
    a.finding.object == b.finding.object && a.file() == b.file()
}

/// The most pods that are named; further ones are counted.
pub(super) const NAMED: usize = 5;

/// The claim, as `PersistentVolumeClaim shop/data`.
pub(super) fn claim(case: &CaseEntry) -> String {
    let (namespace, claim) = (&case.volume.namespace, &case.volume.claim);
    format!("PersistentVolumeClaim {namespace}/{claim}")
}

/// The waiting pods, their nodes and the time that they have waited.
pub(super) fn waiting(case: &CaseEntry) -> String {
    let mut pods: Vec<String> = case
        .waiting
        .iter()
        .take(NAMED)
        .map(|waiting| {
            let node = waiting.node.as_ref().map_or_else(String::new, |node| format!(" on {node}"));
            let (pod, workload) = (&waiting.pod, &waiting.workload);
            format!("{pod} of {workload}{node}{}", so_far(waiting))
        })
        .collect();
    if case.waiting.len() > NAMED {
        pods.push(format!("{} more", case.waiting.len() - NAMED));
    }
    format!("waits: {}", pods.join("; "))
}

/// The time that the pod has waited, as the end of a phrase.
pub(super) fn so_far(waiting: &WaitingEntry) -> String {
    waiting.seconds.map_or_else(String::new, |seconds| format!(", for {}", span(seconds)))
}

/// Formats counts as `2 errors, 1 warning`, without a count that is zero.
pub(crate) fn severities(errors: usize, warnings: usize) -> String {
    let of_errors = amount(errors, "error");
    let of_warnings = amount(warnings, "warning");
    match (errors, warnings) {
        (_, 0) => of_errors,
        (0, _) => of_warnings,
        _ => format!("{of_errors}, {of_warnings}"),
    }
}

/// The number of each kind, as a list.
fn amounts(all: &[&NotJudged]) -> String {
    let kinds = kinds(all.iter().copied()).into_iter();
    listed(&kinds.map(|(kind, count)| amount(count, kind)).collect::<Vec<_>>(), "and")
}

pub(super) fn amount(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        // The name of a file has no plural.
        _ if what.contains('.') => format!("{number} {what} files"),
        _ => format!("{number} {what}s"),
    }
}

/// Wraps the text to lines of `width` characters. Longer words are not broken, and neither is what
/// stands between backticks: a command is pasted into a shell.
pub(super) fn folded(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in words(text) {
        let letters = word.chars().count();
        if length > 0 && length + 1 + letters > width {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += letters;
    }
    lines
}

/// The text after `start`, wrapped to lines of `width` characters, which begin below the text.
pub(super) fn hanging(start: &str, text: &str, width: usize) -> String {
    let indent = start.chars().count();
    let below = format!("\n{}", " ".repeat(indent));
    format!("{start}{}", folded(text, width.saturating_sub(indent)).replace('\n', &below))
}

/// The words of a text. What stands between two backticks is part of one word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut further = text.matches('`').count();
    let mut is_code = false;
    let ends = move |letter: char| {
        if letter == '`' {
            further -= 1;
            // The last backtick opens nothing.
            is_code = !is_code && further > 0;
        }
        letter.is_whitespace() && !is_code
    };
    text.split(ends).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{amount, folded};

    #[test]
    fn what_stands_between_backticks_is_one_word() {
        for (text, expected) in [
            ("one two  three", "one two\nthree"),
            ("see `a b c d e`. Then go", "see\n`a b c d e`.\nThen go"),
            ("(`a b`, `c d e`)", "(`a b`,\n`c d e`)"),
            ("a ` which closes nothing", "a ` which\ncloses\nnothing"),
            ("`a b` and ` c d e f g", "`a b` and\n` c d e f\ng"),
        ] {
            assert_eq!(folded(text, 9), expected);
        }
    }

    #[test]
    fn names_of_files_have_no_plural() {
        for (number, what, expected) in [
            (1, "chart", "1 chart"),
            (7, "chart", "7 charts"),
            (1, "helmfile.yaml", "1 helmfile.yaml"),
            (7, "helmfile.yaml", "7 helmfile.yaml files"),
        ] {
            assert_eq!(amount(number, what), expected);
        }
    }
}
