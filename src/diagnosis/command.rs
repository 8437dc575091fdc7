//! Commands that can be copied into a shell as they are.

use std::borrow::Cow;

/// `kubectl` and its arguments, each quoted where a POSIX shell would read it otherwise.
#[must_use]
pub fn line<S: AsRef<str>>(kubectl: &str, arguments: &[S]) -> String {
    let mut line = kubectl.to_owned();
    for argument in arguments {
        line.push(' ');
        line += &quoted(argument.as_ref());
    }
    line
}

/// What commands about the cluster of that context begin with.
#[must_use]
pub fn kubectl(context: Option<&str>) -> String {
    match context {
        Some(context) => line("kubectl", &[&format!("--context={context}")]),
        None => "kubectl".to_owned(),
    }
}

/// An argument as one word of a POSIX shell.
#[must_use]
pub fn quoted(argument: &str) -> Cow<'_, str> {
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
        assert_eq!(kubectl(None), "kubectl");
        assert_eq!(kubectl(Some("prod")), "kubectl --context=prod");
        assert_eq!(kubectl(Some("the lab")), "kubectl '--context=the lab'");
    }
}
