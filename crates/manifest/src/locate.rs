//! The position of a field in the text of its object.

use super::tree::{Id, Shape, Tree};

/// A range of a document's text, on one line. Offsets are bytes of the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// The start of the field's key.
    pub start: usize,
    /// The end of its value if that is on the same line, otherwise the end of the key.
    pub end: usize,
}

impl Spot {
    /// The same range in a text in which the document starts at `document`.
    pub(super) const fn moved_by(self, document: usize) -> Self {
        Self { start: self.start + document, end: self.end + document }
    }
}

/// Finds the field `path` of the object `id`: `spec.template.spec.volumes[0]`, or
/// `metadata.annotations["example.com/key"]` for keys with dots. If the field is missing, the
/// result is the nearest field around it, or the object's first line if no part of the path exists.
pub fn locate(tree: &Tree<'_>, id: Id, path: &str) -> Spot {
    let mut here = tree.target(id);
    let mut found = spot(tree, here, here);
    for step in PathSegments(path) {
        let next = match step {
            PathSegment::Field(name) => tree.entry(here, name),
            PathSegment::Item(number) => match tree.node(here).shape {
                Shape::Sequence => tree.children(here).nth(number).map(|item| (item, item)),
                _ => None,
            },
        };
        let Some((key, value)) = next else { break };
        found = spot(tree, key, value);
        here = tree.target(value);
    }
    found
}

/// The path of the innermost field of the object `id` that holds the byte `at`.
pub(super) fn path_to(tree: &Tree<'_>, id: Id, at: usize) -> String {
    let holds = |part: Id| {
        let node = tree.node(part);
        node.start as usize == at || (node.start as usize..node.end as usize).contains(&at)
    };
    let (mut path, mut here) = (String::new(), id);
    loop {
        let entry = tree.written_entries(here).find(|(key, value)| holds(*key) || holds(*value));
        if let Some((key, value)) = entry {
            let dot = if path.is_empty() { "" } else { "." };
            path += &format!("{dot}{}", tree.key_text(key).unwrap_or_default());
            here = value;
            continue;
        }
        let is_list = matches!(tree.node(here).shape, Shape::Sequence);
        let item = tree.children(here).enumerate().find(|(_, item)| is_list && holds(*item));
        let Some((number, item)) = item else { return path };
        path += &format!("[{number}]");
        here = item;
    }
}

/// The spot of an entry. If `key` equals `value`, it is an item or an object, whose first field
/// stands for it.
pub(super) fn spot(tree: &Tree<'_>, key: Id, value: Id) -> Spot {
    let first = (key == value).then(|| tree.written_entries(key).next());
    let (key, value) = first.flatten().unwrap_or((key, value));
    let (key, value) = (tree.node(key), tree.node(value));
    let (start, value_end) = (key.start as usize, value.end as usize);
    // The search stops there: a line may be as long as the file, and every field is looked up.
    let end = value_end.max(key.end as usize);
    let own = tree.text.get(start..end).unwrap_or_default();
    let line_end = start + own.find(['\r', '\n']).unwrap_or(own.len());
    let key_end = (key.end as usize).min(line_end);
    Spot {
        start,
        end: if value_end <= line_end && value_end > key_end { value_end } else { key_end },
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PathSegment<'p> {
    Field(&'p str),
    Item(usize),
}

/// The segments of a field path. A segment that cannot be parsed ends the path.
pub(super) struct PathSegments<'p>(pub(super) &'p str);

impl<'p> Iterator for PathSegments<'p> {
    type Item = PathSegment<'p>;

    fn next(&mut self) -> Option<PathSegment<'p>> {
        let path = self.0.strip_prefix('.').unwrap_or(self.0);
        if path.is_empty() {
            return None;
        }
        let Some(inside) = path.strip_prefix('[') else {
            let end = path.find(['.', '[']).unwrap_or(path.len());
            self.0 = &path[end..];
            return Some(PathSegment::Field(&path[..end]));
        };
        let quote = ['"', '\''].into_iter().find(|quote| inside.starts_with(*quote));
        let (name, rest) = match quote {
            Some(quote) => inside[1..].split_once(quote)?,
            None => inside.split_at(inside.find(']')?),
        };
        self.0 = rest.strip_prefix(']')?;
        Some(match name.parse() {
            Ok(number) if quote.is_none() => PathSegment::Item(number),
            _ => PathSegment::Field(name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::position::Lines;
    use super::super::tree::Tree;
    use super::super::visit::object_at;
    use super::locate;

    /// The line, the column and the text of the spot.
    fn at<'t>(text: &'t str, items: &[usize], path: &str) -> (usize, usize, &'t str) {
        let tree = Tree::parse(text).unwrap().unwrap();
        let spot = locate(&tree, object_at(&tree, items).unwrap(), path);
        let (line, column) = Lines::of(text).line_and_column(spot.start);
        (line, column, &text[spot.start..spot.end])
    }

    const BLOCK: &str = "\
# a comment
kind: Deployment
metadata:
  annotations:
    example.com/key: |
      long
spec:
  replicas: 1   # one
  \"strategy\":
    type: RollingUpdate
  template:
    spec:
      volumes:
      - name: data
        persistentVolumeClaim: {claimName: data, readOnly: no}
      -
        name: other
      empty:
";

    #[test]
    fn fields_are_found_where_they_are_written() {
        let table = [
            ("spec.replicas", (8, 3, "replicas: 1")),
            ("spec.strategy", (9, 3, "\"strategy\"")),
            ("spec.strategy.type", (10, 5, "type: RollingUpdate")),
            ("spec.template.spec.volumes", (13, 7, "volumes")),
            ("spec.template.spec.volumes[0]", (14, 9, "name: data")),
            (
                "spec.template.spec.volumes[0].persistentVolumeClaim.claimName",
                (15, 33, "claimName: data"),
            ),
            ("spec.template.spec.volumes[1].name", (17, 9, "name: other")),
            ("spec.template.spec.empty", (18, 7, "empty:")),
            ("metadata.annotations[\"example.com/key\"]", (5, 5, "example.com/key")),
            ("metadata.annotations['example.com/key']", (5, 5, "example.com/key")),
            ("metadata.annotations[example.com/key]", (5, 5, "example.com/key")),
        ];
        for (path, place) in table {
            assert_eq!(at(BLOCK, &[], path), place, "{path}");
        }
    }

    #[test]
    fn a_missing_field_is_found_at_the_nearest_around_it() {
        let table = [
            ("spec.strategy.rollingUpdate.maxSurge", (9, 3, "\"strategy\"")),
            ("spec.paused", (7, 1, "spec")),
            ("spec.template.spec.volumes[7].name", (13, 7, "volumes")),
            ("spec.replicas.what", (8, 3, "replicas: 1")),
            ("status", (2, 1, "kind: Deployment")),
            ("", (2, 1, "kind: Deployment")),
            ("metadata.annotations[\"broken", (4, 3, "annotations")),
        ];
        for (path, place) in table {
            assert_eq!(at(BLOCK, &[], path), place, "{path}");
        }
    }

    #[test]
    fn lists_aliases_merges_and_json_are_followed() {
        let list = "kind: List\nitems:\n- &one\n  spec: {replicas: 1}\n- <<: *one\n  kind: Second\n- *one\n- {}\n";
        assert_eq!(at(list, &[0], "spec.replicas"), (4, 10, "replicas: 1"));
        assert_eq!(at(list, &[1], "spec.replicas"), (4, 10, "replicas: 1"));
        assert_eq!(at(list, &[1], "kind"), (6, 3, "kind: Second"));
        assert_eq!(at(list, &[2], "spec.replicas"), (4, 10, "replicas: 1"));
        assert_eq!(at(list, &[3], "spec.replicas"), (8, 3, "{}"));
        assert_eq!(at(list, &[2], "status"), (4, 3, "spec: {replicas: 1}"));
        let json = "{\n  \"spec\": {\n    \"accessModes\": [\"ReadWriteOnce\"]\n  }\n}\n";
        assert_eq!(
            at(json, &[], "spec.accessModes"),
            (3, 5, "\"accessModes\": [\"ReadWriteOnce\"]")
        );
        assert_eq!(at(json, &[], "spec.accessModes[0]"), (3, 21, "\"ReadWriteOnce\""));
    }
}
