//! The store behind every kind of object: slots, found by name and by what
//! else objects are looked up by.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

/// What makes an object the one it is among those of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key<'a> {
    /// Tells apart kinds that share a table; 0 elsewhere.
    pub(super) family: u8,
    /// The namespace, empty where there is none.
    pub(super) namespace: &'a str,
    /// The name.
    pub(super) name: &'a str,
}

impl<'a> Key<'a> {
    /// The key of an object without a namespace.
    pub(super) const fn global(name: &'a str) -> Self {
        Self {
            family: 0,
            namespace: "",
            name,
        }
    }
}

/// Something an object is looked up by beside its name.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) enum Trait<'a> {
    /// It lies in this namespace.
    Namespace(&'a str),
    /// Its pods carry this label.
    PodLabel { key: &'a str, value: &'a str },
    /// It is a node with this label.
    NodeLabel { key: &'a str, value: &'a str },
    /// Its pods name this claim.
    Claim { namespace: &'a str, claim: &'a str },
    /// Its claim templates make claims of this name, a dash and a number.
    ClaimStem { namespace: &'a str, stem: &'a str },
    /// It scales this workload.
    Target {
        namespace: &'a str,
        kind: &'a str,
        name: &'a str,
    },
    /// It is a volume of this class that no claim has taken.
    FreeOfClass(&'a str),
}

/// An object that a table holds.
pub(super) trait Stored: PartialEq {
    /// Its key. It must not change while the object is held.
    fn key(&self) -> Key<'_>;

    /// Calls `add` with everything it is looked up by beside its name.
    fn traits(&self, add: &mut dyn FnMut(Trait<'_>));
}

/// Objects of one kind, or of a few related ones.
///
/// Names and traits are kept as hashes alone and compared with the objects
/// themselves when they are asked for: a key costs nine bytes, not a copy of
/// its strings. What a trait finds is therefore a superset, to be checked.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    slots: Vec<Option<Arc<T>>>,
    /// One per slot, apart from the objects: walking these touches none of them.
    marks: Vec<Mark>,
    vacant: Vec<u32>,
    names: HashTable<u32>,
    postings: Postings,
    hasher: DefaultHashBuilder,
}

/// What is kept of a slot beside its object.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The object's family; `None` where the slot is vacant.
    family: Option<u8>,
    /// Whether the present list of the family has named the object.
    listed: bool,
}

const VACANT: Mark = Mark {
    family: None,
    listed: false,
};

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            marks: Vec::new(),
            vacant: Vec::new(),
            names: HashTable::new(),
            postings: Postings::default(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl<T: Stored> Table<T> {
    /// Whether there is no object.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// How many objects of `family` there are.
    pub(super) fn count(&self, family: u8) -> usize {
        self.marks
            .iter()
            .filter(|mark| mark.family == Some(family))
            .count()
    }

    /// The object of that key.
    pub(super) fn get(&self, key: Key<'_>) -> Option<&Arc<T>> {
        self.at(self.slot_of(key)?)
    }

    /// The object in `slot`, where one is left.
    pub(super) fn at(&self, slot: u32) -> Option<&Arc<T>> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Every object, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.slots.iter().flatten()
    }

    /// The slots that may hold objects with that trait.
    pub(super) fn slots_with(&self, wanted: Trait<'_>) -> &[u32] {
        self.postings.get(self.hash_trait(wanted))
    }

    /// Every slot number in use, and some that are not.
    pub(super) fn all_slots(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }

    /// The objects that may have that trait.
    pub(super) fn with(&self, wanted: Trait<'_>) -> impl Iterator<Item = &Arc<T>> {
        self.slots_with(wanted)
            .iter()
            .filter_map(|slot| self.at(*slot))
    }

    /// Whether the same object is held already and was named by the present list.
    pub(super) fn knows(&self, object: &T) -> bool {
        self.slot_of(object.key()).is_some_and(|slot| {
            self.marks[slot as usize].listed && self.at(slot).is_some_and(|held| **held == *object)
        })
    }

    /// Puts the object in, in place of the one of the same key; whether
    /// anything changed by that.
    pub(super) fn put(&mut self, object: T) -> bool {
        if let Some(slot) = self.slot_of(object.key()) {
            self.marks[slot as usize].listed = true;
            let Some(held) = self.slots[slot as usize].take() else {
                return false;
            };
            if *held == object {
                self.slots[slot as usize] = Some(held);
                return false;
            }
            self.unpost(slot, &held);
            self.post(slot, &object);
            self.slots[slot as usize] = Some(Arc::new(object));
            return true;
        }
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.marks.push(VACANT);
            (self.slots.len() - 1) as u32
        });
        let key = object.key();
        let hash = self.hasher.hash_one(key);
        self.marks[slot as usize] = Mark {
            family: Some(key.family),
            listed: true,
        };
        self.post(slot, &object);
        self.slots[slot as usize] = Some(Arc::new(object));
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.names.insert_unique(hash, slot, |slot| {
            slots[*slot as usize]
                .as_ref()
                .map_or(0, |held| hasher.hash_one(held.key()))
        });
        true
    }

    /// Takes the object of that key out; whether it was there.
    pub(super) fn take(&mut self, key: Key<'_>) -> bool {
        let Some(slot) = self.slot_of(key) else {
            return false;
        };
        let slots = &self.slots;
        if let Ok(entry) = self
            .names
            .find_entry(self.hasher.hash_one(key), |candidate| {
                holds(slots, *candidate, key)
            })
        {
            entry.remove();
        }
        if let Some(held) = self.slots[slot as usize].take() {
            self.unpost(slot, &held);
        }
        self.marks[slot as usize] = VACANT;
        self.vacant.push(slot);
        true
    }

    /// Forgets that the objects of `family` were listed.
    pub(super) fn unlist(&mut self, family: u8) {
        for mark in &mut self.marks {
            if mark.family == Some(family) {
                mark.listed = false;
            }
        }
    }

    /// Takes out the objects of `family` that were not listed.
    pub(super) fn drop_unlisted(&mut self, family: u8) {
        for slot in 0..self.marks.len() {
            let mark = self.marks[slot];
            if mark.family != Some(family) || mark.listed {
                continue;
            }
            if let Some(object) = self.slots[slot].clone() {
                self.take(object.key());
            }
        }
    }

    fn slot_of(&self, key: Key<'_>) -> Option<u32> {
        self.names
            .find(self.hasher.hash_one(key), |slot| {
                holds(&self.slots, *slot, key)
            })
            .copied()
    }

    // Half of the hash is plenty for a superset and halves the postings.
    fn hash_trait(&self, wanted: Trait<'_>) -> u32 {
        self.hasher.hash_one(wanted) as u32
    }

    fn trait_hashes(&self, object: &T) -> Vec<u32> {
        let mut hashes = Vec::new();
        object.traits(&mut |found| hashes.push(self.hash_trait(found)));
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    fn post(&mut self, slot: u32, object: &T) {
        for hash in self.trait_hashes(object) {
            self.postings.add(hash, slot);
        }
    }

    fn unpost(&mut self, slot: u32, object: &T) {
        for hash in self.trait_hashes(object) {
            self.postings.remove(hash, slot);
        }
    }
}

fn holds<T: Stored>(slots: &[Option<Arc<T>>], slot: u32, key: Key<'_>) -> bool {
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
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Thing {
        name: &'static str,
        colours: Vec<&'static str>,
    }

    impl Stored for Thing {
        fn key(&self) -> Key<'_> {
            Key::global(self.name)
        }

        fn traits(&self, add: &mut dyn FnMut(Trait<'_>)) {
            for colour in &self.colours {
                add(Trait::FreeOfClass(colour));
            }
        }
    }

    fn thing(name: &'static str, colours: &[&'static str]) -> Thing {
        Thing {
            name,
            colours: colours.to_vec(),
        }
    }

    fn named(table: &Table<Thing>, colour: &str) -> Vec<&'static str> {
        let mut names: Vec<_> = table
            .with(Trait::FreeOfClass(colour))
            .filter(|thing| thing.colours.contains(&colour))
            .map(|thing| thing.name)
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn objects_are_found_by_name_and_trait_through_every_change() {
        let mut table = Table::default();
        assert!(table.put(thing("a", &["red"])));
        assert!(table.put(thing("b", &["red", "red", "blue"])));
        assert!(table.put(thing("c", &["red"])));
        assert!(!table.put(thing("c", &["red"])), "the same again");
        assert_eq!(named(&table, "red"), ["a", "b", "c"]);

        assert!(table.put(thing("a", &["blue"])));
        assert_eq!(named(&table, "red"), ["b", "c"]);
        assert_eq!(named(&table, "blue"), ["a", "b"]);

        assert!(table.take(Key::global("b")));
        assert!(!table.take(Key::global("b")));
        assert_eq!(named(&table, "red"), ["c"]);
        assert_eq!(named(&table, "blue"), ["a"]);
        assert!(table.get(Key::global("b")).is_none());

        assert!(table.put(thing("d", &["red"])), "in the slot of b");
        assert_eq!(named(&table, "red"), ["c", "d"]);
        assert_eq!(table.count(0), 3);
        assert_eq!(table.all_slots(), 0..3);
    }

    #[test]
    fn what_a_new_list_leaves_out_is_dropped() {
        let mut table = Table::default();
        table.put(thing("a", &[]));
        table.put(thing("b", &[]));
        table.unlist(0);
        assert!(!table.knows(&thing("b", &[])));
        table.put(thing("b", &[]));
        assert!(table.knows(&thing("b", &[])));
        table.drop_unlisted(0);
        let names: Vec<_> = table.iter().map(|thing| thing.name).collect();
        assert_eq!(names, ["b"]);
    }
}
