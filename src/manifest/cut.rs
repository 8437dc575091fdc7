//! Leaving out the bulk of a document that is read a second time.
//!
//! Most of a workload is its containers, in which no field at fault lies. Once a
//! document has been read in full, it is known where they stand, and reading it
//! again without those lines takes a fraction of the time.

use super::tree::{Id, Shape, Tree};

/// Lines of a document that are left out. Offsets are bytes of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    start: u32,
    end: u32,
}

impl Cut {
    /// The lines of the field `path` (`spec.template.spec.containers` for
    /// example) of the object `id`, up to the line of the field after it. What
    /// is left means what it meant before: the lines are one entry of a block
    /// mapping that keeps another one, with nothing else on them and nothing in
    /// them that the rest may refer to. `None` where that is not so.
    #[must_use]
    pub fn of(tree: &Tree<'_>, id: Id, path: &str) -> Option<Self> {
        let (outer, field) = path.rsplit_once('.').unwrap_or(("", path));
        let mut here = id;
        for name in outer.split_terminator('.') {
            here = Self::entries(tree, here, name)?.0.1;
        }
        let ((key, value), next) = Self::entries(tree, here, field)?;
        let text = tree.text();
        let start = line_start(text, tree.node(key).properties)?;
        let end = line_start(text, tree.node(next?).properties)?;
        // A comment left behind could become a part of a block scalar above it.
        let rest = text.get(tree.node(value).end as usize..end)?;
        let comments = rest
            .lines()
            .all(|line| matches!(line.trim_start().as_bytes().first(), None | Some(b'#')));
        let lines = text.get(start..end)?;
        (comments && !lines.contains('&')).then_some(Self {
            start: u32::try_from(start).ok()?,
            end: u32::try_from(end).ok()?,
        })
    }

    /// The entry called `name` of the block mapping `id`, and the key after it.
    fn entries(tree: &Tree<'_>, id: Id, name: &str) -> Option<((Id, Id), Option<Id>)> {
        if !matches!(
            tree.node(id).shape,
            Shape::Mapping {
                flow: false,
                merges: false
            }
        ) {
            return None;
        }
        let mut entries = tree.written_entries(id);
        let found = entries.find(|(key, _)| tree.key_text(*key).is_some_and(|key| key == name))?;
        Some((found, entries.next().map(|(key, _)| key)))
    }

    /// `text` without the lines; `None` where the text has changed its length.
    #[must_use]
    pub fn apply(self, text: &str) -> Option<String> {
        let (before, after) = (
            text.get(..self.start as usize)?,
            text.get(self.end as usize..)?,
        );
        Some([before, after].concat())
    }

    /// Where the byte `at` of the shortened text stands in the whole one.
    #[must_use]
    pub const fn original(self, at: usize) -> usize {
        if at < self.start as usize {
            at
        } else {
            at + (self.end - self.start) as usize
        }
    }
}

/// Where the line of the byte `at` starts, if there are only blanks before it.
fn line_start(text: &str, at: u32) -> Option<usize> {
    let before = text.get(..at as usize)?;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    before[start..].trim().is_empty().then_some(start)
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::Cut;

    fn tree(text: &str) -> Tree<'_> {
        Tree::parse(text).unwrap().unwrap()
    }

    fn cut(text: &str) -> Option<Cut> {
        let tree = tree(text);
        Cut::of(&tree, tree.root(), "spec.containers")
    }

    #[test]
    fn the_rest_means_the_same_and_is_found_again() {
        for (name, text) in [
            ("plain", "spec:\n  a: 1\n  containers:\n  - x\n  b: 2\n"),
            (
                "comments and a block scalar inside",
                "spec:\n  a: 1\n  containers: # many\n  - name: x\n    text: |+\n      y\n\n  # b\n  b: 2\n",
            ),
            (
                "a block scalar above, a comment as deep as it below",
                "spec:\n  a: |\n    text\n  containers:\n  - x\n    # deep\n  b: 2\n",
            ),
            (
                "a kept end above",
                "spec:\n  a: |+\n    text\n\n  containers:\n  - x\n\n  b: 2\n",
            ),
            (
                "a plain scalar over two lines above",
                "spec:\n  a: one\n    two\n  containers: [x,\n    y]\n  b: 2\n",
            ),
            ("first", "spec:\n  containers: [x]\n  b: 2\n"),
            ("nothing in it", "spec:\n  a: 1\n  containers:\n  b: 2\n"),
            (
                "a tag on a line of its own",
                "spec:\n  a: 1\n  containers:\n  - !!map\n    x: 1\n  b: 2\n",
            ),
            (
                "an alias inside",
                "a: &a [1]\nspec:\n  containers: *a\n  b: *a\n",
            ),
            (
                "a key without a value as its last",
                "spec:\n  containers:\n  - ? a\n    :\n  b: 2\n",
            ),
            (
                "line ends of Windows",
                "spec:\r\n  a: 1\r\n  containers:\r\n  - x\r\n  b: 2\r\n",
            ),
        ] {
            let cut = cut(text).unwrap_or_else(|| panic!("{name}: not cut"));
            let short = cut.apply(text).unwrap();
            assert!(!short.contains("containers"), "{name}");
            let (whole, left) = (tree(text), tree(&short));
            assert_eq!(
                left.value(left.root()),
                whole.value_without(whole.root(), &[("spec", "containers")]),
                "{name}"
            );
            for field in ["spec:", "b: "] {
                let at = short.find(field).unwrap();
                assert_eq!(&text[cut.original(at)..][..field.len()], field, "{name}");
            }
        }
    }

    #[test]
    fn what_cannot_be_taken_out_alone_stays() {
        for (name, text) in [
            ("an anchor", "spec:\n  containers:\n  - &a x\n  b: *a\n"),
            ("flow style", "spec: {\n  containers: [x],\n  b: 2}\n"),
            ("not there", "spec:\n  b: 2\n"),
            ("the last field", "spec:\n  b: 2\n  containers: [x]\n"),
            (
                "a merge",
                "spec:\n  <<: {b: 2}\n  containers: [x]\n  c: 1\n",
            ),
            ("an alias", "a: &a\n  containers: [x]\n  b: 1\nspec: *a\n"),
            (
                "an explicit key",
                "spec:\n  ? containers\n  : [x]\n  b: 2\n",
            ),
            (
                "an explicit key after it",
                "spec:\n  containers: [x]\n  ? b\n  : 2\n",
            ),
        ] {
            assert_eq!(cut(text), None, "{name}");
        }
    }
}
