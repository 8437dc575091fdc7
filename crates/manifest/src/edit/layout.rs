//! Lines and columns of a document, and the style in which it is written.

use super::super::tree::{Id, Shape, Tree};
use super::render::{Flow, Style};

/// Queries about the text around the nodes of a document.
impl Tree<'_> {
    pub(super) fn begin(&self, id: Id) -> usize {
        self.node(id).properties as usize
    }

    pub(super) fn line_start(&self, at: usize) -> usize {
        self.lines().start(at)
    }

    /// The start of the line after the one that `at` is on.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        at + rest.find('\n').map_or(rest.len(), |newline| newline + 1)
    }

    pub(super) fn column(&self, at: usize) -> usize {
        at - self.line_start(at)
    }

    pub(super) fn starts_line(&self, at: usize) -> bool {
        self.text[self.line_start(at)..at].trim().is_empty()
    }

    /// The style of the entries in the flow collection `id`.
    pub(super) fn flow_of(&self, id: Id) -> Flow {
        let key = self.written_entries(id).next().map(|(key, _)| key);
        let quoted = key.map_or_else(|| self.is_json(), |key| self.is_quoted(key));
        let tight = key
            .map_or("", |key| &self.text[self.node(key).end as usize..])
            .strip_prefix(':')
            .is_some_and(|rest| !rest.starts_with([' ', '\r', '\n']));
        let lines = self
            .children(id)
            .next()
            .map(|first| self.begin(first))
            .filter(|first| self.starts_line(*first))
            .map(|first| self.column(first));
        Flow { quoted, tight, lines }
    }

    /// The style of a value that replaces the flow node `id`.
    pub(super) fn flow_around(&self, id: Id) -> Flow {
        let quoted = self.is_json();
        let line = self.line_start(self.begin(id));
        let indent = self.text[line..].len() - self.text[line..].trim_start_matches(' ').len();
        let lines = (quoted && self.text.trim_end().contains('\n')).then_some(indent);
        let tight = quoted && lines.is_none();
        Flow { quoted, tight, lines }
    }

    fn is_json(&self) -> bool {
        let root = self.root();
        let first = self.written_entries(root).next();
        self.node(root).flow && first.is_some_and(|(key, _)| self.is_quoted(key))
    }

    fn is_quoted(&self, key: Id) -> bool {
        self.text[self.begin(key)..].starts_with('"')
    }
}

/// The indentation style of the document, taken from the first places that show it.
pub(super) fn style_of(tree: &Tree<'_>) -> Style {
    let text = tree.text;
    let column = |id| tree.column(tree.begin(id));
    let mut step = None;
    let mut compact = None;
    let mut waiting = vec![tree.root()];
    while let Some(id) = waiting.pop() {
        for (key, value) in tree.written_entries(id) {
            match (&tree.node(value).shape, tree.children(value).next()) {
                (Shape::Mapping, Some(first)) if tree.starts_line(tree.begin(first)) => {
                    step = step.or(column(first).checked_sub(column(key)));
                }
                (Shape::Sequence, Some(first)) if !tree.node(value).flow => {
                    let before = text[..tree.begin(first)].trim_end();
                    let dash = tree.column(before.len().saturating_sub(1));
                    compact = compact.or(Some(dash <= column(key)));
                }
                _ => {}
            }
        }
        let inside: Vec<Id> = tree.children(id).collect();
        waiting.extend(inside.into_iter().rev());
        if step.is_some() && compact.is_some() {
            break;
        }
    }
    Style {
        step: step.filter(|step| (1..=8).contains(step)).unwrap_or(2),
        compact: compact.unwrap_or(false),
        newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
    }
}
