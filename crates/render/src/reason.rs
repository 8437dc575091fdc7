//! Why something is not rendered.

use super::program::command_line::RefusedWord;
use report::Missing;

/// Why something is not rendered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reason {
    /// The end of a sentence.
    pub(super) text: String,
    /// What is missing that is elsewhere.
    pub(super) missing: Option<Missing>,
}

impl Reason {
    /// Charts are missing, which `--fetch` gets.
    pub(super) fn elsewhere(text: impl AsRef<str>) -> Self {
        Self {
            text: without_user(text.as_ref()),
            missing: Some(Missing::Charts),
        }
    }

    /// Something is missing that only a network has.
    pub(super) fn network(text: impl AsRef<str>) -> Self {
        Self {
            text: without_user(text.as_ref()),
            missing: Some(Missing::Files),
        }
    }

    /// Another tool renders it, by the command in the text.
    pub(super) fn of_tool(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            missing: Some(Missing::Tool),
        }
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self {
            text: without_user(&text),
            missing: None,
        }
    }
}

impl From<RefusedWord> for Reason {
    fn from(refused: RefusedWord) -> Self {
        refused.to_string().into()
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// The text with URLs that name no user, as a password may stand beside the name.
pub(super) fn without_user(text: &str) -> String {
    let mut parts = text.split("://");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("://");
        let ends =
            |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>');
        let end = part.find(ends).unwrap_or(part.len());
        let from = part[..end].rfind('@').map_or(0, |at| at + 1);
        out.push_str(&part[from..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Reason, without_user};

    #[test]
    fn no_user_of_a_url_is_named() {
        for (text, shown) in [
            ("a", "a"),
            ("https://u:hunter2@a.example/b@v1", "https://a.example/b@v1"),
            (
                "Get \"https://u:h@nter2@a.example\": x@y",
                "Get \"https://a.example\": x@y",
            ),
            (
                "ssh://git@a.example/b and oci://u:p@c.example",
                "ssh://a.example/b and oci://c.example",
            ),
            ("https://a.example?u=b@c", "https://a.example?u=b@c"),
            ("://@", "://"),
        ] {
            assert_eq!(without_user(text), shown);
            assert_eq!(Reason::from(text).text, shown);
            assert_eq!(Reason::elsewhere(text).text, shown);
            assert_eq!(Reason::network(text).text, shown);
        }
    }
}
