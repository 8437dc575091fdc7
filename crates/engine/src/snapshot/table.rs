//! The table of objects, which finds them by name and by the keys of an index.

use std::hash::BuildHasher;

use hashbrown::hash_map::Entry;
use hashbrown::{DefaultHashBuilder, Equivalent, HashMap};

use super::key::{IndexKey, ObjectKey};
use super::stored::StoredObject;
use crate::model::Text;
use crate::model::object::ObjectKind;

/// Objects of all kinds.
///
/// The index is a map by the hashes of index keys, so a key finds a superset, which the caller has
/// to check.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    kinds: HashMap<ObjectKind, HashMap<Name, Row>>,
    index: HashMap<u64, Vec<StoredObject>>,
    hasher: DefaultHashBuilder,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    namespace: Text,
    name: Text,
}

/// A [`Name`] that is borrowed; it has the same hash.
type NameRef<'a> = (&'a str, &'a str);

impl Equivalent<Name> for NameRef<'_> {
    fn equivalent(&self, key: &Name) -> bool {
        *self == (key.namespace.as_str(), key.name.as_str())
    }
}

#[derive(Clone, Debug)]
struct Row {
    object: StoredObject,
    /// Whether the current list of the kind contains the object.
    is_listed: bool,
}

impl Table {
    /// The number of objects of `kind`.
    pub(super) fn count(&self, kind: ObjectKind) -> usize {
        self.kinds.get(&kind).map_or(0, HashMap::len)
    }

    /// The object with this key.
    pub(super) fn get(&self, key: ObjectKey<'_>) -> Option<&StoredObject> {
        self.row(key).map(|row| &row.object)
    }

    fn row(&self, key: ObjectKey<'_>) -> Option<&Row> {
        self.kinds.get(&key.kind)?.get(&name_of(key))
    }

    /// Every object, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &StoredObject> {
        self.kinds.values().flat_map(HashMap::values).map(|row| &row.object)
    }

    /// A superset of the objects with this index key.
    pub(super) fn with(&self, key: IndexKey<'_>) -> &[StoredObject] {
        let found = self.index.get(&self.hasher.hash_one(key));
        found.map_or(&[], Vec::as_slice)
    }

    /// A superset of the objects with all these index keys; every object if there are no keys.
    pub(super) fn with_all<'s>(
        &'s self,
        keys: &[IndexKey<'_>],
    ) -> impl Iterator<Item = &'s StoredObject> + use<'s> {
        let shortest = keys.iter().map(|key| self.with(*key)).min_by_key(|objects| objects.len());
        let all = shortest.is_none().then(|| self.iter());
        shortest.unwrap_or_default().iter().chain(all.into_iter().flatten())
    }

    /// Whether the current list of the kind contains the same object.
    pub(super) fn contains(&self, object: &StoredObject) -> bool {
        self.row(object.key()).is_some_and(|row| row.is_listed && row.object == *object)
    }

    /// Inserts the object, or replaces the one with the same key. Returns whether that changed
    /// anything.
    pub(super) fn put(&mut self, object: &StoredObject) -> bool {
        let key = object.key();
        let of_kind = self.kinds.entry(key.kind).or_default();
        if let Some(row) = of_kind.get_mut(&name_of(key)) {
            row.is_listed = true;
            if row.object == *object {
                return false;
            }
            let old = std::mem::replace(&mut row.object, object.clone());
            self.remove_from_index(&old);
        } else {
            let name = Name { namespace: key.namespace.into(), name: key.name.into() };
            let row = Row { object: object.clone(), is_listed: true };
            of_kind.insert(name, row);
        }
        for hash in self.index_hashes(object) {
            // Most index keys have one object.
            let found = self.index.entry(hash).or_insert_with(|| Vec::with_capacity(1));
            found.push(object.clone());
        }
        true
    }

    /// Removes the object with this key. Returns whether there was one.
    pub(super) fn remove(&mut self, key: ObjectKey<'_>) -> bool {
        let Some(row) =
            self.kinds.get_mut(&key.kind).and_then(|of_kind| of_kind.remove(&name_of(key)))
        else {
            return false;
        };
        self.remove_from_index(&row.object);
        true
    }

    /// Begins a new list of the kind, which contains nothing yet.
    pub(super) fn begin_list(&mut self, kind: ObjectKind) {
        for row in self.kinds.entry(kind).or_default().values_mut() {
            row.is_listed = false;
        }
    }

    /// Removes the objects of `kind` that the current list does not contain.
    pub(super) fn remove_unlisted(&mut self, kind: ObjectKind) {
        let of_kind = self.kinds.entry(kind).or_default();
        let removed: Vec<_> = of_kind.extract_if(|_, row| !row.is_listed).collect();
        for (_, row) in removed {
            self.remove_from_index(&row.object);
        }
    }

    fn index_hashes(&self, object: &StoredObject) -> Vec<u64> {
        let mut hashes = Vec::new();
        object.index_keys(&mut |key| hashes.push(self.hasher.hash_one(key)));
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    fn remove_from_index(&mut self, object: &StoredObject) {
        for hash in self.index_hashes(object) {
            let Entry::Occupied(mut entry) = self.index.entry(hash) else {
                continue;
            };
            let found = entry.get_mut();
            if let Some(at) = found.iter().position(|indexed| indexed.is_same(object)) {
                found.swap_remove(at);
            }
            if found.is_empty() {
                entry.remove();
            }
        }
    }
}

const fn name_of<'a>(key: ObjectKey<'a>) -> NameRef<'a> {
    (key.namespace, key.name)
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeSeed;
    use serde_json::json;

    use super::*;

    fn node(name: &str, colours: &[&str]) -> StoredObject {
        let labels: serde_json::Map<_, _> =
            colours.iter().map(|colour| ((*colour).to_owned(), json!("yes"))).collect();
        let node = json!({"metadata": {"name": name, "labels": labels}});
        StoredObject::of(ObjectKind::Node.deserialize(node).unwrap()).unwrap()
    }

    const fn key(name: &str) -> ObjectKey<'_> {
        ObjectKey::global(ObjectKind::Node, name)
    }

    fn named(table: &Table, colour: &str) -> Vec<String> {
        let key = IndexKey::NodeLabel { key: colour, value: "yes" };
        let mut names: Vec<_> =
            table.with(key).iter().map(|node| node.key().name.to_owned()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_index_follows_the_objects() {
        let mut table = Table::default();
        assert!(table.put(&node("a", &["red"])));
        assert!(table.put(&node("b", &["red", "blue"])));
        assert!(table.put(&node("c", &["red"])));
        assert!(!table.put(&node("c", &["red"])), "the same again");
        assert_eq!(named(&table, "red"), ["a", "b", "c"]);

        assert!(table.put(&node("a", &["blue"])));
        assert_eq!(named(&table, "red"), ["b", "c"]);
        assert_eq!(named(&table, "blue"), ["a", "b"]);

        assert!(table.remove(key("b")));
        assert!(!table.remove(key("b")));
        assert_eq!(named(&table, "red"), ["c"]);
        assert_eq!(named(&table, "blue"), ["a"]);
        assert!(table.get(key("b")).is_none());

        assert!(table.put(&node("d", &["red"])));
        assert_eq!(named(&table, "red"), ["c", "d"]);
        assert_eq!(table.count(ObjectKind::Node), 3);

        for name in ["a", "c", "d"] {
            assert!(table.remove(key(name)));
        }
        assert!(table.index.is_empty(), "nothing is left behind");
    }

    #[test]
    fn objects_missing_from_a_new_list_are_removed() {
        let mut table = Table::default();
        table.put(&node("a", &[]));
        table.put(&node("b", &[]));
        table.begin_list(ObjectKind::Node);
        assert!(!table.contains(&node("b", &[])));
        table.put(&node("b", &[]));
        assert!(table.contains(&node("b", &[])));
        table.remove_unlisted(ObjectKind::Node);
        let names: Vec<_> = table.iter().map(|node| node.key().name).collect();
        assert_eq!(names, ["b"]);
    }
}
