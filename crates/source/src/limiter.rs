//! Turns in asking the API server, fair between namespaces.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use tokio::sync::{Semaphore, SemaphorePermit};

const SHARES: usize = 64;

/// So much at the same time, and so much of it for one namespace: whoever floods the guard
/// waits for himself.
pub(super) struct Limiter {
    all: Semaphore,
    /// What one namespace may have of them. Namespaces share these by chance, so that
    /// their number does not matter.
    shares: [Semaphore; SHARES],
}

/// A turn, until it is dropped.
pub(super) struct Permit<'a> {
    _of_namespace: Option<SemaphorePermit<'a>>,
    _of_all: Option<SemaphorePermit<'a>>,
}

impl Limiter {
    pub(super) fn new(at_once: usize, of_a_namespace: usize) -> Self {
        Self {
            all: Semaphore::new(at_once),
            shares: std::array::from_fn(|_| Semaphore::new(of_a_namespace)),
        }
    }

    /// Waits for a turn.
    pub(super) async fn take(&self, namespace: &str) -> Permit<'_> {
        // They are never closed, so this never fails.
        let of_namespace = self.shares[share(namespace)].acquire().await.ok();
        let of_all = self.all.acquire().await.ok();
        Permit {
            _of_namespace: of_namespace,
            _of_all: of_all,
        }
    }
}

fn share(namespace: &str) -> usize {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(namespace) as usize % SHARES
}
