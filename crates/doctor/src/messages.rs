//! The catalog of messages, and the statements that causes find in them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use serde::Deserialize;

/// The content of `messages.yaml`, whose head explains it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalog {
    /// Commands that show more, by name, with the placeholders `{volume}`, `{claim}`, `{pod}` and
    /// `{namespace}`.
    commands: HashMap<String, String>,
    /// The beginnings of lines that continue the line before.
    pub(super) continued: Vec<String>,
    /// What each gRPC code promises, with the placeholders `{code}` and `{words}`.
    pub(super) codes: HashMap<String, String>,
    /// Words with one meaning.
    pub(super) messages: Vec<Message>,
    /// Words that say what failed, and not why.
    pub(super) operations: Vec<Message>,
    /// Words that several components write.
    pub(super) hints: Vec<Message>,
}

/// A line that Kubernetes, a driver or a tool writes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Message {
    pub(super) name: String,
    /// The words that people search for.
    pub(super) searched: String,
    pub(super) patterns: Vec<String>,
    pub(super) says: String,
    pub(super) minors: Option<String>,
    #[serde(default)]
    during: Vec<String>,
    /// What causes learn from it.
    #[serde(default)]
    states: Vec<Statement>,
    #[serde(default)]
    pub(super) harmless: bool,
    pub(super) meaning: String,
    look: Vec<String>,
    pub(super) out: String,
    /// What a cause advises in place of the meaning and the way out.
    #[serde(default)]
    advice: HashMap<String, String>,
    #[serde(default)]
    pub(super) causes: Vec<String>,
    pub(super) source: String,
}

const YAML: &str = include_str!("messages.yaml");

/// The catalog. A test proves that the embedded file can be read.
pub(super) static CATALOG: LazyLock<Catalog> =
    LazyLock::new(|| serde_saphyr::from_str(YAML).unwrap_or_default());

impl Catalog {
    /// All entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Message> {
        [&self.messages, &self.operations, &self.hints].into_iter().flatten()
    }
}

impl Message {
    /// Whether the line, in lower case, is this message.
    pub(super) fn is_in(&self, line: &str) -> bool {
        self.patterns.iter().any(|pattern| place(line, pattern).is_some())
    }

    /// The longest part of the line, in lower case, that is this message.
    pub(super) fn place(&self, line: &str) -> Option<Range<usize>> {
        let searched = self.searched.to_lowercase();
        self.patterns
            .iter()
            .chain([&searched])
            .filter_map(|pattern| place(line, pattern))
            .max_by_key(Range::len)
    }

    /// Whether the words have their meaning if this operation failed.
    pub(super) fn is_said_during(&self, operation: Option<&Self>) -> bool {
        self.during.is_empty() || operation.is_none_or(|failed| self.during.contains(&failed.name))
    }

    /// The commands that show more, with their placeholders.
    pub(super) fn look(&self) -> impl Iterator<Item = &'static String> {
        self.look.iter().filter_map(|name| CATALOG.commands.get(name))
    }
}

/// The number of places at which a pattern is tried: more would take long in hostile text.
const TRIES: usize = 8;

/// The part of the line that has the words of the pattern in this order, with any text for `*` and
/// one word for `?`.
fn place(line: &str, pattern: &str) -> Option<Range<usize>> {
    let mut parts = pattern.split_inclusive(['*', '?']);
    let first = parts.next()?;
    line.match_indices(without_sign(first)).take(TRIES).find_map(|(start, found)| {
        let mut end = start + found.len();
        let mut before = first;
        for part in parts.clone() {
            let words = without_sign(part);
            let (gap, _) = line.get(end..)?.split_once(words)?;
            if before.ends_with('?') && gap.contains(' ') {
                return None;
            }
            end += gap.len() + words.len();
            before = part;
        }
        Some(start..if before.ends_with('*') { line.len() } else { end })
    })
}

fn without_sign(part: &str) -> &str {
    part.trim_end_matches(['*', '?'])
}

/// The advice of `--explain` about a line whose likeliest cause this is. What Kubernetes says before
/// a driver's words is no explanation.
pub(super) fn advice(line: &str, cause: &str) -> Option<String> {
    let line = line.to_lowercase();
    let words = line.split_once("\" : ").map_or(line.as_str(), |(_, words)| words);
    CATALOG
        .messages
        .iter()
        .filter(|message| {
            let first = message.causes.first();
            first.is_some_and(|first| first == cause) || message.advice.contains_key(cause)
        })
        .filter_map(|message| Some((message.place(words)?.len(), message)))
        .max_by_key(|(length, _)| *length)
        .map(|(_, message)| match message.advice.get(cause) {
            Some(advice) => advice.clone(),
            None => format!("{} {}", message.meaning, message.out),
        })
}

/// A message without the full stop, to be quoted within a sentence.
pub(super) fn quotable(message: &str) -> &str {
    message.trim().trim_end_matches('.')
}

/// A statement that causes ask for. The messages that make it name it in `states`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Statement {
    /// Pods of other namespaces use the volume.
    InAnotherNamespace,
    /// The volume could not be attached, or its attacher did not respond.
    AttachFailed,
    /// A driver says that the disk is on another machine.
    AttachedElsewhere,
    /// The attacher or the kubelet finds no node plugin of the driver.
    NodeWithoutDriver,
    /// A mount on the node is dead.
    DeadMount,
    /// A driver refuses to mount a volume twice on one node.
    MountedAlready,
    /// The kubelet keeps a ReadWriteOncePod claim for another pod of its node.
    InUseByAnotherPod,
    /// The scheduler keeps a ReadWriteOncePod claim for another pod.
    TakenByAnotherPod,
    /// The scheduler finds no pod that this one may follow.
    NoPodToFollow,
    /// Anti-affinity or a spread constraint keeps the pod off nodes.
    KeptApart,
    /// The scheduler finds no node that can reach the volume.
    NodeConflict,
    /// The scheduler finds no node that can attach another volume.
    LimitOfNodes,
    /// The scheduler or a kubelet says that a claim has no volume.
    NotBound,
    /// The scheduler finds no place in which the claim could get a volume.
    NoPlace,
    /// The scheduler does not find the claim.
    NoClaim,
    /// A claim is being deleted.
    ClaimEnds,
    /// The kubelet has waited two minutes for volumes.
    KubeletWaits,
}

impl Statement {
    /// Whether the line makes the statement, in upper or lower case.
    pub(super) fn is_in(self, line: &str) -> bool {
        let line = line.to_lowercase();
        CATALOG.entries().any(|entry| entry.states.contains(&self) && entry.is_in(&line))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cause::Cause;

    #[test]
    fn the_catalog_is_read_and_whole() {
        let catalog: Catalog = serde_saphyr::from_str(YAML).unwrap();
        let names: BTreeSet<&str> = catalog.entries().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names.len(), catalog.entries().count());
        for entry in catalog.entries() {
            assert!(!entry.patterns.is_empty(), "{}", entry.name);
            for pattern in &entry.patterns {
                assert_eq!(*pattern, pattern.to_lowercase());
            }
            for name in &entry.look {
                let is_known = catalog.commands.contains_key(name);
                assert!(is_known, "{}: {name}", entry.name);
            }
            for name in &entry.during {
                let is_known = catalog.operations.iter().any(|operation| operation.name == *name);
                assert!(is_known, "{}: {name}", entry.name);
            }
            for code in &entry.causes {
                assert!(Cause::named(code).is_some(), "{}: {code}", entry.name);
            }
        }
        let states = catalog.entries().flat_map(|entry| &entry.states);
        let stated: BTreeSet<usize> = states.map(|statement| *statement as usize).collect();
        assert_eq!(stated.len(), Statement::KubeletWaits as usize + 1, "{stated:?}");
    }

    #[test]
    fn signs_stand_for_text() {
        for (line, pattern, expected) in [
            ("so claim \"a\" not found", "claim \"*\" not found", Some(3..22)),
            ("not found: claim \"a\"", "claim \"*\" not found", None),
            ("claim b and claim c not found", "claim ? not found", Some(12..29)),
            ("claim b is not found", "claim ? not found", None),
            ("refused: a, b", "refused*", Some(0..13)),
        ] {
            assert_eq!(place(line, pattern), expected, "{line}");
        }
    }
}
