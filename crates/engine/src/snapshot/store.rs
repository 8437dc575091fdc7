//! The facts of a cluster, updated object by object.

use hashbrown::HashSet;

use super::key::ObjectKey;
use super::lookup::Lookup;
use super::stored::{StoredObject, Typed};
use super::table::{Table, Usage};
use crate::model::object::{Object, ObjectKind};
use crate::model::server_version::ServerVersion;

/// Facts about a cluster, which a [`View`](super::View) looks up.
///
/// A snapshot stores only the fields of an object that decide about *other* objects. It does not
/// store scales, nor workloads whose owner is judged and that have no pods with claims.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub(super) objects: Table,
    synced: HashSet<ObjectKind>,
    /// Whether all kinds are synced.
    is_complete: bool,
    /// The version of the cluster's API server.
    pub server: ServerVersion,
}

impl Snapshot {
    /// A cluster about which nothing is known: every look-up is `NotSynced`.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty cluster about which everything is known: objects that are not added are
    /// absent.
    pub fn complete() -> Self {
        Self { is_complete: true, ..Self::default() }
    }

    /// This snapshot, whose objects in namespaces take about `limit` bytes at most, those of one
    /// namespace a third of it, and one object 1/6144 of it. The largest are left out. A look-up in
    /// their namespace that finds nothing is then `NotSynced`.
    #[must_use]
    pub fn limited(mut self, limit: usize) -> Self {
        self.objects.limit = Some(limit);
        self
    }

    /// Adds an object, or replaces the one with the same kind and name. Returns whether that
    /// changed anything; a heartbeat does not.
    pub fn apply(&mut self, object: Object) -> bool {
        StoredObject::of(object).is_some_and(|object| self.put(&object))
    }

    /// Adds a stored object, as [`Self::apply`] does.
    pub fn put(&mut self, object: &StoredObject) -> bool {
        if object.is_kept() { self.objects.put(object) } else { self.objects.remove(object.key()) }
    }

    /// Whether [`Self::put`] would change nothing.
    pub fn contains(&self, object: &StoredObject) -> bool {
        if object.is_kept() {
            self.objects.contains(object)
        } else {
            !self.objects.has(object.key())
        }
    }

    /// Removes an object; `namespace` is empty for objects that have none. Returns whether there
    /// was one.
    pub fn remove(&mut self, kind: ObjectKind, namespace: &str, name: &str) -> bool {
        self.objects.remove(ObjectKey::new(kind, namespace, name))
    }

    /// Begins a new list of all objects of `kind`. The objects before it stay until it is
    /// complete.
    pub fn begin_list(&mut self, kind: ObjectKind) {
        self.objects.begin_list(kind);
    }

    /// Completes the list of all objects of `kind`: removes those that it does not contain.
    /// From now on, an object that is not in the snapshot is absent.
    pub fn synced(&mut self, kind: ObjectKind) {
        self.objects.remove_unlisted(kind);
        self.synced.insert(kind);
    }

    /// Whether a list of all objects of `kind` was complete once.
    pub(crate) fn is_synced(&self, kind: ObjectKind) -> bool {
        self.is_complete || self.synced.contains(&kind)
    }

    /// The memory that objects in namespaces take.
    pub const fn usage(&self) -> Usage {
        self.objects.usage
    }

    /// Whether objects of the namespace are left out.
    pub fn leaves_out(&self, namespace: &str) -> bool {
        self.objects.usage_of(namespace).left_out > 0
    }

    /// The number of objects of `kind`, with those left out.
    pub fn count(&self, kind: ObjectKind) -> usize {
        self.objects.count(kind)
    }

    /// Every object that is judged, in no order. An object whose owner is judged is left out.
    pub fn objects(&self) -> impl Iterator<Item = &StoredObject> {
        self.objects.iter().filter(|object| !object.is_owned())
    }

    pub(super) fn get<T: Typed>(&self, key: ObjectKey<'_>) -> Option<&T> {
        T::of(self.objects.get(key)?)
    }

    pub(super) fn look_up<T: Typed>(&self, key: ObjectKey<'_>) -> Lookup<&T> {
        let missing =
            || Lookup::of(None, self.is_synced(key.kind) && !self.leaves_out(key.tenant()));
        self.get(key).map_or_else(missing, Lookup::Found)
    }

    /// Whether a list of all objects of `kind` was complete once, and at least one exists now.
    pub(super) fn knows_any(&self, kind: ObjectKind) -> bool {
        self.is_synced(kind) && self.count(kind) > 0
    }
}
