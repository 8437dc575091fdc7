//! The parts of an object's document that are kept after its file is closed: the fields that
//! remedies read, and their positions.

use std::cell::RefCell;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

use super::decode::whole;
use super::locate::{PathSegment, PathSegments, Spot, first_line, spot};
use super::scalar::Meaning;
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
#[derive(Clone, Debug)]
pub struct FieldIndex {
    json: Box<str>,
    /// The positions of the object and then of each entry and item in it, in the order of the text
    /// of `json`, in bytes of the file.
    spots: Box<[(u32, u32)]>,
}

impl FieldIndex {
    /// Keeps the object `id` of the document `part`.
    pub fn of(tree: &Tree<'_>, id: Id, part: &Part<'_>) -> Self {
        let spots = RefCell::new(vec![first_line(tree, tree.target(id))]);
        let kept = Kept {
            tree,
            id,
            under: "",
            spots: &spots,
        };
        let json = serde_json::to_string(&kept).unwrap_or_default();
        let in_file = |at: usize| u32::try_from(part.start + at).unwrap_or(u32::MAX);
        let spots = spots.into_inner().into_iter();
        Self {
            json: json.into_boxed_str(),
            spots: spots
                .map(|spot| (in_file(spot.start), in_file(spot.end)))
                .collect(),
        }
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
                        at += 1 + spots_in(value);
                        (key == name).then_some((spot, value))
                    })
                }
                (PathSegment::Item(number), Value::Array(items)) => {
                    let before = items.iter().take(*number);
                    let spot = at + before.map(|item| 1 + spots_in(item)).sum::<usize>();
                    items.get(*number).map(|item| (spot, item))
                }
                _ => None,
            };
            let Some((spot, value)) = next else { break };
            (found, here) = (spot, value);
        }
        let (start, end) = self.spots.get(found).copied().unwrap_or_default();
        Spot {
            start: start as usize,
            end: end as usize,
        }
    }
}

/// The number of entries and items in `value`.
fn spots_in(value: &Value) -> usize {
    match value {
        Value::Object(entries) => entries.values().map(|value| 1 + spots_in(value)).sum(),
        Value::Array(items) => items.iter().map(|item| 1 + spots_in(item)).sum(),
        _ => 0,
    }
}

/// A node that is serialized without the parts in `BULK`. Serializing it also records positions.
#[derive(Clone, Copy)]
struct Kept<'a, 't> {
    tree: &'a Tree<'t>,
    id: Id,
    /// The key of the mapping or list that contains the node.
    under: &'a str,
    spots: &'a RefCell<Vec<Spot>>,
}

impl Serialize for Kept<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tree = self.tree;
        let id = tree.target(self.id);
        match &tree.node(id).shape {
            Shape::Scalar(scalar) => match scalar.meaning() {
                Meaning::Null => serializer.serialize_unit(),
                Meaning::Bool(value) => serializer.serialize_bool(value),
                Meaning::Signed(value) => serializer.serialize_i64(value),
                Meaning::Unsigned(value) => serializer.serialize_u64(value),
                Meaning::Float(value) => match whole(value) {
                    Some(value) => serializer.serialize_i64(value),
                    None => serializer.serialize_f64(value),
                },
                Meaning::Text => serializer.serialize_str(&scalar.text),
            },
            Shape::Sequence { .. } => {
                let mut list = serializer.serialize_seq(None)?;
                for item in tree.children(id) {
                    self.spots.borrow_mut().push(first_line(tree, item));
                    list.serialize_element(&Self { id: item, ..*self })?;
                }
                list.end()
            }
            Shape::Mapping { overlaid, .. } => {
                let mut map = serializer.serialize_map(None)?;
                if *overlaid {
                    for (key, value) in tree.entries(id) {
                        self.entry(key, value, &mut map)?;
                    }
                } else {
                    for (key, value) in tree.written_entries(id) {
                        self.entry(key, value, &mut map)?;
                    }
                }
                map.end()
            }
            // The target of an alias is never an alias.
            Shape::Alias(_) => serializer.serialize_unit(),
        }
    }
}

impl Kept<'_, '_> {
    fn entry<M: SerializeMap>(&self, key: Id, value: Id, map: &mut M) -> Result<(), M::Error> {
        let name = self.tree.key_text(key).unwrap_or_default();
        if BULK.contains(&(self.under, &name)) {
            return Ok(());
        }
        self.spots.borrow_mut().push(spot(self.tree, key, value));
        let value = Kept {
            id: value,
            under: &name,
            ..*self
        };
        map.serialize_entry(&name, &value)
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
            (
                "a merge",
                format!("{TEXT}more:\n  <<: {{x: 1, y: 2}}\n  x: 3\n"),
            ),
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
