//! The memory that bodies share.
//!
//! What has arrived is charged, not what is announced. Where the memory is used
//! up, the bodies that have stalled give way, so that half-sent bodies never stand
//! in the way of whole ones. Bodies that all wait for each other's
//! memory cannot block for ever: one at a time may go beyond the budget, to its
//! end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};

use super::limits::Limits;

/// A body from which nothing came for so long has stalled. An API server sends
/// a frame of 16 KiB in microseconds.
const STALLED: Duration = Duration::from_millis(250);

/// What has arrived while this process was itself kept from running is read within
/// a few turns of the runtime, each of which takes less than this.
const TURN: Duration = Duration::from_millis(5);
const TURNS: usize = 4;

/// What a request takes beside its body while it waits for the rest of it:
/// headers, stream and task.
const REQUEST: usize = 8 * 1024;

/// The most bodies that wait for memory. For one more, the one of them that came first
/// is refused: bodies that wait hold memory too, and may have stalled. Each keeps
/// what the client may send ahead ([`STREAM_WINDOW`]) unread, and all of one
/// connection must leave its window open for the one that is being read.
const MOST_WAITING: usize = 16;

/// Received and not yet read bytes that one HTTP/2 request may hold. An API
/// server is a millisecond away at most, so this still lets tens of megabytes
/// a second through.
pub(super) const STREAM_WINDOW: u32 = 64 * 1024;

/// The same for one HTTP/2 connection.
pub(super) const CONNECTION_WINDOW: u32 = STREAM_WINDOW * (MOST_WAITING as u32 + 4);

/// Stands for "it is not the client that keeps us waiting".
const NEVER: u64 = u64::MAX;

/// Stands for "it waits no more, as it was told to give way".
const TOLD: u64 = NEVER - 1;

/// The memory that bodies share. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<Memory>);

#[derive(Debug)]
struct Memory {
    room: usize,
    used: AtomicUsize,
    /// How many wait for some to be freed.
    waiting: AtomicUsize,
    freed: Notify,
    /// The right of one body to go beyond the room.
    last_resort: Arc<Semaphore>,
    epoch: Instant,
    unfinished: Mutex<Unfinished>,
}

#[derive(Debug, Default)]
struct Unfinished {
    next: u64,
    bodies: HashMap<u64, Arc<Progress>>,
}

#[derive(Debug)]
struct Progress {
    /// Milliseconds after the epoch at which the client sent something last.
    heard: AtomicU64,
    give_way: Notify,
}

/// There is no memory for it, or others need it more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoMemory;

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        Self(Arc::new(Memory {
            room: limits.body_memory,
            used: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
            last_resort: Arc::new(Semaphore::new(1)),
            epoch: Instant::now(),
            unfinished: Mutex::default(),
        }))
    }

    /// A share of nothing yet.
    pub(super) fn share(&self) -> Share {
        Share {
            memory: Arc::clone(&self.0),
            bytes: 0,
            beyond: None,
        }
    }
}

/// What one body takes of the budget, until dropped.
#[derive(Debug)]
pub(super) struct Share {
    memory: Arc<Memory>,
    bytes: usize,
    /// Held by the one body that may go beyond the room.
    beyond: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Takes more, if there is room.
    pub(super) fn grow_now(&mut self, bytes: usize) -> bool {
        let memory = &self.memory;
        if self.beyond.is_none() {
            let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= memory.room);
            let taken = memory
                .used
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits);
            if taken.is_ok() {
                self.bytes += bytes;
                return true;
            }
            let Ok(permit) = Arc::clone(&memory.last_resort).try_acquire_owned() else {
                return false;
            };
            self.beyond = Some(permit);
        }
        memory.used.fetch_add(bytes, Ordering::SeqCst);
        self.bytes += bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::SeqCst);
        // Before the others hear of it, as it may be what they wait for.
        self.beyond = None;
        if self.memory.waiting.load(Ordering::SeqCst) > 0 {
            self.memory.freed.notify_waiters();
        }
    }
}

/// A body of which something is still to come; it may be told to give way.
#[derive(Debug)]
pub(super) struct Rest {
    memory: Arc<Memory>,
    number: u64,
    progress: Arc<Progress>,
}

impl Rest {
    /// Enters a body of which something is still to come.
    pub(super) fn of(share: &Share) -> Self {
        let memory = Arc::clone(&share.memory);
        let progress = Arc::new(Progress {
            heard: AtomicU64::new(memory.now()),
            give_way: Notify::new(),
        });
        let mut unfinished = memory.unfinished();
        let number = unfinished.next;
        unfinished.next += 1;
        unfinished.bodies.insert(number, Arc::clone(&progress));
        drop(unfinished);
        Self {
            memory,
            number,
            progress,
        }
    }

    /// The client sent something.
    pub(super) fn heard(&self) {
        let now = self.memory.now();
        self.progress.heard.store(now, Ordering::Relaxed);
    }

    /// Waits until others need the memory more.
    pub(super) async fn told_to_give_way(&self) {
        self.progress.give_way.notified().await;
    }

    /// Takes what a request needs beside its body.
    pub(super) async fn enter(
        &self,
        share: &mut Share,
        patience: Duration,
    ) -> Result<(), NoMemory> {
        self.grow(share, REQUEST, patience).await
    }

    /// Takes more, and waits for it if it must.
    pub(super) async fn grow(
        &self,
        share: &mut Share,
        bytes: usize,
        patience: Duration,
    ) -> Result<(), NoMemory> {
        if share.grow_now(bytes) {
            return Ok(());
        }
        let until = Instant::now() + patience;
        let _waiting = Waiting::new(&self.memory.waiting);
        if self.memory.waiting.load(Ordering::SeqCst) > MOST_WAITING {
            self.memory.end_the_oldest_that_waits();
        }
        self.progress.heard.store(NEVER, Ordering::Relaxed);
        loop {
            let mut freed = std::pin::pin!(self.memory.freed.notified());
            // From here on a release is not missed.
            freed.as_mut().enable();
            if share.grow_now(bytes) {
                self.heard();
                return Ok(());
            }
            let now = Instant::now();
            if now >= until {
                return Err(NoMemory);
            }
            self.memory.end_the_stalled().await;
            // Another may have stalled by then.
            let _ = timeout_at(until.min(now + STALLED), freed).await;
        }
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.memory.unfinished().bodies.remove(&self.number);
    }
}

impl Memory {
    /// Milliseconds after the epoch.
    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(TOLD - 1)
    }

    fn unfinished(&self) -> MutexGuard<'_, Unfinished> {
        self.unfinished
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all that have stalled to give way: others that are to stall wait as well,
    /// and take a part of what is freed, so that fewer at a time would take longer than
    /// a review can wait.
    async fn end_the_stalled(&self) {
        let stalled = self.stalled();
        if stalled.is_empty() {
            return;
        }
        for _ in 0..TURNS {
            sleep(TURN).await;
        }
        for (heard, body) in stalled {
            if body.heard.load(Ordering::Relaxed) == heard {
                body.give_way.notify_one();
            }
        }
    }

    /// Tells the body that came first, of those that wait, to give way.
    fn end_the_oldest_that_waits(&self) {
        let unfinished = self.unfinished();
        let waiting = unfinished
            .bodies
            .iter()
            .filter(|(_, body)| body.heard.load(Ordering::Relaxed) == NEVER);
        if let Some((_, body)) = waiting.min_by_key(|(number, _)| **number) {
            body.heard.store(TOLD, Ordering::Relaxed);
            body.give_way.notify_one();
        }
    }

    /// With when each was heard of last.
    fn stalled(&self) -> Vec<(u64, Arc<Progress>)> {
        let stalled = u64::try_from(STALLED.as_millis()).unwrap_or(NEVER);
        let latest = self.now().saturating_sub(stalled);
        self.unfinished()
            .bodies
            .values()
            .map(|body| (body.heard.load(Ordering::Relaxed), Arc::clone(body)))
            .filter(|(heard, _)| *heard <= latest)
            .collect()
    }
}

/// Counts one that waits until dropped.
pub(super) struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    pub(super) fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(room: usize) -> Budget {
        Budget::new(&Limits {
            body_memory: room,
            ..Limits::default()
        })
    }

    #[test]
    fn one_body_may_go_beyond_the_room() {
        let budget = budget(100);
        let (mut first, mut second) = (budget.share(), budget.share());
        assert!(first.grow_now(60));
        assert!(second.grow_now(60), "the last resort");
        assert!(second.grow_now(1_000), "to its end");
        assert!(!first.grow_now(1), "the others wait for it");
        drop(second);
        assert!(first.grow_now(40));
        assert!(first.grow_now(1), "the last resort is free again");
    }

    #[tokio::test]
    async fn what_has_stalled_gives_way() {
        let budget = budget(100);
        let (mut old, mut young) = (budget.share(), budget.share());
        assert!(old.grow_now(90) && young.grow_now(90));
        let (old_rest, young_rest) = (Rest::of(&old), Rest::of(&young));
        young_rest
            .progress
            .heard
            .store(NEVER - 1, Ordering::Relaxed);
        let mut whole = budget.share();
        let rest = Rest::of(&whole);
        let growing = rest.grow(&mut whole, 10, Duration::from_secs(60));
        let giving_way = async {
            tokio::select! {
                () = old_rest.told_to_give_way() => drop(old),
                () = young_rest.told_to_give_way() => panic!("it has not stalled"),
            }
        };
        let (grown, ()) = tokio::join!(growing, giving_way);
        assert_eq!(grown, Ok(()));
    }

    #[tokio::test]
    async fn who_finds_no_memory_waits_and_no_longer() {
        let budget = budget(0);
        let mut last_resort = budget.share();
        assert!(last_resort.grow_now(1));
        let mut share = budget.share();
        let rest = Rest::of(&share);
        let patience = Duration::from_millis(1);
        assert_eq!(rest.grow(&mut share, 1, patience).await, Err(NoMemory));
    }
}
