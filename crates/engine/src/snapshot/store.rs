//! The store: objects by everything they are looked up by.

use std::collections::HashSet;

use super::key::{IndexKey, ObjectKey};
use super::lookup::Lookup;
use super::stored::{StoredObject, Typed};
use super::table::Table;
use crate::model::Text;
use crate::model::object::{Object, ObjectKind};
use crate::model::storage_class::StorageClass;

/// Facts about a cluster. Filled object by object; asked through a [`View`](super::View).
///
/// Of each object only what decides about *others* is kept. Workloads whose
/// owner is judged (`Workload::owner_is_judged`) and scales are not kept.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    objects: Table,
    /// The name of the class that claims without one get.
    default_class: Option<Text>,
    synced: HashSet<ObjectKind>,
    /// Whether all kinds are synced.
    is_complete: bool,
}

impl Snapshot {
    /// A cluster of which nothing is known: every answer is `NotSynced`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A cluster of which everything is known, still empty: what is not put in
    /// is absent.
    #[must_use]
    pub fn complete() -> Self {
        Self {
            is_complete: true,
            ..Self::default()
        }
    }

    /// Puts an object in, in place of the one of the same kind and name.
    /// Whether a fact changed: a heartbeat changes none.
    pub fn apply(&mut self, object: Object) -> bool {
        StoredObject::of(object).is_some_and(|object| self.put(&object))
    }

    /// As [`Self::apply`].
    pub fn put(&mut self, object: &StoredObject) -> bool {
        let kind = object.kind();
        let changed = if object.is_kept() {
            self.objects.put(object)
        } else {
            self.objects.remove(object.key())
        };
        self.choose_default_class(kind);
        changed
    }

    /// Puts an object in that is asked for by its name alone.
    pub(super) fn hold(&mut self, object: &StoredObject) {
        self.objects.put(object);
    }

    /// Whether putting `object` in would change nothing. Asked first by those
    /// who must lock the cluster for a change.
    pub fn knows(&self, object: &StoredObject) -> bool {
        if object.is_kept() {
            self.objects.contains(object)
        } else {
            self.objects.get(object.key()).is_none()
        }
    }

    /// Takes an object out; `namespace` is empty for objects that have none.
    /// Whether it was there.
    pub fn remove(&mut self, kind: ObjectKind, namespace: &str, name: &str) -> bool {
        let removed = self.objects.remove(ObjectKey {
            kind,
            namespace,
            name,
        });
        self.choose_default_class(kind);
        removed
    }

    /// Says that a new list of all objects of `kind` begins. Until it is
    /// complete, what was known of the kind stays.
    pub fn list_begins(&mut self, kind: ObjectKind) {
        self.objects.begin_list(kind);
    }

    /// Says that all objects of `kind` have been put in. Those that a list
    /// begun before did not name are dropped; from here on, what was not put in
    /// is absent.
    pub fn synced(&mut self, kind: ObjectKind) {
        self.objects.remove_unlisted(kind);
        self.choose_default_class(kind);
        self.synced.insert(kind);
    }

    /// Whether all objects of `kind` have been put in once.
    #[must_use]
    pub(crate) fn is_synced(&self, kind: ObjectKind) -> bool {
        self.is_complete || self.synced.contains(&kind)
    }

    /// How many objects of `kind` are held.
    #[must_use]
    pub fn count(&self, kind: ObjectKind) -> usize {
        self.objects.count(kind)
    }

    /// Every object, in no order.
    pub fn objects(&self) -> impl Iterator<Item = &StoredObject> {
        self.objects.iter()
    }

    /// Whether an object of that kind and name is held.
    pub(super) fn holds(&self, key: ObjectKey<'_>) -> bool {
        self.objects.get(key).is_some()
    }

    pub(super) fn get<T: Typed>(&self, key: ObjectKey<'_>) -> Option<&T> {
        T::of(self.objects.get(key)?)
    }

    pub(super) fn look_up<T: Typed>(&self, key: ObjectKey<'_>) -> Lookup<&T> {
        self.get(key)
            .map_or_else(|| self.missing(key.kind), Lookup::Found)
    }

    fn missing<T>(&self, kind: ObjectKind) -> Lookup<T> {
        if self.is_synced(kind) {
            Lookup::Absent
        } else {
            Lookup::NotSynced
        }
    }

    /// The objects that may have that trait.
    pub(super) fn with(&self, wanted: IndexKey<'_>) -> impl Iterator<Item = &StoredObject> {
        self.objects.with(wanted).iter()
    }

    /// The objects that may have all of those traits; without any, every object.
    pub(super) fn with_all<'t>(
        &self,
        wanted: impl Iterator<Item = IndexKey<'t>>,
    ) -> impl Iterator<Item = &StoredObject> {
        self.objects.with_all(wanted)
    }

    /// Whether nodes are known, as [`View::visit_nodes`](super::View::visit_nodes) says it.
    pub(super) fn nodes_known(&self) -> Lookup<()> {
        if self.is_synced(ObjectKind::Node) && self.count(ObjectKind::Node) > 0 {
            Lookup::Found(())
        } else {
            self.missing(ObjectKind::Node)
        }
    }

    pub(super) fn default_class(&self) -> Lookup<&StorageClass> {
        match self.known_default_class() {
            Some(class) if self.is_synced(ObjectKind::StorageClass) => Lookup::Found(class),
            _ => self.missing(ObjectKind::StorageClass),
        }
    }

    /// The default class of those held, which need not be all.
    pub(super) fn known_default_class(&self) -> Option<&StorageClass> {
        let name = self.default_class.as_ref()?;
        self.get(ObjectKey::global(ObjectKind::StorageClass, name))
    }

    fn choose_default_class(&mut self, changed: ObjectKind) {
        if changed != ObjectKind::StorageClass {
            return;
        }
        self.default_class = self
            .with(IndexKey::Kind(ObjectKind::StorageClass))
            .filter_map(StorageClass::of)
            .filter(|class| class.is_default())
            .map(|class| &class.metadata)
            .max_by(|a, b| (&a.creation_timestamp, &b.name).cmp(&(&b.creation_timestamp, &a.name)))
            .map(|class| class.name.clone());
    }
}
