//! Editing a manifest in place.
//!
//! A patch becomes the fewest changes of the text: keys that stay keep their comments, order,
//! quotes and anchors. The result is parsed again and must be exactly the patched object with the
//! rest of the document unchanged; any other result is refused.

mod layout;
mod reconcile;
mod render;

use json_patch::Patch;
use serde_json::Value;

use super::tree::Tree;
use super::visit::{ITEMS, object_at};

/// The reason for which a document is not edited.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The document no longer has the object at its place.
    #[error("The file has changed since it was read, and the object is no longer where it was.")]
    Changed,
    /// The patch does not fit the object.
    #[error("The remedy does not fit the object as it is written: {0}.")]
    Patch(#[from] json_patch::PatchError),
    /// An anchor or a merge key would change more than the object through this field.
    #[error("The field \"{0}\" is shared through an anchor, an alias or a merge key.")]
    Shared(String),
    /// This field is written in a way that this module does not edit.
    #[error("The field \"{0}\" is written in a way that cannot be edited without touching more.")]
    Unusual(String),
    /// The check after the edit found a difference.
    #[error(
        "The edit would change more than the remedy, through an anchor or an unusual way of writing."
    )]
    NotTheSame,
}

/// The index of an object in the items of its document, and the patch for it. See
/// [`super::read::Position`] for the items.
pub type Change<'a> = (&'a [usize], &'a Patch);

/// Applies `patch` to the object at `items` of the document `text` and returns the new text of the
/// document.
///
/// # Errors
/// The patch does not fit, or no small edit gives exactly the patched object.
pub fn apply(text: &str, items: &[usize], patch: &Patch) -> Result<String, EditError> {
    apply_all(text, &[(items, patch)])
}

/// Applies as many of the changes as possible, each to a different object, and returns the new text
/// of the document with the result of each change. A long list is read and written once, and a few
/// times more for each change that is refused.
pub fn apply_each(text: &str, changes: &[Change<'_>]) -> (String, Vec<Result<(), EditError>>) {
    match apply_all(text, changes) {
        Ok(edited) => (edited, changes.iter().map(|_| Ok(())).collect()),
        Err(refusal) if changes.len() <= 1 => (text.to_owned(), vec![Err(refusal)]),
        Err(_) => {
            let (first, second) = changes.split_at(changes.len() / 2);
            let (edited, mut results) = apply_each(text, first);
            let (edited, more) = apply_each(&edited, second);
            results.extend(more);
            (edited, results)
        }
    }
}

fn apply_all(text: &str, changes: &[Change<'_>]) -> Result<String, EditError> {
    let tree = tree_of(text)?;
    let style = layout::style_of(&tree);
    let mut wanted = tree.value(tree.root());
    let mut edits = Vec::new();
    for (items, patch) in changes {
        let object = object_at(&tree, items).ok_or(EditError::Changed)?;
        let before = tree.value(object);
        let mut after = before.clone();
        json_patch::patch(&mut after, patch)?;
        edits.extend(reconcile::edits(&tree, style, object, &before, &after)?);
        *at_mut(&mut wanted, items).ok_or(EditError::Changed)? = after;
    }
    let edited = splice(text, edits).ok_or(EditError::NotTheSame)?;
    // Two documents could be read as one object each, so the count is checked too.
    let one = super::split::parts(&edited).len() == super::split::parts(text).len();
    match tree_of(&edited) {
        Ok(again) if one && again.value(again.root()) == wanted => Ok(edited),
        _ => Err(EditError::NotTheSame),
    }
}

/// Writes `value` as a YAML document in block style. Strings are quoted only if they would mean
/// something else without quotes.
pub fn to_yaml(value: &Value) -> String {
    render::Style { step: 2, compact: false, newline: "\n" }.block(value, 0)
}

fn tree_of(text: &str) -> Result<Tree<'_>, EditError> {
    Tree::parse(text).ok().flatten().ok_or(EditError::Changed)
}

fn at_mut<'v>(value: &'v mut Value, items: &[usize]) -> Option<&'v mut Value> {
    items.iter().try_fold(value, |value, number| {
        let field = ITEMS.into_iter().find(|field| value.get(field).is_some())?;
        value.get_mut(field)?.get_mut(*number)
    })
}

/// A range of the text, in bytes, and its replacement.
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

impl Edit {
    fn insert(at: usize, text: impl Into<String>) -> Self {
        Self::replace(at, at, text)
    }

    fn delete(start: usize, end: usize) -> Self {
        Self::replace(start, end, "")
    }

    fn replace(start: usize, end: usize, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { start, end, text }
    }
}

/// Applies the edits to the text; `None` if two of them overlap.
fn splice(text: &str, mut edits: Vec<Edit>) -> Option<String> {
    // The sort is stable: insertions at the same place keep their order.
    edits.sort_by_key(|edit| (edit.start, edit.end));
    let mut edited = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for edit in edits {
        edited += text.get(at..edit.start)?;
        edited += &edit.text;
        at = edit.end;
    }
    edited += text.get(at..)?;
    Some(edited)
}

#[cfg(test)]
mod tests;
