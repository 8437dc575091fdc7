//! Slots in which reviews are judged, and who waits for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::account::Account;
use super::budget::Waiting;

/// Slots that a connection or an address may hold, however few are left.
const ALWAYS: usize = 16;

/// A bound on what is judged at once. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Gate(Arc<Slots>);

#[derive(Debug)]
struct Slots {
    free: Arc<Semaphore>,
    count: usize,
    waiting: AtomicUsize,
    /// The mean time that one takes lately, in nanoseconds.
    mean: AtomicU64,
}

/// A slot, until dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    account: Arc<Account>,
    since: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Gate {
    pub(super) fn new(count: usize) -> Self {
        let count = count.clamp(1, Semaphore::MAX_PERMITS);
        Self(Arc::new(Slots {
            free: Arc::new(Semaphore::new(count)),
            count,
            waiting: AtomicUsize::new(0),
            mean: AtomicU64::new(0),
        }))
    }

    /// Takes a slot; `None` where none comes free in time, and at once where
    /// those who wait already show that none will, or where the connection holds
    /// what others need.
    pub(super) async fn enter(&self, account: &Arc<Account>, patience: Duration) -> Option<Slot> {
        let slots = &self.0;
        let left = slots.free.available_permits();
        if slots.count > ALWAYS && !account.may_take_a_slot(left, ALWAYS) {
            return None;
        }
        let permit = match Arc::clone(&slots.free).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let _waiting = Waiting::new(&slots.waiting);
                if slots.expected_wait() > patience {
                    return None;
                }
                let free = Arc::clone(&slots.free).acquire_owned();
                timeout(patience, free).await.ok()?.ok()?
            }
        };
        account.slot_taken();
        Some(Slot {
            slots: Arc::clone(slots),
            account: Arc::clone(account),
            since: Instant::now(),
            _permit: permit,
        })
    }
}

impl Slots {
    /// How long the last of those who wait will have to.
    fn expected_wait(&self) -> Duration {
        let mean = Duration::from_nanos(self.mean.load(Ordering::Relaxed));
        let few = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        mean.saturating_mul(few(self.waiting.load(Ordering::SeqCst))) / few(self.count)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.account.slot_freed();
        let took = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mean = self.slots.mean.load(Ordering::Relaxed);
        // One of many that store at once is as good as all.
        let next = mean - mean / 8 + took / 8;
        self.slots.mean.store(next, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn what_cannot_be_in_time_is_told_at_once() {
        let (gate, account) = (Gate::new(1), Arc::default());
        let slot = gate.enter(&account, SECOND).await.unwrap();
        gate.0.mean.store(2_000_000_000, Ordering::Relaxed);
        let told = gate.enter(&account, SECOND).now_or_never();
        assert!(matches!(told, Some(None)), "two seconds are too long");
        let told = gate.enter(&account, 3 * SECOND).now_or_never();
        assert!(told.is_none(), "three are worth waiting");
        assert!(gate.enter(&account, 3 * SECOND).now_or_never().is_none());
        gate.0.mean.store(0, Ordering::Relaxed);
        assert!(
            gate.enter(&account, Duration::from_millis(1))
                .await
                .is_none()
        );
        drop(slot);
        assert!(gate.enter(&account, SECOND).await.is_some());
    }

    #[tokio::test]
    async fn one_connection_leaves_slots_to_others() {
        let gate = Gate::new(160);
        let (greedy, other) = (Arc::default(), Arc::default());
        let mut held = Vec::new();
        while let Some(slot) = gate.enter(&greedy, SECOND).now_or_never().flatten() {
            held.push(slot);
        }
        assert_eq!(held.len(), 140, "seven eighths");
        for _ in 0..ALWAYS {
            held.extend(gate.enter(&other, SECOND).now_or_never().flatten());
        }
        assert_eq!(held.len(), 140 + ALWAYS);
        held.clear();
        assert!(gate.enter(&greedy, SECOND).await.is_some());
    }

    #[tokio::test]
    async fn an_address_of_many_connections_leaves_slots_to_others() {
        let gate = Gate::new(1024);
        let first = Account::default();
        let mut held = Vec::new();
        for _ in 0..100 {
            let account = Arc::new(first.beside());
            while let Some(slot) = gate.enter(&account, SECOND).now_or_never().flatten() {
                held.push(slot);
            }
        }
        assert_eq!(held.len(), 960, "fifteen sixteenths");
        let other = Arc::default();
        assert!(
            gate.enter(&other, SECOND)
                .now_or_never()
                .flatten()
                .is_some()
        );
    }

    #[test]
    fn the_mean_follows_what_is_seen() {
        let gate = Gate::new(1);
        let account: Arc<Account> = Arc::default();
        account.slot_taken();
        let old = Instant::now().checked_sub(8 * SECOND).unwrap();
        let slot = Slot {
            slots: Arc::clone(&gate.0),
            account: Arc::clone(&account),
            since: old,
            _permit: Arc::clone(&gate.0.free).try_acquire_owned().unwrap(),
        };
        drop(slot);
        assert!(gate.0.mean.load(Ordering::Relaxed) >= 1_000_000_000);
    }
}
