//! A cluster that one side fills while others ask it.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::cluster::{Cluster, Stored};
use crate::model::object::{Object, ObjectKind};

/// A [`Cluster`] behind a lock that is held for one change, or for one judgement.
#[derive(Debug, Default)]
pub(super) struct SharedCluster(RwLock<Cluster>);

impl SharedCluster {
    /// As [`Cluster::apply`]. Where no fact changes, as in a heartbeat, readers
    /// are not disturbed at all.
    pub(super) fn apply(&self, object: Object) {
        let Some(object) = Stored::of(object) else {
            return;
        };
        // In a statement of its own: the guard must be gone before the next.
        let known = self.read().knows(&object);
        if !known {
            self.write().put(object);
        }
    }

    /// As [`Cluster::remove`].
    pub(super) fn remove(&self, kind: ObjectKind, namespace: &str, name: &str) {
        self.write().remove(kind, namespace, name);
    }

    /// As [`Cluster::list_begins`].
    pub(super) fn list_begins(&self, kind: ObjectKind) {
        self.write().list_begins(kind);
    }

    /// As [`Cluster::synced`].
    pub(super) fn synced(&self, kind: ObjectKind) {
        self.write().synced(kind);
    }

    /// Takes everything out.
    pub(super) fn take(&self) -> Cluster {
        std::mem::take(&mut *self.write())
    }

    // A panic while the lock is held cannot leave a half-made change that
    // matters more than no answer at all: every look-up checks what it finds.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Cluster> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Cluster> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
