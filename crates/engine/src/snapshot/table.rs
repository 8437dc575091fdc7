//! The table of objects: slots, found by name and by what else objects are
//! looked up by.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::key::{IndexKey, ObjectKey};
use super::stored::StoredObject;
use crate::model::object::ObjectKind;
use crate::model::workload::WorkloadKind;

/// How many kinds there are, workloads and others.
const KINDS: usize = WORKLOAD_KINDS + 11;

const WORKLOAD_KINDS: usize = WorkloadKind::ALL.len();

/// A number of its own for each kind, below [`KINDS`].
pub(super) const fn number(kind: ObjectKind) -> usize {
    match kind {
        ObjectKind::Workload(kind) => kind as usize,
        ObjectKind::Claim => WORKLOAD_KINDS,
        ObjectKind::Volume => WORKLOAD_KINDS + 1,
        ObjectKind::StorageClass => WORKLOAD_KINDS + 2,
        ObjectKind::CsiDriver => WORKLOAD_KINDS + 3,
        ObjectKind::Node => WORKLOAD_KINDS + 4,
        ObjectKind::Namespace => WORKLOAD_KINDS + 5,
        ObjectKind::Autoscaler => WORKLOAD_KINDS + 6,
        ObjectKind::Scale => WORKLOAD_KINDS + 7,
        ObjectKind::Lease => WORKLOAD_KINDS + 8,
        ObjectKind::VolumeAttachment => WORKLOAD_KINDS + 9,
        ObjectKind::RuntimeClass => WORKLOAD_KINDS + 10,
    }
}

/// Objects of all kinds.
///
/// Names and traits are kept as hashes alone and compared with the objects
/// themselves when they are asked for: a key costs nine bytes, not a copy of
/// its strings. What a trait finds is therefore a superset, to be checked.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    slots: Vec<Option<StoredObject>>,
    /// One per slot, apart from the objects: walking these touches none of them.
    marks: Vec<Mark>,
    vacant: Vec<u32>,
    counts: [usize; KINDS],
    names: HashTable<u32>,
    postings: Postings,
    hasher: DefaultHashBuilder,
}

/// What is kept of a slot beside its object.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The object's kind; `None` where the slot is vacant.
    kind: Option<ObjectKind>,
    /// Whether the present list of the kind has named the object.
    listed: bool,
}

const VACANT: Mark = Mark {
    kind: None,
    listed: false,
};

impl Table {
    /// How many objects of `kind` there are.
    pub(super) const fn count(&self, kind: ObjectKind) -> usize {
        self.counts[number(kind)]
    }

    /// The object of that key.
    pub(super) fn get(&self, key: ObjectKey<'_>) -> Option<&StoredObject> {
        self.at(self.slot_of(key)?)
    }

    fn at(&self, slot: u32) -> Option<&StoredObject> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Every object, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &StoredObject> {
        self.slots.iter().flatten()
    }

    /// The objects that may have that trait.
    pub(super) fn with(&self, wanted: IndexKey<'_>) -> impl Iterator<Item = &StoredObject> {
        self.all_of(self.slots_with(wanted))
    }

    /// The objects that may have all of those traits: the shortest list of one.
    /// Without any, every object.
    pub(super) fn with_shortest<'t>(
        &self,
        wanted: impl Iterator<Item = IndexKey<'t>>,
    ) -> impl Iterator<Item = &StoredObject> {
        let shortest = wanted
            .map(|wanted| self.slots_with(wanted))
            .min_by_key(|slots| slots.len());
        let all = shortest.is_none().then(|| self.iter());
        self.all_of(shortest.unwrap_or_default())
            .chain(all.into_iter().flatten())
    }

    fn slots_with(&self, wanted: IndexKey<'_>) -> &[u32] {
        self.postings.get(self.hash_trait(wanted))
    }

    fn all_of(&self, slots: &[u32]) -> impl Iterator<Item = &StoredObject> {
        slots.iter().filter_map(|slot| self.at(*slot))
    }

    /// Whether the same object is held already and was named by the present list.
    pub(super) fn knows(&self, object: &StoredObject) -> bool {
        self.slot_of(object.key())
            .is_some_and(|slot| self.marks[slot as usize].listed && self.at(slot) == Some(object))
    }

    /// Puts the object in, in place of the one of the same key; whether
    /// anything changed by that.
    pub(super) fn put(&mut self, object: StoredObject) -> bool {
        if let Some(slot) = self.slot_of(object.key()) {
            self.marks[slot as usize].listed = true;
            let Some(held) = self.slots[slot as usize].take() else {
                return false;
            };
            if held == object {
                self.slots[slot as usize] = Some(held);
                return false;
            }
            self.unpost(slot, &held);
            self.post(slot, &object);
            self.slots[slot as usize] = Some(object);
            return true;
        }
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.marks.push(VACANT);
            (self.slots.len() - 1) as u32
        });
        let kind = object.kind();
        let hash = self.hasher.hash_one(object.key());
        self.marks[slot as usize] = Mark {
            kind: Some(kind),
            listed: true,
        };
        self.counts[number(kind)] += 1;
        self.post(slot, &object);
        self.slots[slot as usize] = Some(object);
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.names.insert_unique(hash, slot, |slot| {
            slots[*slot as usize]
                .as_ref()
                .map_or(0, |held| hasher.hash_one(held.key()))
        });
        true
    }

    /// Takes the object of that key out; whether it was there.
    pub(super) fn take(&mut self, key: ObjectKey<'_>) -> bool {
        let Some(slot) = self.slot_of(key) else {
            return false;
        };
        self.vacate(slot);
        true
    }

    fn vacate(&mut self, slot: u32) {
        let Some(held) = self.slots[slot as usize].take() else {
            return;
        };
        let hash = self.hasher.hash_one(held.key());
        if let Ok(entry) = self.names.find_entry(hash, |candidate| *candidate == slot) {
            entry.remove();
        }
        self.unpost(slot, &held);
        self.counts[number(held.kind())] -= 1;
        self.marks[slot as usize] = VACANT;
        self.vacant.push(slot);
    }

    /// Forgets that the objects of `kind` were listed.
    pub(super) fn unlist(&mut self, kind: ObjectKind) {
        for mark in &mut self.marks {
            if mark.kind == Some(kind) {
                mark.listed = false;
            }
        }
    }

    /// Takes out the objects of `kind` that were not listed.
    pub(super) fn drop_unlisted(&mut self, kind: ObjectKind) {
        for slot in 0..self.marks.len() {
            let mark = self.marks[slot];
            if mark.kind == Some(kind) && !mark.listed {
                self.vacate(slot as u32);
            }
        }
    }

    fn slot_of(&self, key: ObjectKey<'_>) -> Option<u32> {
        self.names
            .find(self.hasher.hash_one(key), |slot| {
                holds(&self.slots, *slot, key)
            })
            .copied()
    }

    // Half of the hash is plenty for a superset and halves the postings.
    fn hash_trait(&self, wanted: IndexKey<'_>) -> u32 {
        self.hasher.hash_one(wanted) as u32
    }

    fn trait_hashes(&self, object: &StoredObject) -> Vec<u32> {
        let mut hashes = Vec::new();
        object.traits(&mut |found| hashes.push(self.hash_trait(found)));
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    fn post(&mut self, slot: u32, object: &StoredObject) {
        for hash in self.trait_hashes(object) {
            self.postings.add(hash, slot);
        }
    }

    fn unpost(&mut self, slot: u32, object: &StoredObject) {
        for hash in self.trait_hashes(object) {
            self.postings.remove(hash, slot);
        }
    }
}

fn holds(slots: &[Option<StoredObject>], slot: u32, key: ObjectKey<'_>) -> bool {
    slots[slot as usize]
        .as_ref()
        .is_some_and(|held| held.key() == key)
}

/// Lists of slots by hash. Most traits belong to one object alone, so a list of
/// one is kept in the table itself: eight bytes.
#[derive(Clone, Debug, Default)]
struct Postings {
    heads: HashTable<Head>,
    lists: Vec<Vec<u32>>,
    vacant: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    hash: u32,
    /// The one slot or, with [`MANY`] set, the number of the list.
    at: u32,
}

const MANY: u32 = 1 << 31;

impl Head {
    const fn list(self) -> Option<usize> {
        if self.at & MANY == 0 {
            None
        } else {
            Some((self.at & !MANY) as usize)
        }
    }
}

/// Fills 64 bits: the table takes its buckets from the low ones and a tag from
/// the high ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Postings {
    fn get(&self, hash: u32) -> &[u32] {
        let Some(head) = self.heads.find(spread(hash), |head| head.hash == hash) else {
            return &[];
        };
        match head.list() {
            Some(list) => &self.lists[list],
            None => std::slice::from_ref(&head.at),
        }
    }

    fn add(&mut self, hash: u32, slot: u32) {
        let Some(head) = self.heads.find_mut(spread(hash), |head| head.hash == hash) else {
            let head = Head { hash, at: slot };
            self.heads
                .insert_unique(spread(hash), head, |head| spread(head.hash));
            return;
        };
        if let Some(list) = head.list() {
            self.lists[list].push(slot);
            return;
        }
        let pair = vec![head.at, slot];
        let list = match self.vacant.pop() {
            Some(list) => {
                self.lists[list as usize] = pair;
                list
            }
            None => {
                self.lists.push(pair);
                (self.lists.len() - 1) as u32
            }
        };
        head.at = list | MANY;
    }

    fn remove(&mut self, hash: u32, slot: u32) {
        let Ok(mut entry) = self
            .heads
            .find_entry(spread(hash), |head| head.hash == hash)
        else {
            return;
        };
        let Some(list) = entry.get().list() else {
            if entry.get().at == slot {
                entry.remove();
            }
            return;
        };
        let slots = &mut self.lists[list];
        if let Some(at) = slots.iter().position(|candidate| *candidate == slot) {
            slots.swap_remove(at);
        }
        if let [last] = slots[..] {
            entry.get_mut().at = last;
            self.lists[list] = Vec::new();
            self.vacant.push(list as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeSeed;
    use serde_json::json;

    use super::*;

    fn node(name: &str, colours: &[&str]) -> StoredObject {
        let labels: serde_json::Map<_, _> = colours
            .iter()
            .map(|colour| ((*colour).to_owned(), json!("yes")))
            .collect();
        let node = json!({"metadata": {"name": name, "labels": labels}});
        StoredObject::of(ObjectKind::Node.deserialize(node).unwrap()).unwrap()
    }

    const fn key(name: &str) -> ObjectKey<'_> {
        ObjectKey::global(ObjectKind::Node, name)
    }

    fn named(table: &Table, colour: &str) -> Vec<String> {
        let wanted = IndexKey::NodeLabel {
            key: colour,
            value: "yes",
        };
        let mut names: Vec<_> = table
            .with(wanted)
            .map(|node| node.key().name.to_owned())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn traits_follow_the_objects() {
        let mut table = Table::default();
        assert!(table.put(node("a", &["red"])));
        assert!(table.put(node("b", &["red", "blue"])));
        assert!(table.put(node("c", &["red"])));
        assert!(!table.put(node("c", &["red"])), "the same again");
        assert_eq!(named(&table, "red"), ["a", "b", "c"]);

        assert!(table.put(node("a", &["blue"])));
        assert_eq!(named(&table, "red"), ["b", "c"]);
        assert_eq!(named(&table, "blue"), ["a", "b"]);

        assert!(table.take(key("b")));
        assert!(!table.take(key("b")));
        assert_eq!(named(&table, "red"), ["c"]);
        assert_eq!(named(&table, "blue"), ["a"]);
        assert!(table.get(key("b")).is_none());

        assert!(table.put(node("d", &["red"])), "in the slot of b");
        assert_eq!(named(&table, "red"), ["c", "d"]);
        assert_eq!(table.count(ObjectKind::Node), 3);
        assert_eq!(table.slots.len(), 3);
    }

    #[test]
    fn what_a_new_list_leaves_out_is_dropped() {
        let mut table = Table::default();
        table.put(node("a", &[]));
        table.put(node("b", &[]));
        table.unlist(ObjectKind::Node);
        assert!(!table.knows(&node("b", &[])));
        table.put(node("b", &[]));
        assert!(table.knows(&node("b", &[])));
        table.drop_unlisted(ObjectKind::Node);
        let names: Vec<_> = table.iter().map(|node| node.key().name).collect();
        assert_eq!(names, ["b"]);
    }

    #[test]
    fn every_kind_has_a_number_of_its_own() {
        let workloads = WorkloadKind::ALL.into_iter().map(ObjectKind::Workload);
        let others = [
            ObjectKind::Claim,
            ObjectKind::Volume,
            ObjectKind::StorageClass,
            ObjectKind::CsiDriver,
            ObjectKind::Node,
            ObjectKind::Namespace,
            ObjectKind::Autoscaler,
            ObjectKind::Scale,
            ObjectKind::Lease,
            ObjectKind::VolumeAttachment,
            ObjectKind::RuntimeClass,
        ];
        let numbers: Vec<_> = workloads.chain(others).map(number).collect();
        assert_eq!(numbers, (0..KINDS).collect::<Vec<_>>());
    }
}
