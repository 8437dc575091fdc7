//! The parts of an object's document that are kept after its file is closed: the fields that
//! remedies read, and their positions.

use serde_json::{Map, Value};

use super::builder::narrow;
use super::locate::{PathSegment, PathSegments, Spot, spot};
use super::split::Part;
use super::tree::{Id, Shape, Tree};

/// Parts of documents that no remedy and no rule reads, and that take most of the space: the key of
/// the parent mapping or list, and the key of the part. A field of the same name elsewhere, a label
/// for example, is kept.
const BULK: &[(&str, &str)] = &[
    ("spec", "containers"),
    ("spec", "initContainers"),
    ("spec", "ephemeralContainers"),
    ("volumes", "configMap"),
    ("volumes", "secret"),
    ("volumes", "projected"),
    ("volumes", "downwardAPI"),
    ("volumes", "emptyDir"),
    ("metadata", "managedFields"),
    ("", "status"),
];

/// An object without the parts in `BULK`, and the position of each field in the file.
#[derive(Clone, Debug, Default)]
pub struct FieldIndex {
    json: Box<str>,
    /// The positions of the object and then of each entry and item in it, in the order of the text
    /// of `json`, in bytes of the file.
    spots: Box<[(u32, u32)]>,
}

impl FieldIndex {
    /// Keeps the object `id` of the document `part`.
    pub fn of(tree: &Tree<'_>, id: Id, part: &Part<'_>) -> Self {
        let object = tree.target(id);
        let mut spots = vec![spot(tree, object, object)];
        let json = without_bulk(tree, id, "", &mut spots).to_string();
        let in_file = |spot: Spot| {
            let spot = spot.moved_by(part.start);
            (narrow(spot.start), narrow(spot.end))
        };
        Self { json: json.into_boxed_str(), spots: spots.into_iter().map(in_file).collect() }
    }

    /// The object without the parts in `BULK`.
    pub fn document(&self) -> Value {
        serde_json::from_str(&self.json).unwrap_or_default()
    }

    /// Finds the field `path` of the object as [`super::locate::locate`] does, in bytes of the
    /// file. `document` is the result of [`Self::document`].
    pub fn locate(&self, document: &Value, path: &str) -> Spot {
        let (mut here, mut found) = (document, 0);
        for step in PathSegments(path) {
            let mut at = found + 1;
            let next = match (&step, here) {
                (PathSegment::Field(name), Value::Object(entries)) => {
                    entries.iter().find_map(|(key, value)| {
                        let spot = at;
                        at += size(value);
                        (key == name).then_some((spot, value))
                    })
                }
                (PathSegment::Item(number), Value::Array(items)) => {
                    let before = items.iter().take(*number);
                    let spot = at + before.map(size).sum::<usize>();
                    items.get(*number).map(|item| (spot, item))
                }
                _ => None,
            };
            let Some((spot, value)) = next else { break };
            (found, here) = (spot, value);
        }
        self.spot(found)
    }

    /// The innermost field whose spot holds the byte `at` of the file, as a JSON pointer, and the
    /// spot.
    pub fn field_at(&self, at: usize) -> Option<(String, Spot)> {
        let holds = |spot: Spot| (spot.start..=spot.end).contains(&at);
        let found = (1..self.spots.len()).rev().find(|number| holds(self.spot(*number)))?;
        Some((pointer_to(&self.document(), found), self.spot(found)))
    }

    fn spot(&self, number: usize) -> Spot {
        let (start, end) = self.spots.get(number).copied().unwrap_or_default();
        Spot { start: start as usize, end: end as usize }
    }
}

/// The JSON pointer to the part of `value` with that number, in the order of its text.
fn pointer_to(value: &Value, number: usize) -> String {
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(entries) => entries.iter().map(|(key, part)| (key.clone(), part)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(n, part)| (n.to_string(), part)).collect()
        }
        _ => Vec::new(),
    };
    let mut first = 1;
    for (key, part) in parts {
        let inner = number.wrapping_sub(first);
        if inner < size(part) {
            let key = key.replace('~', "~0").replace('/', "~1");
            return format!("/{key}{}", pointer_to(part, inner));
        }
        first += size(part);
    }
    String::new()
}

/// The number of values in `value`, including itself.
pub(super) fn size(value: &Value) -> usize {
    1 + match value {
        Value::Object(entries) => entries.values().map(size).sum(),
        Value::Array(items) => items.iter().map(size).sum(),
        _ => 0,
    }
}

/// The value of the node `id` without the parts in `BULK`; adds the position of each entry and item
/// to `spots`. `under` is the key of the mapping or list that contains the node.
fn without_bulk(tree: &Tree<'_>, id: Id, under: &str, spots: &mut Vec<Spot>) -> Value {
    let id = tree.target(id);
    match tree.node(id).shape {
        Shape::Mapping => {
            let mut entries = Map::new();
            for (key, value) in tree.entries(id) {
                let name = tree.key_text(key).unwrap_or_default();
                if !BULK.contains(&(under, &name)) {
                    spots.push(spot(tree, key, value));
                    let value = without_bulk(tree, value, &name, spots);
                    entries.insert(name.into_owned(), value);
                }
            }
            Value::Object(entries)
        }
        Shape::Sequence => {
            let items = tree.children(id).map(|item| {
                spots.push(spot(tree, item, item));
                without_bulk(tree, item, under, spots)
            });
            items.collect()
        }
        Shape::Scalar(_) | Shape::Alias(_) => tree.value(id),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::locate::locate;
    use super::super::split::parts;
    use super::*;

    const TEXT: &str = "\
# the first document
---
status: 1
spec:
  containers: [a]
  status: kept
  volumes:
  - {name: v, secret: {a: 1}}
  - name: data
    persistentVolumeClaim:
      claimName: data
  mode: 0755
labels: {status: live, containers: two, secret: no}
";

    #[test]
    fn the_bulk_is_left_out_only_where_it_stands() {
        let part = &parts(TEXT)[0];
        let tree = Tree::parse(part.text).unwrap().unwrap();
        let outline = FieldIndex::of(&tree, tree.root(), part);
        assert_eq!(
            outline.document(),
            json!({
                "spec": {
                    "status": "kept",
                    "volumes": [
                        {"name": "v"},
                        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                    ],
                    "mode": 493,
                },
                "labels": {"status": "live", "containers": "two", "secret": false},
            })
        );
    }

    #[test]
    fn fields_are_found_where_the_document_has_them() {
        let before = "a: 1\n...\n";
        for (name, text) in [
            ("block style", TEXT.to_owned()),
            ("a key twice", format!("{TEXT}labels: {{x: y}}\n")),
            ("a merge", format!("{TEXT}more:\n  <<: {{x: 1, y: 2}}\n  x: 3\n")),
        ] {
            let text = format!("{before}{text}");
            let part = &parts(&text)[1];
            let tree = Tree::parse(part.text).unwrap().unwrap();
            let outline = FieldIndex::of(&tree, tree.root(), part);
            let document = outline.document();
            for path in [
                "spec",
                "spec.status",
                "spec.volumes",
                "spec.volumes[0].name",
                "spec.volumes[1]",
                "spec.volumes[1].persistentVolumeClaim.claimName",
                "spec.volumes[7].name",
                "spec.mode",
                "spec.nothing",
                "labels.secret",
                "labels.x",
                "more.x",
                "more.y",
                "",
            ] {
                let found = outline.locate(&document, path);
                let expected = locate(&tree, tree.root(), path);
                let moved = |at: usize| at + part.start;
                assert_eq!(
                    (found.start, found.end),
                    (moved(expected.start), moved(expected.end)),
                    "{name}: {path}"
                );
            }
        }
    }
}
