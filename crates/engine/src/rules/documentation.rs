//! The documentation that stands at the top of a rule's file.

/// A rule's documentation, as Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Documentation(String);

impl Documentation {
    /// Takes the comment at the top of a source file.
    pub(super) fn of_source(source: &str) -> Self {
        let mut text = String::new();
        for line in source.lines() {
            let Some(line) = line.strip_prefix("//!") else {
                break;
            };
            text.push_str(line.strip_prefix(' ').unwrap_or(line));
            text.push('\n');
        }
        Self(text)
    }

    /// All of it, as Markdown.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Its first line: what the rule finds, in a sentence.
    pub fn summary(&self) -> &str {
        self.0.lines().next().unwrap_or_default()
    }
}
