//! A snapshot that watches write and judgements read.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use engine::model::object::Object;
use engine::snapshot::{Snapshot, StoredObject};

/// A [`Snapshot`] behind a lock that is held for one change, or for one judgement.
#[derive(Debug, Default)]
pub(super) struct SnapshotStore(RwLock<Snapshot>);

impl SnapshotStore {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        Self(RwLock::new(snapshot))
    }

    /// Does the same as [`Snapshot::apply`]. If nothing changes, as in a heartbeat, no reader
    /// waits.
    pub(super) fn apply(&self, object: Object) {
        let Some(object) = StoredObject::of(object) else {
            return;
        };
        // This is a separate statement so that the read lock is released before the write lock is
        // taken.
        let is_known = self.read().contains(&object);
        if is_known {
            return;
        }
        let namespace = object.key().tenant();
        let mut cluster = self.write();
        let was_complete = !cluster.leaves_out(namespace);
        cluster.put(&object);
        if was_complete && cluster.leaves_out(namespace) {
            tracing::warn!(
                namespace,
                "Objects of the namespace are left out, because they are too large or too many."
            );
        }
    }

    // A lock poisoned by a panic is used all the same: every look-up checks what it finds, and an
    // incomplete change matters less than the absence of all verdicts.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Snapshot> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Snapshot> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
