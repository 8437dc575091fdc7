//! The connections that are open at a port, and who must leave when there is
//! no more room.
//!
//! A newcomer is let in for as long as one address holds a quiet connection
//! more than others: so no address can take what others need, and one that has
//! the port for itself, as an API server behind a proxy may, is never refused
//! while there is room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::account::Account;
use super::metrics::{Held, Metrics};

/// A connection of the newcomer's own address must have been quiet for so long
/// to be ended for it.
const QUIET: Duration = Duration::from_secs(1);

/// A client that has not taken an answer for so long may have to make room.
const UNTAKEN: Duration = Duration::from_secs(1);

/// The connections of one port.
#[derive(Debug)]
pub(super) struct Connections {
    room: usize,
    /// `None` for the admin port, which is not counted.
    metrics: Option<Metrics>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    connections: HashMap<u64, Arc<Connection>>,
}

/// One connection, from its accept to its end.
#[derive(Debug)]
pub(super) struct Connection {
    address: IpAddr,
    opened: Instant,
    in_flight: AtomicUsize,
    untaken: Mutex<Untaken>,
    /// Milliseconds after `opened` at which a request last began or ended.
    last_active: AtomicU64,
    asked: AtomicBool,
    /// Whether a review was answered on it: strangers leave before it.
    proven: AtomicBool,
    leaving: AtomicBool,
    displaced: AtomicBool,
    cut: AtomicBool,
    leave: Notify,
    account: Arc<Account>,
}

/// The answers that a client has not taken.
#[derive(Debug, Default)]
struct Untaken {
    /// Since when each was there.
    since: Vec<Instant>,
    /// The oldest one, where it was found to be old before.
    suspect: Option<Instant>,
}

impl Untaken {
    /// Whether the oldest is old, and was when somebody looked before: in between, this
    /// process has had a turn to send it.
    fn is_old(&mut self, now: Instant) -> bool {
        let oldest = self.since.iter().min().copied();
        let old = oldest.filter(|since| now.saturating_duration_since(*since) >= UNTAKEN);
        let is_known = old.is_some() && old == self.suspect;
        self.suspect = old;
        is_known
    }
}

/// The place of a connection among those that are open, until dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    connections: Arc<Connections>,
    number: u64,
    connection: Arc<Connection>,
    _counted: Option<Held>,
}

impl Connections {
    pub(super) fn new(room: usize, metrics: Option<Metrics>) -> Self {
        Self {
            room: room.max(1),
            metrics,
            open: Mutex::default(),
        }
    }

    /// A place for a connection from `address`, if there is one or can be.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Admitted> {
        self.admit_at(address, Instant::now())
    }

    fn admit_at(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<Admitted> {
        let mut open = self.open();
        if !self.make_room(&open, address, now) {
            if let Some(metrics) = &self.metrics {
                metrics.connection_refused();
            }
            return None;
        }
        let mut others = open.connections.values();
        let account = match others.find(|it| it.address == address) {
            Some(other) => other.account.beside(),
            None => Account::default(),
        };
        let connection = Arc::new(Connection::new(address, now, account));
        let number = open.next;
        open.next += 1;
        open.connections.insert(number, Arc::clone(&connection));
        Some(Admitted {
            connections: Arc::clone(self),
            number,
            connection,
            _counted: self.metrics.as_ref().map(Metrics::connection_opened),
        })
    }

    fn make_room(&self, open: &Open, newcomer: IpAddr, now: Instant) -> bool {
        let staying = open.connections.values().filter(|it| !it.is_leaving());
        if staying.count() < self.room {
            return true;
        }
        // Those who leave take a moment.
        if open.connections.len() >= 2 * self.room {
            return false;
        }
        let Some(leaver) = leaver(open.connections.values(), newcomer, now) else {
            return false;
        };
        leaver.displaced.store(true, Ordering::Relaxed);
        leaver.tell_to_leave();
        if let Some(metrics) = &self.metrics {
            metrics.connection_displaced();
        }
        true
    }

    /// Ends the connections whose clients do not take their answers, as what they hold is
    /// needed. It takes two looks.
    pub(super) fn cut_those_with_old_answers(&self) {
        let now = Instant::now();
        for connection in self.open().connections.values() {
            if connection.untaken().is_old(now) && !connection.cut.swap(true, Ordering::Relaxed) {
                connection.tell_to_leave();
                if let Some(metrics) = &self.metrics {
                    metrics.connection_displaced();
                }
            }
        }
    }

    /// Tells every connection to end once its requests are answered.
    pub(super) fn tell_all_to_leave(&self) {
        for connection in self.open().connections.values() {
            connection.tell_to_leave();
        }
    }

    pub(super) fn count(&self) -> usize {
        self.open().connections.len()
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of the address that holds most, the connection that has been quiet longest;
/// first those on which no review was ever answered, and last those with a request under way.
fn leaver<'a>(
    connections: impl Iterator<Item = &'a Arc<Connection>> + Clone,
    newcomer: IpAddr,
    now: Instant,
) -> Option<&'a Arc<Connection>> {
    let staying = connections.filter(|it| !it.is_leaving());
    let mut held: HashMap<IpAddr, usize> = HashMap::new();
    for connection in staying.clone() {
        *held.entry(connection.address).or_default() += 1;
    }
    let most = held.values().copied().max()?;
    let own = held.get(&newcomer).copied().unwrap_or(0);
    let leaver = staying
        .filter(|it| held.get(&it.address) == Some(&most))
        .min_by_key(|it| {
            let proven = it.proven.load(Ordering::Relaxed);
            (proven, it.is_busy(), it.last_active())
        })?;
    let is_fair = 2 * own < most || now.saturating_duration_since(leaver.last_active()) >= QUIET;
    is_fair.then_some(leaver)
}

impl Connection {
    fn new(address: IpAddr, now: Instant, account: Account) -> Self {
        Self {
            address,
            opened: now,
            in_flight: AtomicUsize::new(0),
            untaken: Mutex::default(),
            last_active: AtomicU64::new(0),
            asked: AtomicBool::new(false),
            proven: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            displaced: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            leave: Notify::new(),
            account: Arc::new(account),
        }
    }

    pub(super) fn opened(&self) -> Instant {
        self.opened
    }

    /// What its requests hold.
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Whether any request was made.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    /// When a request last began or ended, or the connection itself began.
    pub(super) fn last_active(&self) -> Instant {
        self.opened + Duration::from_millis(self.last_active.load(Ordering::Relaxed))
    }

    /// Whether it must leave for another, whatever it is busy with.
    pub(super) fn is_displaced(&self) -> bool {
        self.displaced.load(Ordering::Relaxed)
    }

    /// Whether it must end at once.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    fn untaken(&self) -> MutexGuard<'_, Untaken> {
        self.untaken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    fn tell_to_leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
        self.leave.notify_one();
    }

    /// Waits until the connection is told to leave.
    pub(super) async fn told_to_leave(&self) {
        self.leave.notified().await;
    }

    /// Counts a request that began at `now`, until it ends.
    pub(super) fn begin(self: &Arc<Self>, now: Instant) -> Asking {
        self.asked.store(true, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.active(now);
        Asking {
            connection: Arc::clone(self),
            answered: None,
        }
    }

    /// A review was answered.
    pub(super) fn prove(&self) {
        self.proven.store(true, Ordering::Relaxed);
    }

    fn active(&self, now: Instant) {
        let after = now.saturating_duration_since(self.opened).as_millis();
        let after = u64::try_from(after).unwrap_or(u64::MAX);
        self.last_active.fetch_max(after, Ordering::Relaxed);
    }
}

/// A request on a connection, until its answer has been taken.
#[derive(Debug)]
pub(super) struct Asking {
    connection: Arc<Connection>,
    /// Since when its answer is there.
    answered: Option<Instant>,
}

impl Asking {
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// The answer was there at `now`, to be taken.
    pub(super) fn answered(&mut self, now: Instant) {
        self.connection.untaken().since.push(now);
        self.answered = Some(now);
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let connection = &self.connection;
        if let Some(answered) = self.answered {
            let since = &mut connection.untaken().since;
            // Of several that were there at the same moment any is as good.
            if let Some(at) = since.iter().position(|since| *since == answered) {
                since.swap_remove(at);
            }
        }
        connection.active(Instant::now());
        connection.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admitted {
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.connections.open().connections.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn full_of(addresses: &[IpAddr], now: Instant) -> (Arc<Connections>, Vec<Admitted>) {
        let connections = Arc::new(Connections::new(addresses.len(), None));
        let admit = |address: &IpAddr| connections.admit_at(*address, now).unwrap();
        let places = addresses.iter().map(admit).collect();
        (connections, places)
    }

    fn leaving(places: &[Admitted]) -> Vec<usize> {
        let is_leaving =
            |(at, place): (usize, &Admitted)| place.connection.is_leaving().then_some(at);
        places.iter().enumerate().filter_map(is_leaving).collect()
    }

    #[test]
    fn the_address_that_holds_most_makes_room() {
        let now = Instant::now();
        let (connections, places) = full_of(&[A, B, B, B], now);
        drop(places[1].connection.begin(now + QUIET / 4));
        drop(places[3].connection.begin(now + QUIET / 4));
        let now = now + QUIET / 2;
        assert!(
            connections.admit_at(B, now).is_none(),
            "none of its own is quiet"
        );
        let newcomer = connections.admit_at(A, now);
        assert!(newcomer.is_some(), "it has less than half");
        assert_eq!(leaving(&places), [2]);
    }

    #[test]
    fn what_has_a_request_under_way_leaves_last() {
        let now = Instant::now();
        let (connections, places) = full_of(&[A, A, A], now);
        let _under_way = places[0].connection.begin(now);
        drop(places[1].connection.begin(now + QUIET / 4));
        drop(places[2].connection.begin(now + QUIET / 2));
        assert!(connections.admit_at(B, now + QUIET / 2).is_some());
        assert_eq!(leaving(&places), [1]);
    }

    #[test]
    fn an_address_by_itself_loses_what_is_quiet_and_unproven() {
        let now = Instant::now();
        let (connections, places) = full_of(&[A, A, A], now);
        places[0].connection.prove();
        let now = now + QUIET;
        let _busy = places[1].connection.begin(now);
        let newcomer = connections.admit_at(A, now);
        assert!(newcomer.is_some());
        assert_eq!(leaving(&places), [2]);
        assert!(
            connections.admit_at(A, now).is_none(),
            "the rest is busy or proven"
        );
    }

    #[test]
    fn who_does_not_take_an_answer_is_cut_at_the_second_look() {
        let now = Instant::now();
        let (connections, places) = full_of(&[A, A, A, A], now - 2 * UNTAKEN);
        let ask = |place: &Admitted, answered: Instant| {
            let mut asking = place.connection.begin(answered);
            asking.answered(answered);
            asking
        };
        let old = [0, 1].map(|at| ask(&places[at], now - UNTAKEN));
        let _in_work = places[3].connection.begin(now - 2 * UNTAKEN);
        // Others that are taken meanwhile help nobody.
        drop(ask(&places[0], now));
        let _young = [1, 2].map(|at| ask(&places[at], now));
        connections.cut_those_with_old_answers();
        assert_eq!(leaving(&places), [0_usize; 0]);
        let [_untaken, taken] = old;
        drop(taken);
        connections.cut_those_with_old_answers();
        assert_eq!(leaving(&places), [0]);
        assert!(places[0].connection.is_cut());
    }

    #[test]
    fn those_who_leave_do_not_make_room_without_end() {
        let now = Instant::now();
        let (connections, places) = full_of(&[A, A], now);
        let admit = || connections.admit_at(A, now + 2 * QUIET);
        let more: Vec<_> = std::iter::repeat_with(admit).take(5).flatten().collect();
        assert_eq!(leaving(&places), [0, 1]);
        assert_eq!(more.len(), 2);
    }
}
