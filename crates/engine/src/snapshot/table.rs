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
    /// The bytes that objects in namespaces may take; `None` for any number.
    pub(super) limit: Option<usize>,
    pub(super) usage: Usage,
    usage_by_tenant: HashMap<Text, Usage>,
}

/// The part of the limit that one namespace may take.
const SHARES: usize = 3;

/// The part that one object may take: 32 KiB of 192 MiB, about 150 volumes. Real workloads have
/// tens of volumes, tolerations and constraints (`benches/size.rs`).
const LARGEST_SHARES: usize = 6144;

/// The most objects left out whose names are kept, 100 bytes each. Namespaces with further ones
/// count as incomplete until the program ends.
const MAX_NAMES: usize = 200_000;

/// About the memory that objects take, and the number of objects that are left out to limit it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The bytes of those that are stored.
    pub bytes: usize,
    /// The number of those left out.
    pub left_out: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    namespace: Text,
    name: Text,
}

impl Name {
    fn key(&self, kind: ObjectKind) -> ObjectKey<'_> {
        ObjectKey::new(kind, &self.namespace, &self.name)
    }
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
    /// `None` if it is left out.
    object: Option<StoredObject>,
    /// Whether the current list of the kind contains the object.
    is_listed: bool,
    size: usize,
}

impl Table {
    /// The memory that the objects of one namespace take.
    pub(super) fn usage_of(&self, tenant: &str) -> Usage {
        self.usage_by_tenant.get(tenant).copied().unwrap_or_default()
    }

    /// The number of objects of `kind`, with those left out.
    pub(super) fn count(&self, kind: ObjectKind) -> usize {
        self.kinds.get(&kind).map_or(0, HashMap::len)
    }

    /// The object with this key.
    pub(super) fn get(&self, key: ObjectKey<'_>) -> Option<&StoredObject> {
        self.row(key)?.object.as_ref()
    }

    /// Whether there is such an object, possibly left out.
    pub(super) fn has(&self, key: ObjectKey<'_>) -> bool {
        self.row(key).is_some()
    }

    fn row(&self, key: ObjectKey<'_>) -> Option<&Row> {
        self.kinds.get(&key.kind)?.get(&name_of(key))
    }

    /// Every object, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &StoredObject> {
        self.kinds.values().flat_map(HashMap::values).filter_map(|row| row.object.as_ref())
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
        self.row(object.key()).is_some_and(|row| {
            row.is_listed
                && match &row.object {
                    Some(stored) => stored == object,
                    None => self.is_too_large(object.size()),
                }
        })
    }

    /// Inserts the object, or replaces the one with the same key. Returns whether that changed
    /// anything.
    pub(super) fn put(&mut self, object: &StoredObject) -> bool {
        let key = object.key();
        let of_kind = self.kinds.entry(key.kind).or_default();
        if let Some(row) = of_kind.get_mut(&name_of(key)) {
            row.is_listed = true;
            if row.object.as_ref() == Some(object) {
                return false;
            }
        }
        let size = object.size();
        if self.is_too_large(size) {
            return self.leave_out(key);
        }
        self.remove(key);
        self.insert(key, Row { object: Some(object.clone()), is_listed: true, size });
        self.account(key.tenant(), |usage| usage.bytes += size);
        for hash in self.index_hashes(object) {
            // Most index keys have one object.
            let found = self.index.entry(hash).or_insert_with(|| Vec::with_capacity(1));
            found.push(object.clone());
        }
        self.make_room(key.tenant());
        true
    }

    fn insert(&mut self, key: ObjectKey<'_>, row: Row) {
        let name = Name { namespace: key.namespace.into(), name: key.name.into() };
        self.kinds.entry(key.kind).or_default().insert(name, row);
    }

    fn is_too_large(&self, size: usize) -> bool {
        self.limit.is_some_and(|limit| size > limit / LARGEST_SHARES)
    }

    /// Stores only the name of an object. Returns whether that changed anything.
    fn leave_out(&mut self, key: ObjectKey<'_>) -> bool {
        let row = self.row(key);
        if row.is_some_and(|row| row.object.is_none()) {
            return false;
        }
        let is_listed = row.is_none_or(|row| row.is_listed);
        self.remove(key);
        if self.usage.left_out < MAX_NAMES {
            self.insert(key, Row { object: None, is_listed, size: 0 });
        }
        self.account(key.tenant(), |usage| usage.left_out += 1);
        true
    }

    /// After the tenant's usage has grown: leaves out the largest objects of all who take more than
    /// their share. If all together take too much, the shares are smaller.
    fn make_room(&mut self, tenant: &str) {
        let Some(limit) = self.limit else {
            return;
        };
        let mut share = limit / SHARES;
        if self.usage.bytes <= limit && self.usage_of(tenant).bytes <= share {
            return;
        }
        let sum = |most| -> usize {
            self.usage_by_tenant.values().map(|usage| usage.bytes.min(most)).sum()
        };
        while sum(share) > limit {
            share -= share / 8 + 1;
        }
        let mut largest: Vec<(usize, ObjectKind, Name)> = self
            .kinds
            .iter()
            .flat_map(|(kind, rows)| rows.iter().map(move |(name, row)| (row.size, *kind, name)))
            .filter(|(size, kind, name)| {
                *size > 0 && self.usage_of(name.key(*kind).tenant()).bytes > share
            })
            .map(|(size, kind, name)| (size, kind, name.clone()))
            .collect();
        largest.sort_unstable_by_key(|(size, ..)| std::cmp::Reverse(*size));
        for (_, kind, name) in &largest {
            let key = name.key(*kind);
            // With less than the share, not every further object needs this.
            if self.usage_of(key.tenant()).bytes > share - share / 8 {
                self.leave_out(key);
            }
        }
    }

    fn account(&mut self, tenant: &str, change: impl Fn(&mut Usage)) {
        change(&mut self.usage);
        let usage = self.usage_by_tenant.entry(tenant.into()).or_default();
        change(usage);
        if *usage == Usage::default() {
            self.usage_by_tenant.remove(tenant);
        }
    }

    /// Removes the object with this key. Returns whether there was one.
    pub(super) fn remove(&mut self, key: ObjectKey<'_>) -> bool {
        let Some(row) =
            self.kinds.get_mut(&key.kind).and_then(|of_kind| of_kind.remove(&name_of(key)))
        else {
            return false;
        };
        self.release(key.tenant(), &row);
        true
    }

    /// Releases what a removed row has taken.
    fn release(&mut self, tenant: &str, row: &Row) {
        if let Some(object) = &row.object {
            self.remove_from_index(object);
            self.account(tenant, |usage| usage.bytes -= row.size);
        } else {
            self.account(tenant, |usage| usage.left_out -= 1);
        }
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
        for (name, row) in removed {
            self.release(name.key(kind).tenant(), &row);
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
