//! The memory limit: the bytes that bodies and pending responses may hold together.
//!
//! It consists of semaphores whose permits are bytes. Every request takes from `small`, enough for
//! the first 32 KiB of its body; a larger body then takes its whole length from `large`, so that no
//! ordinary review waits for large ones. Both are fair: the request that has waited longest is
//! next.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::limits::Limits;

/// The size above which a body needs memory of `large`.
pub(super) const SMALL_BODY: usize = 32 * 1024;

/// The bytes that a request takes besides its body, and then besides its response until that has
/// been sent: headers, stream and task.
const REQUEST: usize = 24 * 1024;

/// A bound on the bytes that all requests hold. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct MemoryLimit {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// The memory that one request holds, until this is dropped.
pub(super) struct Charge {
    small: OwnedSemaphorePermit,
    large: OwnedSemaphorePermit,
}

impl MemoryLimit {
    pub(super) fn new(limits: &Limits) -> Self {
        let semaphore = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self { small: semaphore(limits.small_memory), large: semaphore(limits.large_memory) }
    }

    /// Waits for the memory of a request and of its body, up to [`SMALL_BODY`]; a body of unknown
    /// length counts as that. `None` if no memory becomes free in time.
    pub(super) async fn admit(
        &self,
        length: Option<usize>,
        max_queue_wait: Duration,
    ) -> Option<Charge> {
        let body = length.unwrap_or(SMALL_BODY).min(SMALL_BODY);
        let small = acquire(&self.small, REQUEST + body, max_queue_wait).await?;
        Some(Charge { small, large: try_acquire(&self.large, 0)? })
    }

    /// Takes the memory of a response of this length for which no body was read, if enough is left.
    pub(super) fn try_admit(&self, length: usize) -> Option<OwnedSemaphorePermit> {
        try_acquire(&self.small, REQUEST + length)
    }

    /// Waits until the request holds the memory of a large body of this length. `None` if it does not
    /// become free in time.
    pub(super) async fn admit_large(
        &self,
        charge: &mut Charge,
        length: usize,
        max_queue_wait: Duration,
    ) -> Option<()> {
        let missing = length.saturating_sub(charge.large.num_permits());
        charge.large.merge(acquire(&self.large, missing, max_queue_wait).await?);
        Some(())
    }

    /// Replaces the memory of a request by that of its response, if enough is left.
    pub(super) fn hold_response(
        &self,
        charge: Charge,
        length: usize,
    ) -> Option<OwnedSemaphorePermit> {
        // A denial may be longer than a short review. It must not depend on the memory of large
        // bodies.
        let mut held = charge.small;
        let wanted = REQUEST + length;
        match wanted.checked_sub(held.num_permits()) {
            Some(more) => held.merge(try_acquire(&self.small, more)?),
            None => drop(held.split(held.num_permits() - wanted)),
        }
        Some(held)
    }

    /// Whether requests have to wait: then stalled bodies are shed.
    pub(super) fn is_short(&self) -> bool {
        self.small.available_permits() == 0 || self.large.available_permits() == 0
    }
}

fn permits(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Takes `count` permits of a semaphore; `None` if they do not become free in time. A timer is
/// created only if there is something to wait for.
pub(super) async fn acquire(
    semaphore: &Arc<Semaphore>,
    count: usize,
    max_queue_wait: Duration,
) -> Option<OwnedSemaphorePermit> {
    if let Some(permit) = try_acquire(semaphore, count) {
        return Some(permit);
    }
    let permit = Arc::clone(semaphore).acquire_many_owned(permits(count));
    // The semaphore is never closed.
    timeout(max_queue_wait, permit).await.ok()?.ok()
}

fn try_acquire(semaphore: &Arc<Semaphore>, count: usize) -> Option<OwnedSemaphorePermit> {
    Arc::clone(semaphore).try_acquire_many_owned(permits(count)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_QUEUE_WAIT: Duration = Duration::from_secs(1);

    fn memory(small: usize, large: usize) -> MemoryLimit {
        MemoryLimit::new(&Limits { small_memory: small, large_memory: large, ..Limits::default() })
    }

    #[tokio::test]
    async fn a_response_is_held_in_place_of_its_body() {
        let memory = memory(1_000_000, 1_000_000);
        let held = || {
            [&memory.small, &memory.large]
                .map(|semaphore| 1_000_000 - semaphore.available_permits())
        };
        let mut charge = memory.admit(None, MAX_QUEUE_WAIT).await.unwrap();
        let admitted = memory.admit_large(&mut charge, 900_000, MAX_QUEUE_WAIT).await;
        assert_eq!(admitted, Some(()));
        assert_eq!(held(), [REQUEST + SMALL_BODY, 900_000]);
        let response = memory.hold_response(charge, 500_000);
        assert_eq!(held(), [REQUEST + 500_000, 0]);
        let other = memory.admit(None, MAX_QUEUE_WAIT).await.unwrap();
        assert!(memory.hold_response(other, 600_000).is_none());
        drop(response);
        let small_charge = memory.admit(None, MAX_QUEUE_WAIT).await.unwrap();
        let _response = memory.hold_response(small_charge, 100);
        assert_eq!(held(), [REQUEST + 100, 0]);
    }

    #[tokio::test]
    async fn a_denial_longer_than_its_review_needs_nothing_of_large_bodies() {
        let memory = memory(1_000_000, 0);
        let charge = memory.admit(Some(1000), MAX_QUEUE_WAIT).await.unwrap();
        let _response = memory.hold_response(charge, 3000).unwrap();
        assert_eq!(memory.small.available_permits(), 1_000_000 - REQUEST - 3000);
    }
}
