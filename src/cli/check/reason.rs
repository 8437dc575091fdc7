//! Why something is not rendered.

/// Why something is not rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    /// The end of a sentence.
    pub(super) text: String,
    /// Whether `--fetch` gets what is missing.
    pub(super) is_elsewhere: bool,
}

impl Reason {
    /// Something is missing that `--fetch` gets.
    pub(super) fn elsewhere(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_elsewhere: true,
        }
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self {
            text,
            is_elsewhere: false,
        }
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
