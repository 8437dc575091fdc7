//! Helm templates that nobody has rendered.

use super::error::{Fault, Problem};
use super::objects::Manifest;

/// A name with `{{` in it: a template whose markers stand in quotes, so that
/// it parses all the same.
pub(super) fn unrendered(manifest: &Manifest<'_, '_>) -> Option<Fault> {
    let tree = manifest.tree;
    let (_, metadata) = tree.entry(manifest.id, "metadata")?;
    ["name", "namespace"]
        .into_iter()
        .find(|field| {
            tree.string(metadata, field)
                .is_some_and(|name| name.contains("{{"))
        })
        .and_then(|field| tree.entry(metadata, field))
        .map(|(_, value)| Fault::new(tree.node(value).start as usize, Problem::Template))
}

/// The first `{{` that stands where a line, a value or an item starts.
pub(super) fn marker(text: &str) -> Option<usize> {
    text.match_indices("{{").map(|(at, _)| at).find(|at| {
        let line_start = text[..*at].rfind('\n').map_or(0, |newline| newline + 1);
        let before = text[line_start..*at].trim_end();
        before.is_empty() || before.ends_with([':', '-'])
    })
}
