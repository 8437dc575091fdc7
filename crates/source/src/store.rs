//! A cluster that one side fills while others ask it.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use engine::model::object::{Object, ObjectKind};
use engine::snapshot::{Snapshot, StoredObject};

/// A [`Snapshot`] behind a lock that is held for one change, or for one judgement.
#[derive(Debug, Default)]
pub(super) struct SnapshotStore(RwLock<Snapshot>);

impl SnapshotStore {
    /// As [`Snapshot::apply`]. Where no fact changes, as in a heartbeat, readers
    /// are not disturbed at all.
    pub(super) fn apply(&self, object: Object) {
        let Some(object) = StoredObject::of(object) else {
            return;
        };
        // In a statement of its own: the guard must be gone before the next.
        let known = self.read().knows(&object);
        if !known {
            self.write().put(&object);
        }
    }

    /// As [`Snapshot::remove`].
    pub(super) fn remove(&self, kind: ObjectKind, namespace: &str, name: &str) {
        self.write().remove(kind, namespace, name);
    }

    /// As [`Snapshot::list_begins`].
    pub(super) fn list_begins(&self, kind: ObjectKind) {
        self.write().list_begins(kind);
    }

    /// As [`Snapshot::synced`].
    pub(super) fn synced(&self, kind: ObjectKind) {
        self.write().synced(kind);
    }

    /// Takes everything out.
    pub(super) fn take(&self) -> Snapshot {
        std::mem::take(&mut *self.write())
    }

    // A panic while the lock is held cannot leave a half-made change that
    // matters more than no answer at all: every look-up checks what it finds.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Snapshot> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Snapshot> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
