//! Sentences that several formats share.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;

use doctor::diagnosis::{CaseEntry, WaitingEntry, span};

use super::live::Stuck;
use super::{Compared, Located, Missing, Report, Severity, Summary, Unopened};
use engine::model::words::listed;

/// The summary in words.
pub fn summary(summary: &Summary) -> String {
    let mut text = String::new();
    if summary.stuck > 0 {
        text = format!("{} stuck now. ", amount(summary.stuck, "volume"));
    }
    text += &findings(summary);
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
    for (number, what, done) in [
        (summary.templates, "template", "judged"),
        (summary.fragments, "fragment", "judged"),
        (summary.links, "link", "followed"),
    ] {
        if number > 0 {
            text += &format!(", {} not {done}", amount(number, what));
        }
    }
    if summary.unreadable > 0 {
        text += &format!("; {} could not be read", summary.unreadable);
    }
    text.push('.');
    if !summary.unopened.is_empty() {
        text += &format!(" Not looked into: {}.", amounts(&summary.unopened));
    }
    if let Some(compared) = &summary.compared {
        text += &format!(" {}", since(compared));
    }
    text
}

/// The number of findings, in words.
fn findings(summary: &Summary) -> String {
    let new = summary.compared.is_some();
    match (summary.deny + summary.fix, summary.warn) {
        (0, 0) => format!(
            "No {}findings{}",
            if new { "new " } else { "" },
            match (summary.incomplete, summary.unopened.is_empty()) {
                (0, true) => "",
                (0, false) => " in the judged objects",
                _ => " in the judged parts",
            },
        ),
        (errors, warnings) if new => format!("New: {}", severities(errors, warnings)),
        (errors, warnings) => severities(errors, warnings),
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

/// The charts, kustomizations and opaque objects that were not opened, in one sentence per reason.
pub(super) fn unopened(report: &Report) -> Vec<String> {
    let same = |a: &Unopened, b: &Unopened| {
        let is_shared = matches!(a.missing, Some(Missing::Charts | Missing::Files));
        a.missing == b.missing && (is_shared || a.reason == b.reason)
    };
    let mut reasons: Vec<Vec<&Unopened>> = Vec::new();
    for unopened in &report.unopened {
        match reasons.iter_mut().find(|all| same(all[0], unopened)) {
            Some(all) => all.push(unopened),
            None => reasons.push(vec![unopened]),
        }
    }
    reasons.sort_by_key(|all| all[0].missing);
    let mut alone = 0;
    let is_one_too_many = |all: &mut Vec<&Unopened>| {
        alone += usize::from(all.len() == 1);
        all.len() == 1 && alone > REASONS
    };
    let unnamed: Vec<&Unopened> =
        reasons.extract_if(.., is_one_too_many).map(|all| all[0]).collect();
    let unnamed = (!unnamed.is_empty()).then(|| {
        let listed = by_kind(&unnamed);
        format!("{listed} were not rendered either, each for its own reason; `--format json` lists them all.")
    });
    let sentences = reasons.into_iter().map(|all| {
        let Unopened {
            missing, reason, ..
        } = all[0];
        let way_out = match missing {
            None | Some(Missing::Tool) => "",
            Some(Missing::Charts) => "; `--fetch` gets the missing files",
            Some(Missing::Files) => {
                ", and rendering has no network; render it yourself and pipe the result into `check -`"
            }
        };
        match (&all[..], missing) {
            ([one], _) => format!(
                "The {} {} was not rendered: {}{way_out}.",
                one.what, one.path, one.reason
            ),
            (_, None | Some(Missing::Tool)) => format!("{} were not rendered: {reason}.", by_kind(&all)),
            _ => format!(
                "{} were not rendered: they need files that are not in this repository{way_out}.",
                by_kind(&all)
            ),
        }
    });
    sentences.chain(unnamed).collect()
}

/// The number of each kind, and the names of the first few.
fn by_kind(all: &[&Unopened]) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for unopened in all {
        *kinds.entry(&unopened.what).or_default() += 1;
    }
    let named: Vec<&str> = all.iter().map(|unopened| unopened.path.as_str()).collect();
    format!("{} ({})", amounts(&kinds), beginning(&named))
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
    let found = report.reported().map(|(severity, located)| (namespace(located), Some(severity)));
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
            findings.iter().any(|(_, located)| namespace(located) == counts.name)
        };
        Section {
            counts: Some(counts),
            stuck: stuck.collect(),
            objects: objects.extract_if(.., of_it).collect(),
        }
    });
    sections.collect()
}

fn namespace(located: &Located) -> &str {
    located.finding.object.namespace.as_deref().unwrap_or_default()
}

/// Whether two findings are about one object of one file.
fn same_object(a: &Located, b: &Located) -> bool {
    let file = |located: &Located| located.place.as_ref().map(|place| place.file.clone());
    a.finding.object == b.finding.object && file(a) == file(b)
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
fn amounts<K: Borrow<str>>(kinds: &BTreeMap<K, usize>) -> String {
    let of_kind = |(kind, count): (&K, &usize)| amount(*count, kind.borrow());
    listed(&kinds.iter().map(of_kind).collect::<Vec<_>>(), "and")
}

pub(super) fn amount(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        // The name of a file has no plural.
        _ if what.contains('.') => format!("{number} {what} files"),
        _ => format!("{number} {what}s"),
    }
}

/// Wraps the text to lines of `width` characters; longer words are not broken.
pub(super) fn folded(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
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

#[cfg(test)]
mod tests {
    use super::amount;

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
