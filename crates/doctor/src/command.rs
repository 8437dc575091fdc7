//! Commands that can be copied into a shell as they are.

use std::borrow::Cow;

/// `kubectl` and its arguments, each quoted if a POSIX shell would not take it literally.
pub fn line<S: AsRef<str>>(kubectl: &str, arguments: &[S]) -> String {
    let mut line = kubectl.to_owned();
    for argument in arguments {
        line.push(' ');
        line += &quoted(argument.as_ref());
    }
    line
}

/// The name of this program.
pub(crate) const OWN: &str = "multi-attach-guard";

/// A command of this program for the same cluster as the prefix `kubectl`, which may have options:
/// both programs take `--kubeconfig`, `--context`, `--as` and `--as-group` in the same way.
pub(crate) fn own<S: AsRef<str>>(kubectl: &str, arguments: &[S]) -> String {
    let context = kubectl.strip_prefix("kubectl").unwrap_or_default();
    line(OWN, arguments) + context
}

/// An argument as one word of a POSIX shell.
pub(crate) fn quoted(argument: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return Cow::Borrowed(argument);
    }
    Cow::Owned(format!("'{}'", argument.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        let cases = [
            ("deployment/web", "deployment/web"),
            (r#"[{"op":"x"}]"#, r#"'[{"op":"x"}]'"#),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$HOME", "'$HOME'"),
        ];
        for (argument, expected) in cases {
            assert_eq!(quoted(argument), expected);
        }
        assert_eq!(
            line("kubectl --context=prod", &["-n", "shop", "get", "pods"]),
            "kubectl --context=prod -n shop get pods"
        );
    }

    #[test]
    fn its_own_commands_are_about_the_same_cluster() {
        for (kubectl, expected) in [
            ("kubectl", "multi-attach-guard capabilities"),
            ("kubectl --context=prod", "multi-attach-guard capabilities --context=prod"),
            ("kubectl '--context=the lab'", "multi-attach-guard capabilities '--context=the lab'"),
        ] {
            assert_eq!(own(kubectl, &["capabilities"]), expected);
        }
    }
}
