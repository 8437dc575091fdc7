//! The annotation and label keys with which objects and Namespaces override the policy.

/// The action on findings: `deny`, `fix`, `warn` or `ignore`.
pub const ACTION: &str = "multi-attach-guard.dev/action";
/// The remedy that a fix uses.
pub const REMEDY: &str = "multi-attach-guard.dev/remedy";
/// The reason for the other keys, written by a person.
pub const REASON: &str = "multi-attach-guard.dev/reason";
/// The rules that are not to be reported, separated by commas.
pub const IGNORE: &str = "multi-attach-guard.dev/ignore";
/// The date or the time, as in RFC 3339, until which the other keys count.
pub const UNTIL: &str = "multi-attach-guard.dev/until";
/// All keys.
pub const ALL: [&str; 5] = [ACTION, REMEDY, REASON, IGNORE, UNTIL];
/// The placeholder for a reason in a printed command that lets a rollout pass.
pub(crate) const WHY_NOW: &str = "why it cannot wait";
/// The placeholder for a reason in a printed command that fences a node.
pub(crate) const HOW_KNOWN: &str = "how you know";
/// The placeholder for a reason that an editor writes into a manifest.
pub(crate) const WHY_SAFE: &str = "why it is safe here";
/// The placeholders in printed commands and in edits. They do not count as reasons: the user must
/// replace them.
pub(crate) const PLACEHOLDERS: [&str; 3] = [WHY_NOW, HOW_KNOWN, WHY_SAFE];
