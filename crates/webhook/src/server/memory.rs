//! The memory limit: what bodies and pending responses may hold together.
//!
//! Semaphores whose permits are bytes. Every request takes from `small`, enough for the first
//! 32 KiB of its body; a larger body then takes its whole length from `medium` or `large`. So
//! no review waits for larger ones. A request that waits for `small` holds nothing, and one
//! that holds of the others waits for nobody, so they cannot wait for each other in a circle.
//! All are fair: who waits longest is next.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::limits::Limits;

/// Larger bodies need memory of `medium` or `large`.
pub(super) const SMALL_BODY: usize = 32 * 1024;

/// Larger bodies need memory of `large`. An API server takes 3 MiB in a request, so a review
/// is larger only if it holds two large objects or much that JSON escapes.
const MEDIUM_BODY: usize = 4 * 1024 * 1024;

/// What a request takes besides its body, and then besides its response until that has been
/// sent: headers, stream and task.
const REQUEST: usize = 24 * 1024;

/// Bodies that may wait for `medium`, and as many for `large`; more are shed. Each holds its
/// share of `small`.
const QUEUE: usize = 64;

/// No memory became free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoMemory;

/// A bound on the bytes that all requests hold. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct MemoryLimit {
    small: Arc<Semaphore>,
    medium: Queued,
    large: Queued,
}

/// Bytes for which a few may wait.
#[derive(Clone, Debug)]
struct Queued {
    bytes: Arc<Semaphore>,
    queue: Arc<Semaphore>,
}

/// What one request holds, until dropped.
#[derive(Debug)]
pub(super) struct Charge {
    small: OwnedSemaphorePermit,
    /// Of `medium` or `large`.
    larger: Option<OwnedSemaphorePermit>,
}

impl MemoryLimit {
    pub(super) fn new(limits: &Limits) -> Self {
        let semaphore = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        let queued = |bytes| Queued {
            bytes: semaphore(bytes),
            queue: semaphore(QUEUE),
        };
        Self {
            small: semaphore(limits.small_memory),
            medium: queued(limits.medium_memory),
            large: queued(limits.large_memory),
        }
    }

    /// Waits for what a request takes whose body has this length, as far as it is known, and
    /// is small.
    pub(super) async fn admit(
        &self,
        length: Option<usize>,
        patience: Duration,
    ) -> Result<Charge, NoMemory> {
        let body = length.unwrap_or(SMALL_BODY).min(SMALL_BODY);
        Ok(Charge {
            small: acquire(&self.small, REQUEST + body, patience)
                .await
                .ok_or(NoMemory)?,
            larger: None,
        })
    }

    /// Waits for what a larger body of this length takes.
    pub(super) async fn admit_larger(
        &self,
        charge: &mut Charge,
        length: usize,
        patience: Duration,
    ) -> Result<(), NoMemory> {
        let Queued { bytes, queue } = self.larger(length);
        let _queued = queue.try_acquire().map_err(|_| NoMemory)?;
        let larger = acquire(bytes, length, patience).await;
        charge.larger = Some(larger.ok_or(NoMemory)?);
        Ok(())
    }

    fn larger(&self, length: usize) -> &Queued {
        match length <= MEDIUM_BODY {
            true => &self.medium,
            false => &self.large,
        }
    }

    /// Takes what a response of this length holds that no body was read for, if there is any
    /// left.
    pub(super) fn try_admit(&self, length: usize) -> Option<Charge> {
        let small = try_acquire(&self.small, REQUEST + length)?;
        Some(Charge {
            small,
            larger: None,
        })
    }

    /// Replaces what the request held by what its response holds.
    pub(super) fn hold_response(&self, charge: &mut Charge, length: usize) -> Result<(), NoMemory> {
        let small = charge.small.num_permits();
        if REQUEST + length <= small {
            charge.larger = None;
            drop(charge.small.split(small - REQUEST - length));
            return Ok(());
        }
        // A denial may be longer than a short review. It must not depend on what larger
        // bodies hold.
        if length <= SMALL_BODY
            && let Some(more) = try_acquire(&self.small, REQUEST + length - small)
        {
            charge.small.merge(more);
            charge.larger = None;
            return Ok(());
        }
        match &mut charge.larger {
            Some(held) if held.num_permits() >= length => {
                drop(held.split(held.num_permits() - length));
            }
            held => {
                *held = None;
                *held = Some(try_acquire(&self.larger(length).bytes, length).ok_or(NoMemory)?);
            }
        }
        drop(charge.small.split(small - REQUEST));
        Ok(())
    }

    /// Whether somebody has to wait: then stalled bodies are shed, and connections end whose
    /// clients do not read their responses.
    pub(super) fn is_short(&self) -> bool {
        let all = [&self.small, &self.medium.bytes, &self.large.bytes];
        all.iter().any(|it| it.available_permits() == 0)
    }
}

impl Charge {
    /// Whether it covers more than a small body.
    pub(super) fn is_larger(&self) -> bool {
        self.larger.is_some()
    }
}

fn permits(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// So many permits of a semaphore; `None` if they do not become free in time. A timer is made only
/// if there is something to wait for.
pub(super) async fn acquire(
    semaphore: &Arc<Semaphore>,
    count: usize,
    patience: Duration,
) -> Option<OwnedSemaphorePermit> {
    if let Some(permit) = try_acquire(semaphore, count) {
        return Some(permit);
    }
    let permit = Arc::clone(semaphore).acquire_many_owned(permits(count));
    // The semaphore is never closed.
    timeout(patience, permit).await.ok()?.ok()
}

fn try_acquire(semaphore: &Arc<Semaphore>, count: usize) -> Option<OwnedSemaphorePermit> {
    let semaphore = Arc::clone(semaphore);
    semaphore.try_acquire_many_owned(permits(count)).ok()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    fn memory(small: usize, medium: usize, large: usize) -> MemoryLimit {
        MemoryLimit::new(&Limits {
            small_memory: small,
            medium_memory: medium,
            large_memory: large,
            ..Limits::default()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_memory_waits_and_no_longer_than_it_may() {
        let memory = memory(REQUEST + 150, 1, 1);
        let first = memory.admit(Some(100), PATIENCE).await.unwrap();
        assert!(!memory.is_short());
        let late = memory.admit(Some(100), PATIENCE).await;
        assert_eq!(late.map(drop), Err(NoMemory));
        let mut waiting = std::pin::pin!(memory.admit(Some(100), PATIENCE));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(memory.is_short(), "one waits");
        drop(first);
        let second = waiting.await.unwrap();
        assert!(!memory.is_short());
        drop(second);
    }

    #[tokio::test(start_paused = true)]
    async fn no_body_waits_for_larger_ones() {
        let larger = [MEDIUM_BODY + 1, MEDIUM_BODY];
        let memory = memory(100 * REQUEST, larger[1], larger[0]);
        let mut held = Vec::new();
        for length in larger {
            let mut charge = memory.admit(None, PATIENCE).await.unwrap();
            let admitted = memory.admit_larger(&mut charge, length, PATIENCE).await;
            assert_eq!(admitted, Ok(()));
            let mut second = memory.admit(None, PATIENCE).await.unwrap();
            let late = memory.admit_larger(&mut second, length, PATIENCE).await;
            assert_eq!(late, Err(NoMemory));
            held.push(charge);
        }
        assert!(memory.try_admit(100).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn few_larger_bodies_wait_and_the_rest_is_shed_at_once() {
        let memory = memory(200 * (REQUEST + SMALL_BODY), 0, 0);
        let mut charges = Vec::new();
        for _ in 0..=QUEUE {
            charges.push(memory.admit(None, PATIENCE).await.unwrap());
        }
        let mut waiting: Vec<_> = charges
            .iter_mut()
            .map(|charge| Box::pin(memory.admit_larger(charge, 1, PATIENCE)))
            .collect();
        let shed = waiting
            .iter_mut()
            .filter_map(futures_util::FutureExt::now_or_never);
        assert_eq!(shed.collect::<Vec<_>>(), [Err(NoMemory)]);
    }

    #[tokio::test]
    async fn a_response_is_held_in_place_of_its_body() {
        let memory = memory(1_000_000, 1_000_000, 0);
        let held = |memory: &MemoryLimit| {
            let of = |it: &Semaphore| 1_000_000 - it.available_permits();
            (of(&memory.small), of(&memory.medium.bytes))
        };
        let mut charge = memory.admit(None, PATIENCE).await.unwrap();
        let admitted = memory.admit_larger(&mut charge, 900_000, PATIENCE).await;
        assert_eq!(admitted, Ok(()));
        assert_eq!(held(&memory), (REQUEST + SMALL_BODY, 900_000));
        assert_eq!(memory.hold_response(&mut charge, 500_000), Ok(()));
        assert_eq!(held(&memory), (REQUEST, 500_000));
        assert_eq!(memory.hold_response(&mut charge, 600_000), Ok(()));
        assert_eq!(held(&memory), (REQUEST, 600_000));
        let other = memory.hold_response(&mut memory.try_admit(0).unwrap(), 600_000);
        assert_eq!(other, Err(NoMemory));
        drop(charge);
        let mut charge = memory.admit(None, PATIENCE).await.unwrap();
        assert_eq!(memory.hold_response(&mut charge, 100), Ok(()));
        assert_eq!(held(&memory), (REQUEST + 100, 0));
        drop(charge);
        assert_eq!(held(&memory), (0, 0));
    }

    #[tokio::test]
    async fn a_denial_longer_than_its_review_needs_nothing_of_larger_bodies() {
        let memory = memory(1_000_000, 0, 0);
        let mut charge = memory.admit(Some(1000), PATIENCE).await.unwrap();
        assert_eq!(memory.hold_response(&mut charge, 3000), Ok(()));
        assert_eq!(memory.small.available_permits(), 1_000_000 - REQUEST - 3000);
    }
}
