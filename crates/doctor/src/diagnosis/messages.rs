//! The catalog of messages, and the names by which causes refer to them.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The content of `messages.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalog {
    /// Commands that show more, by name, with the placeholders `{volume}`, `{claim}`, `{pod}` and
    /// `{namespace}`.
    commands: HashMap<String, String>,
    /// Every message, the most specific first.
    pub(super) messages: Vec<Message>,
}

/// A line that Kubernetes or a driver writes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Message {
    name: String,
    /// The words that people search for.
    pub(super) searched: String,
    patterns: Vec<String>,
    pub(super) says: String,
    pub(super) minors: Option<String>,
    pub(super) meaning: String,
    look: Vec<String>,
    pub(super) out: String,
    pub(super) causes: Vec<String>,
    pub(super) source: String,
}

const YAML: &str = include_str!("../messages.yaml");

/// The catalog. A test proves that the embedded file can be read.
pub(super) static CATALOG: LazyLock<Catalog> =
    LazyLock::new(|| serde_saphyr::from_str(YAML).unwrap_or_default());

impl Message {
    /// Whether the line, in lower case, is this message.
    pub(super) fn is_in(&self, line: &str) -> bool {
        self.patterns.iter().any(|pattern| holds(line, pattern))
    }

    /// The commands that show more, with their placeholders.
    pub(super) fn look(&self) -> impl Iterator<Item = &'static String> {
        self.look.iter().filter_map(|name| CATALOG.commands.get(name))
    }
}

/// Whether the line contains the parts of the pattern between `*`, in this order.
fn holds(line: &str, pattern: &str) -> bool {
    pattern
        .split('*')
        .try_fold(line, |rest, part| rest.split_once(part).map(|(_, after)| after))
        .is_some()
}

/// The advice of `--explain` about a line whose likeliest cause this is. What Kubernetes says before
/// a driver's words is no explanation.
pub(super) fn advice(line: &str, cause: &str) -> Option<String> {
    let line = line.to_lowercase();
    let words = line.split_once("\" : ").map_or(line.as_str(), |(_, words)| words);
    CATALOG
        .messages
        .iter()
        .filter(|message| message.causes.first().is_some_and(|first| first == cause))
        .find(|message| message.is_in(words))
        .map(|message| format!("{} {}", message.meaning, message.out))
}

/// A statement, as the names of its messages in the catalog.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phrase(pub(super) &'static [&'static str]);

impl Phrase {
    /// Whether the line makes the statement, in upper or lower case.
    pub(super) fn is_in(self, line: &str) -> bool {
        let line = line.to_lowercase();
        CATALOG
            .messages
            .iter()
            .any(|message| self.0.contains(&message.name.as_str()) && message.is_in(&line))
    }
}

/// Pods of other namespaces use the volume.
pub(super) const IN_ANOTHER_NAMESPACE: Phrase = Phrase(&["other-namespaces"]);

/// The volume could not be attached, or its attacher did not respond.
pub(super) const ATTACH_FAILED: Phrase = Phrase(&["attach-failed"]);

/// A driver says that the disk is on another machine.
pub(super) const ATTACHED_ELSEWHERE: Phrase = Phrase(&["attached-elsewhere"]);

/// A driver says that the node has as many volumes as it can attach.
pub(super) const LIMIT_REACHED: Phrase = Phrase(&["limit-reached"]);

/// The attacher or the kubelet finds no node plugin of the driver.
pub(super) const NODE_WITHOUT_DRIVER: Phrase =
    Phrase(&["node-without-driver", "driver-not-registered"]);

/// A mount on the node is dead.
pub(super) const DEAD_MOUNT: Phrase = Phrase(&["dead-mount"]);

/// A driver refuses to mount a volume twice on one node.
pub(super) const MOUNTED_ALREADY: Phrase = Phrase(&["mounted-already"]);

/// The kubelet keeps a ReadWriteOncePod claim for another pod of its node.
pub(super) const IN_USE_BY_ANOTHER_POD: Phrase = Phrase(&["used-by-another-pod"]);

/// The scheduler keeps a ReadWriteOncePod claim for another pod.
pub(super) const TAKEN_BY_ANOTHER_POD: Phrase = Phrase(&["taken-by-another-pod"]);

/// The scheduler finds no pod that this one may follow.
pub(super) const NO_POD_TO_FOLLOW: Phrase = Phrase(&["no-pod-to-follow"]);

/// Anti-affinity or a spread constraint keeps the pod off nodes.
pub(super) const KEPT_APART: Phrase = Phrase(&["kept-apart"]);

/// The scheduler finds no node that can reach the volume.
pub(super) const NODE_CONFLICT: Phrase = Phrase(&["node-conflict"]);

/// The scheduler finds no node that can attach another volume.
pub(super) const LIMIT_OF_NODES: Phrase = Phrase(&["node-limit"]);

/// The scheduler or a kubelet says that a claim has no volume.
pub(super) const NOT_BOUND: Phrase = Phrase(&[
    "unbound-immediate",
    "no-volume-to-bind",
    "not-enough-storage",
    "binding-fails",
    "claim-not-bound",
    "volume-gone",
]);

/// The scheduler does not find the claim.
pub(super) const NO_CLAIM: Phrase = Phrase(&["no-claim", "waits-for-ephemeral"]);

/// A claim is being deleted.
pub(super) const CLAIM_ENDS: Phrase = Phrase(&["claim-ends"]);

/// The kubelet has waited two minutes for volumes.
pub(super) const KUBELET_WAITS: Phrase = Phrase(&["kubelet-waits"]);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::diagnosis::cause::Cause;

    #[test]
    fn the_catalog_is_read_and_whole() {
        let catalog: Catalog = serde_saphyr::from_str(YAML).unwrap();
        let messages = catalog.messages;
        let names: BTreeSet<&str> = messages.iter().map(|message| message.name.as_str()).collect();
        assert_eq!(names.len(), messages.len());
        for message in &messages {
            assert!(!message.patterns.is_empty(), "{}", message.name);
            for pattern in &message.patterns {
                assert_eq!(*pattern, pattern.to_lowercase());
            }
            for name in &message.look {
                let is_known = catalog.commands.contains_key(name);
                assert!(is_known, "{}: {name}", message.name);
            }
            assert!(!message.causes.is_empty(), "{}", message.name);
            for code in &message.causes {
                assert!(Cause::named(code).is_some(), "{}: {code}", message.name);
            }
        }
        for phrase in [
            IN_ANOTHER_NAMESPACE,
            ATTACH_FAILED,
            ATTACHED_ELSEWHERE,
            LIMIT_REACHED,
            DEAD_MOUNT,
            MOUNTED_ALREADY,
            IN_USE_BY_ANOTHER_POD,
            TAKEN_BY_ANOTHER_POD,
            NO_POD_TO_FOLLOW,
            KEPT_APART,
            NODE_CONFLICT,
            LIMIT_OF_NODES,
            NOT_BOUND,
            NO_CLAIM,
            CLAIM_ENDS,
            KUBELET_WAITS,
        ] {
            for name in phrase.0 {
                assert!(names.contains(name), "{name}");
            }
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(holds("claim \"a\" not found", "claim \"*\" not found"));
        assert!(!holds("not found: claim \"a\"", "claim \"*\" not found"));
    }
}
