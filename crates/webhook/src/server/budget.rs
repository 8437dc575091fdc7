//! The memory that requests share.
//!
//! What has arrived is charged, not what is announced, and then the answer until the client
//! has taken it. Where the memory is used up, the bodies that have stalled give way, and
//! connections end whose clients take nothing, so that neither stands in the way of whole
//! bodies. Bodies that all wait for each other's memory cannot block for ever: one at a time
//! may go beyond the budget, until its answer fits into it or has been taken.
//!
//! No connection takes what others need (see [`Account`]), and the right to go beyond the
//! budget goes round by connection.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};

use super::account::Account;
use super::limits::Limits;

/// A body of which less than [`PROGRESS`] came for so long has stalled. An API server sends
/// as much in microseconds.
const STALLED: Duration = Duration::from_millis(250);

/// Bytes of a frame of HTTP/2.
const PROGRESS: usize = 16 * 1024;

/// What has arrived while this process was itself kept from running is read within
/// a few turns of the runtime, each of which takes less than this.
const TURN: Duration = Duration::from_millis(5);
const TURNS: usize = 4;

/// What a request takes beside its body and its answer, until that has been taken: headers,
/// stream and task.
const REQUEST: usize = 24 * 1024;

/// The most bodies that wait for memory. For one more, one of them is refused, which is
/// the first of the connection of which most wait: bodies that wait hold memory too, and
/// may have stalled. Each keeps what the client may send ahead ([`STREAM_WINDOW`]) unread,
/// and all of one connection must leave its window open for the one that is being read.
const MOST_WAITING: usize = 16;

/// Received and not yet read bytes that one HTTP/2 request may hold. An API
/// server is a millisecond away at most, so this still lets tens of megabytes
/// a second through.
pub(super) const STREAM_WINDOW: u32 = 64 * 1024;

/// The same for one HTTP/2 connection.
pub(super) const CONNECTION_WINDOW: u32 = STREAM_WINDOW * (MOST_WAITING as u32 + 4);

/// Stands for "it is not the client that keeps us waiting".
const NEVER: u64 = u64::MAX;

/// The memory that requests share. Clones are the same.
#[derive(Clone)]
pub(super) struct Budget(Arc<Memory>);

/// Milliseconds between two attempts to get memory otherwise than by waiting for it: each
/// looks at all connections.
const RELIEVE_EVERY: u64 = 50;

/// What to do where memory is short, beside waiting for it.
pub(super) type Relieve = Box<dyn Fn() + Send + Sync>;

struct Memory {
    room: usize,
    relieve: Relieve,
    /// Milliseconds after the epoch at which that was done last.
    relieved: AtomicU64,
    used: AtomicUsize,
    /// How many wait for some to be freed.
    waiting: AtomicUsize,
    freed: Notify,
    /// The right of one request to go beyond the room.
    last_resort: Arc<Semaphore>,
    epoch: Instant,
    unfinished: Mutex<Unfinished>,
}

#[derive(Debug, Default)]
struct Unfinished {
    next: u64,
    bodies: HashMap<u64, Arc<Progress>>,
    /// Whose turn it is to go beyond the room; the first is next.
    lines: VecDeque<Line>,
}

/// The bodies of one connection that wait for memory, by their numbers. The first one
/// has waited longest.
#[derive(Debug)]
struct Line {
    account: Arc<Account>,
    bodies: VecDeque<u64>,
}

#[derive(Debug)]
struct Progress {
    /// Milliseconds after the epoch at which the client had sent [`PROGRESS`] more last.
    heard: AtomicU64,
    give_way: Notify,
}

/// There is no memory for it, or others need it more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoMemory;

impl Budget {
    pub(super) fn new(limits: &Limits, relieve: Relieve) -> Self {
        Self(Arc::new(Memory {
            relieve,
            relieved: AtomicU64::new(0),
            room: limits.body_memory,
            used: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
            last_resort: Arc::new(Semaphore::new(1)),
            epoch: Instant::now(),
            unfinished: Mutex::default(),
        }))
    }

    /// A share of nothing yet, for a body of this connection.
    pub(super) fn share(&self, account: &Arc<Account>) -> Share {
        Share {
            memory: Arc::clone(&self.0),
            account: Arc::clone(account),
            bytes: 0,
            beyond: None,
        }
    }
}

/// What one request takes of the budget, until dropped.
pub(super) struct Share {
    memory: Arc<Memory>,
    account: Arc<Account>,
    bytes: usize,
    /// Held by the one body that may go beyond the room.
    beyond: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Takes what a request needs beside its body, if there is room.
    pub(super) fn enter_now(&mut self) -> bool {
        self.grow_now(REQUEST)
    }

    /// Takes more, if there is room and others do not need it more.
    pub(super) fn grow_now(&mut self, bytes: usize) -> bool {
        if self.beyond.is_some() {
            self.take(bytes);
            return true;
        }
        let memory = &self.memory;
        let fits = |used: usize| {
            let sum = used.checked_add(bytes)?;
            let left = memory.room.checked_sub(sum)?;
            self.account.may_hold(bytes, left).then_some(sum)
        };
        let taken = memory
            .used
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits);
        if taken.is_ok() {
            self.count(bytes);
        }
        taken.is_ok()
    }

    /// Takes more, whether there is room or not, if no other body does so.
    fn go_beyond(&mut self, bytes: usize) -> bool {
        self.beyond = Arc::clone(&self.memory.last_resort)
            .try_acquire_owned()
            .ok();
        if self.beyond.is_some() {
            self.take(bytes);
        }
        self.beyond.is_some()
    }

    fn take(&mut self, bytes: usize) {
        self.memory.used.fetch_add(bytes, Ordering::SeqCst);
        self.count(bytes);
    }

    fn count(&mut self, bytes: usize) {
        self.account.bytes_taken(bytes);
        self.bytes += bytes;
    }

    /// Holds a request with an answer of so many bytes in place of what it holds, if there
    /// is room.
    pub(super) fn hold_answer(&mut self, bytes: usize) -> Result<(), NoMemory> {
        let bytes = REQUEST + bytes;
        if bytes > self.bytes && !self.grow_now(bytes - self.bytes) {
            self.memory.relieve();
            return Err(NoMemory);
        }
        self.give_back(self.bytes - bytes);
        Ok(())
    }

    /// Gives back some, and the right to go beyond the room where the rest fits in without it.
    fn give_back(&mut self, bytes: usize) {
        self.account.bytes_given_back(bytes);
        let used = self.memory.used.fetch_sub(bytes, Ordering::SeqCst) - bytes;
        self.bytes -= bytes;
        let fits = |left| self.account.may_hold(0, left);
        if self.bytes == 0 || self.memory.room.checked_sub(used).is_some_and(fits) {
            // Before the others hear of it, as it may be what they wait for.
            self.beyond = None;
        }
        if self.memory.waiting.load(Ordering::SeqCst) > 0 {
            self.memory.freed.notify_waiters();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

/// A body of which something is still to come; it may be told to give way.
pub(super) struct Rest {
    memory: Arc<Memory>,
    number: u64,
    progress: Arc<Progress>,
    /// Bytes that have come since it was heard of last.
    arrived: AtomicUsize,
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
            arrived: AtomicUsize::new(0),
        }
    }

    /// The client sent so many bytes.
    pub(super) fn heard(&self, bytes: usize) {
        if self.arrived.fetch_add(bytes, Ordering::Relaxed) + bytes >= PROGRESS {
            self.goes_on();
        }
    }

    fn goes_on(&self) {
        self.arrived.store(0, Ordering::Relaxed);
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
        patience: &mut Duration,
    ) -> Result<(), NoMemory> {
        self.grow(share, REQUEST, patience).await
    }

    /// Takes more, and waits for it if it must: no longer than `patience`, of which the
    /// time waited is taken.
    pub(super) async fn grow(
        &self,
        share: &mut Share,
        bytes: usize,
        patience: &mut Duration,
    ) -> Result<(), NoMemory> {
        if share.grow_now(bytes) {
            return Ok(());
        }
        let until = Instant::now() + *patience;
        let place = Place::take(self, &share.account);
        self.progress.heard.store(NEVER, Ordering::Relaxed);
        loop {
            let mut freed = std::pin::pin!(self.memory.freed.notified());
            // From here on a release is not missed.
            freed.as_mut().enable();
            self.memory.relieve();
            if share.grow_now(bytes) || place.go_beyond(share, bytes) {
                self.goes_on();
                *patience = until.saturating_duration_since(Instant::now());
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

/// The place of a body among those that wait for memory, until dropped.
struct Place<'a> {
    rest: &'a Rest,
    _waiting: Waiting<'a>,
}

impl<'a> Place<'a> {
    fn take(rest: &'a Rest, account: &Arc<Account>) -> Self {
        let _waiting = Waiting::new(&rest.memory.waiting);
        let mut unfinished = rest.memory.unfinished();
        let waiting: usize = unfinished.lines.iter().map(|line| line.bodies.len()).sum();
        if waiting >= MOST_WAITING {
            unfinished.end_one_that_waits();
        }
        unfinished.line(account).bodies.push_back(rest.number);
        Self { rest, _waiting }
    }

    /// Takes more, whether there is room or not, if it is this one's turn and no other
    /// body does so.
    fn go_beyond(&self, share: &mut Share, bytes: usize) -> bool {
        let mut unfinished = self.rest.memory.unfinished();
        let next = unfinished.lines.front().and_then(|it| it.bodies.front());
        let goes = next == Some(&self.rest.number) && share.go_beyond(bytes);
        if goes {
            unfinished.lines.rotate_left(1);
        }
        goes
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let memory = &self.rest.memory;
        let mut unfinished = memory.unfinished();
        unfinished.lines.retain_mut(|line| {
            line.bodies.retain(|number| *number != self.rest.number);
            !line.bodies.is_empty()
        });
        drop(unfinished);
        // It may be the turn of another.
        memory.freed.notify_waiters();
    }
}

impl Unfinished {
    /// The line of a connection, at the end if it is new.
    fn line(&mut self, account: &Arc<Account>) -> &mut Line {
        let own = |line: &Line| Arc::ptr_eq(&line.account, account);
        let at = self.lines.iter().position(own).unwrap_or_else(|| {
            self.lines.push_back(Line {
                account: Arc::clone(account),
                bodies: VecDeque::new(),
            });
            self.lines.len() - 1
        });
        &mut self.lines[at]
    }

    /// Tells the first body of the connection of which most wait to give way.
    fn end_one_that_waits(&mut self) {
        let lines = self.lines.iter_mut().rev();
        let longest = lines.max_by_key(|line| line.bodies.len());
        let first = longest.and_then(|line| line.bodies.pop_front());
        if let Some(body) = first.and_then(|number| self.bodies.get(&number)) {
            body.give_way.notify_one();
        }
        self.lines.retain(|line| !line.bodies.is_empty());
    }
}

impl Memory {
    /// Milliseconds after the epoch.
    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(NEVER - 1)
    }

    fn unfinished(&self) -> MutexGuard<'_, Unfinished> {
        self.unfinished
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what can be done beside waiting, now and then.
    fn relieve(&self) {
        let now = self.now();
        let due = |last: u64| (now >= last + RELIEVE_EVERY).then_some(now);
        let relieved = &self.relieved;
        if relieved
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, due)
            .is_ok()
        {
            (self.relieve)();
        }
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

    const SHORT: Duration = Duration::from_millis(1);

    fn budget(room: usize) -> Budget {
        let limits = Limits {
            body_memory: room,
            ..Limits::default()
        };
        Budget::new(&limits, Box::new(|| ()))
    }

    #[tokio::test]
    async fn one_body_may_go_beyond_the_room() {
        let budget = budget(100);
        let account = Arc::default();
        let (mut first, mut second) = (budget.share(&account), budget.share(&account));
        let (first_rest, second_rest) = (Rest::of(&first), Rest::of(&second));
        assert!(first.grow_now(60));
        assert!(!second.grow_now(60));
        let grown = second_rest.grow(&mut second, 60, &mut { SHORT }).await;
        assert_eq!(grown, Ok(()), "the last resort");
        assert!(second.grow_now(1_000), "to its end");
        let grown = first_rest.grow(&mut first, 1, &mut { SHORT }).await;
        assert_eq!(grown, Err(NoMemory), "the others wait for it");
        drop(second);
        assert!(first.grow_now(20));
        let grown = first_rest.grow(&mut first, 1_000, &mut { SHORT }).await;
        assert_eq!(grown, Ok(()), "the last resort is free again");
    }

    /// As many shares of ten bytes as there may be.
    fn fill(budget: &Budget, account: &Arc<Account>) -> Vec<Share> {
        let shares = std::iter::repeat_with(|| budget.share(account));
        shares
            .map_while(|mut share| share.grow_now(10).then_some(share))
            .collect()
    }

    #[test]
    fn a_newcomer_finds_room() {
        let budget = budget(800);
        let (crowd, newcomer) = (Arc::default(), Arc::default());
        let held = fill(&budget, &crowd);
        assert_eq!(held.len(), 70, "seven eighths of the room");
        assert!(budget.share(&newcomer).grow_now(80));
    }

    #[test]
    fn an_address_of_many_connections_leaves_room_to_others() {
        let budget = budget(1600);
        let first = Account::default();
        let connections = (0..100).map(|_| Arc::new(first.beside()));
        let held: Vec<Share> = connections
            .flat_map(|account| fill(&budget, &account))
            .collect();
        assert_eq!(held.len(), 150, "fifteen sixteenths");
        assert!(budget.share(&Arc::default()).grow_now(80));
    }

    #[test]
    fn an_answer_is_held_in_place_of_what_has_arrived() {
        let budget = budget(4 * REQUEST);
        let account = Arc::default();
        let mut share = budget.share(&account);
        assert!(share.enter_now() && share.grow_now(2 * REQUEST));
        assert_eq!(share.hold_answer(100), Ok(()));
        assert!(
            budget.share(&account).grow_now(2 * REQUEST),
            "the rest is free"
        );
        assert_eq!(share.hold_answer(4 * REQUEST), Err(NoMemory));
        assert_eq!(share.hold_answer(200), Ok(()));
        assert_eq!(budget.0.used.load(Ordering::SeqCst), REQUEST + 200);
        drop(share);
        assert_eq!(budget.0.used.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_has_stalled() {
        let budget = budget(100);
        let share = budget.share(&Arc::default());
        let rest = Rest::of(&share);
        for _ in 0..4 {
            tokio::time::advance(STALLED / 2).await;
            rest.heard(1);
        }
        assert_eq!(budget.0.stalled().len(), 1);
        rest.heard(PROGRESS);
        assert_eq!(budget.0.stalled().len(), 0);
    }

    /// Three bodies of one connection wait, and then one of another.
    #[tokio::test]
    async fn the_last_resort_goes_round_by_connection() {
        let budget = budget(0);
        let (crowd, other) = (Arc::default(), Arc::default());
        let mut shares = [&crowd, &crowd, &crowd, &other].map(|it| budget.share(it));
        let rests = shares.each_ref().map(Rest::of);
        let places = [0, 1, 2, 3].map(|at| Place::take(&rests[at], &shares[at].account));
        let mut order = Vec::new();
        let mut places = places.map(Some);
        for _ in 0..shares.len() {
            let next = (0..shares.len()).find(|&at| {
                let place = places[at].as_ref();
                place.is_some_and(|place| place.go_beyond(&mut shares[at], 1))
            });
            let next = next.unwrap();
            order.push(next);
            places[next] = None;
            shares[next].beyond = None;
        }
        assert_eq!(order, [0, 3, 1, 2]);
    }

    #[tokio::test]
    async fn of_too_many_that_wait_a_connection_with_most_of_them_loses_one() {
        let budget = budget(0);
        let (crowd, other) = (Arc::default(), Arc::default());
        let shares: Vec<Share> = std::iter::once(&other)
            .chain(std::iter::repeat_n(&crowd, MOST_WAITING))
            .map(|account| budget.share(account))
            .collect();
        let rests: Vec<Rest> = shares.iter().map(Rest::of).collect();
        let places: Vec<Place<'_>> = std::iter::zip(&rests, &shares)
            .map(|(rest, share)| Place::take(rest, &share.account))
            .collect();
        assert_eq!(places.len(), MOST_WAITING + 1);
        rests[1].told_to_give_way().await;
        let lines = &budget.0.unfinished().lines;
        let waiting: Vec<usize> = lines.iter().map(|line| line.bodies.len()).collect();
        assert_eq!(waiting, [1, MOST_WAITING - 1]);
    }

    #[tokio::test]
    async fn what_has_stalled_gives_way() {
        let budget = budget(100);
        let account = Arc::default();
        let (mut old, mut young) = (budget.share(&account), budget.share(&account));
        assert!(old.grow_now(80) && young.go_beyond(10));
        let (old_rest, young_rest) = (Rest::of(&old), Rest::of(&young));
        young_rest
            .progress
            .heard
            .store(NEVER - 1, Ordering::Relaxed);
        let mut whole = budget.share(&account);
        let rest = Rest::of(&whole);
        let mut patience = Duration::from_secs(60);
        let growing = rest.grow(&mut whole, 10, &mut patience);
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
        let account = Arc::default();
        let mut last_resort = budget.share(&account);
        assert!(last_resort.go_beyond(1));
        let mut share = budget.share(&account);
        let rest = Rest::of(&share);
        assert_eq!(
            rest.grow(&mut share, 1, &mut { SHORT }).await,
            Err(NoMemory)
        );
    }
}
