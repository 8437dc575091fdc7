//! The annotation and label keys by which objects and Namespaces speak to the policy.

/// What to do about findings: `deny`, `fix`, `warn` or `ignore`.
pub const ACTION: &str = "multi-attach-guard.dev/action";
/// Which remedy a fix uses.
pub const REMEDY: &str = "multi-attach-guard.dev/remedy";
/// Why the other keys are there, in a person's words.
pub const REASON: &str = "multi-attach-guard.dev/reason";
/// The rules that are not to be reported, separated by commas.
pub const IGNORE: &str = "multi-attach-guard.dev/ignore";
/// Until when the other keys count: a date or a time, as RFC 3339 has them.
pub const UNTIL: &str = "multi-attach-guard.dev/until";
/// All of them.
pub const ALL: [&str; 5] = [ACTION, REMEDY, REASON, IGNORE, UNTIL];
/// What stands for a reason in a printed command that lets a rollout pass.
pub(crate) const WHY_NOW: &str = "why it cannot wait";
/// What stands for a reason in a printed command that fences a node.
pub(crate) const HOW_KNOWN: &str = "how you know";
/// The reasons of printed commands, which are none: who pastes one has to say why.
pub(crate) const PLACEHOLDERS: [&str; 2] = [WHY_NOW, HOW_KNOWN];
