//! Features of earlier versions and of other programs. A user who requests one is told what to use
//! instead.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The command, the argument that it no longer has, and the text for the user. For a command that
/// is gone itself, the first part is empty.
const REMOVED: [(&str, &str, &str); 5] = [
    (
        "",
        "migrate",
        concat!(
            "`migrate` is gone: ",
            env!("CARGO_PKG_REPOSITORY"),
            "/blob/main/docs/migrate.md has the steps, and `multi-attach-guard capabilities` says which StorageClass can give ReadWriteMany."
        ),
    ),
    (
        "check",
        "--dry-run",
        "`check --diff` prints what `check --fix` would change, and changes nothing.",
    ),
    (
        "diagnose",
        "html",
        "`diagnose --format html` is gone: use `--format text` for people, or `--format json` for programs.",
    ),
    (
        "serve",
        "--fence-advice",
        "`serve --fence-advice` is gone: `multi-attach-guard diagnose` names the nodes that died, what waits for their volumes, and the command that helps.",
    ),
    (
        "serve",
        "--reports",
        "`serve --reports` is gone: examples/reports.yaml is a CronJob that runs `multi-attach-guard audit --format openreports`.",
    ),
];

/// The sentence for an argument that clap refused, if an earlier version had it in this command or users of
/// other programs expect it.
pub(super) fn sentence(error: &clap::Error, command: &str) -> Option<&'static str> {
    let (command, refused) = match error.kind() {
        ErrorKind::InvalidSubcommand => ("", ContextKind::InvalidSubcommand),
        ErrorKind::UnknownArgument => (command, ContextKind::InvalidArg),
        ErrorKind::InvalidValue => (command, ContextKind::InvalidValue),
        _ => return None,
    };
    let Some(ContextValue::String(refused)) = error.get(refused) else {
        return None;
    };
    let mut removed = REMOVED.iter();
    removed
        .find(|(of, what, _)| *of == command && what == refused)
        .map(|(_, _, sentence)| *sentence)
}
