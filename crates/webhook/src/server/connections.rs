//! The connections that are open at a listener: caps in all and per peer, and what is in
//! flight on each.
//!
//! Where a cap is reached, an idle connection is evicted for the new one: of the peer itself
//! if it has reached its own, else of the peer that has most. Connections without a reviewed
//! request are evicted first.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Extension, Request};
use axum::middleware::Next;
use axum::response::Response;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::memory::Charge;
use super::metrics::{ConnectionMetrics, Held};

/// The connections of one listener.
#[derive(Debug)]
pub(super) struct Connections {
    limit: usize,
    per_peer: usize,
    /// `None` for the admin port, whose connections are not counted.
    metrics: Option<ConnectionMetrics>,
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
    peer: IpAddr,
    opened: Instant,
    activity: Mutex<Activity>,
    close: Notify,
}

/// What happens on a connection.
#[derive(Clone, Debug)]
pub(super) struct Activity {
    /// When a request last began, or the last of its response was sent.
    pub(super) last: Instant,
    /// Requests whose response has not been sent yet.
    pub(super) in_flight: usize,
    /// Since when each pending response is ready that the client has not read yet.
    pub(super) pending: Vec<Instant>,
    /// Whether any request was made.
    pub(super) has_requests: bool,
    /// Whether it must make room for another.
    pub(super) is_evicted: bool,
    /// Whether a review was answered.
    has_reviewed: bool,
    /// Whether it is to close.
    is_closing: bool,
}

/// The place of a connection among those that are open, until dropped.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    connections: Arc<Connections>,
    number: u64,
    connection: Arc<Connection>,
    _counted: Option<Held>,
}

impl Connections {
    pub(super) fn new(limit: usize, per_peer: usize, metrics: Option<ConnectionMetrics>) -> Self {
        Self {
            limit: limit.max(1),
            per_peer: per_peer.max(1),
            metrics,
            open: Mutex::default(),
        }
    }

    /// A place for a connection from `peer`, if there is one or can be made.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionGuard> {
        let mut open = self.open();
        if !self.make_room(&open, peer) {
            if let Some(metrics) = &self.metrics {
                metrics.refused();
            }
            return None;
        }
        let now = Instant::now();
        let connection = Arc::new(Connection {
            peer,
            opened: now,
            activity: Mutex::new(Activity::new(now)),
            close: Notify::new(),
        });
        let number = open.next;
        open.next += 1;
        open.connections.insert(number, Arc::clone(&connection));
        Some(ConnectionGuard {
            connections: Arc::clone(self),
            number,
            connection,
            _counted: self.metrics.as_ref().map(ConnectionMetrics::opened),
        })
    }

    fn make_room(&self, open: &Open, newcomer: IpAddr) -> bool {
        // Those that are closing take a moment.
        if open.connections.len() >= 2 * self.limit {
            return false;
        }
        let all = open.connections.values();
        let staying: Vec<_> = all.filter(|it| !it.activity().is_closing).collect();
        let mut held: HashMap<IpAddr, usize> = HashMap::new();
        for connection in &staying {
            *held.entry(connection.peer).or_default() += 1;
        }
        let has_all_of_its_own = held.get(&newcomer).is_some_and(|it| *it >= self.per_peer);
        if staying.len() < self.limit && !has_all_of_its_own {
            return true;
        }
        let most = held.iter().max_by_key(|(_, count)| **count);
        let crowded = match most {
            Some((peer, _)) if !has_all_of_its_own => *peer,
            _ => newcomer,
        };
        let idle = staying.iter().filter_map(|connection| {
            let activity = connection.activity();
            let is_idle = connection.peer == crowded && activity.in_flight == 0;
            is_idle.then_some(((activity.has_reviewed, activity.last), connection))
        });
        let Some((_, evicted)) = idle.min_by_key(|(rank, _)| *rank) else {
            return false;
        };
        evicted.activity().is_evicted = true;
        evicted.close();
        self.displaced();
        true
    }

    /// Counts a connection that had to make room.
    fn displaced(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.displaced();
        }
    }

    /// Closes every connection once its requests are answered.
    pub(super) fn close_all(&self) {
        for connection in self.open().connections.values() {
            connection.close();
        }
    }

    pub(super) fn count(&self) -> usize {
        self.open().connections.len()
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Activity {
    fn new(now: Instant) -> Self {
        Self {
            last: now,
            in_flight: 0,
            pending: Vec::new(),
            has_requests: false,
            is_evicted: false,
            has_reviewed: false,
            is_closing: false,
        }
    }
}

impl Connection {
    pub(super) fn opened(&self) -> Instant {
        self.opened
    }

    pub(super) fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.activity().is_closing = true;
        self.close.notify_one();
    }

    /// Waits until the connection is to close.
    pub(super) async fn closing(&self) {
        self.close.notified().await;
    }

    /// Counts a request until its response has been sent.
    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        let mut activity = self.activity();
        activity.has_requests = true;
        activity.in_flight += 1;
        activity.last = Instant::now();
        InFlight {
            connection: Arc::clone(self),
            ready: None,
        }
    }
}

/// A request on a connection, until its response has been sent.
#[derive(Debug)]
pub(super) struct InFlight {
    connection: Arc<Connection>,
    /// Since when its response is pending.
    ready: Option<Instant>,
}

impl InFlight {
    /// The response is ready, to be read by the client.
    pub(super) fn ready(&mut self) {
        let now = Instant::now();
        self.connection.activity().pending.push(now);
        self.ready = Some(now);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut activity = self.connection.activity();
        if let Some(ready) = self.ready {
            // Of several that became ready at the same moment any is as good.
            if let Some(at) = activity.pending.iter().position(|it| *it == ready) {
                activity.pending.swap_remove(at);
            }
        }
        activity.in_flight -= 1;
        activity.last = Instant::now();
    }
}

/// A response that the client has not read yet, with what it holds until it has been sent.
///
/// Over HTTP/2 a client says how much it is ready to read, which may be nothing.
struct PendingResponse {
    bytes: Bytes,
    _charge: Option<Arc<Charge>>,
    _in_flight: InFlight,
}

impl AsRef<[u8]> for PendingResponse {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Middleware: a request is in flight on its connection until its response has been sent, and
/// the response holds its [`Charge`] as long.
pub(super) async fn in_flight(
    Extension(connection): Extension<Arc<Connection>>,
    request: Request,
    next: Next,
) -> Response {
    let mut in_flight = connection.begin();
    let (mut head, body) = next.run(request).await.into_parts();
    let charge: Option<Arc<Charge>> = head.extensions.remove();
    connection.activity().has_reviewed |= charge.is_some() && head.status.is_success();
    // Every response here is in memory already.
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    in_flight.ready();
    let pending = PendingResponse {
        bytes,
        _charge: charge,
        _in_flight: in_flight,
    };
    Response::from_parts(head, Body::from(Bytes::from_owner(pending)))
}

impl ConnectionGuard {
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Counts the connection as one that had to make room, for its memory.
    pub(super) fn displaced(&self) {
        self.connections.displaced();
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.connections.open().connections.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    /// Connections of these peers, each a moment younger than the one before it.
    async fn full_of(
        per_peer: usize,
        peers: &[IpAddr],
    ) -> (Arc<Connections>, Vec<ConnectionGuard>) {
        let connections = Arc::new(Connections::new(peers.len(), per_peer, None));
        let mut guards = Vec::new();
        for peer in peers {
            guards.push(connections.admit(*peer).unwrap());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        (connections, guards)
    }

    fn closing(guards: &[ConnectionGuard]) -> Vec<usize> {
        let is_closing = |at: &usize| guards[*at].connection.activity().is_closing;
        (0..guards.len()).filter(is_closing).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_peer_with_most_connections_makes_room_with_its_idle_ones() {
        let (connections, guards) = full_of(4, &[A, B, B, B]).await;
        let _in_flight = guards[1].connection.begin();
        drop(guards[2].connection.begin());
        assert!(connections.admit(A).is_some());
        assert_eq!(closing(&guards), [3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_at_its_cap_evicts_its_own() {
        let (connections, guards) = full_of(2, &[B, B, A, A]).await;
        assert!(connections.admit(A).is_some());
        assert_eq!(closing(&guards), [2]);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_without_a_reviewed_request_are_evicted_first() {
        let (connections, guards) = full_of(2, &[A, A]).await;
        guards[0].connection.activity().has_reviewed = true;
        let younger = connections.admit(A).unwrap();
        assert_eq!(closing(&guards), [1]);
        let _in_flight = younger.connection.begin();
        assert!(connections.admit(A).is_some());
        assert_eq!(closing(&guards), [0, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_with_requests_in_flight_stay() {
        let (connections, guards) = full_of(2, &[A, A]).await;
        let _in_flight = [0, 1].map(|at| guards[at].connection.begin());
        assert!(connections.admit(B).is_none());
        assert_eq!(closing(&guards), [0_usize; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_are_closing_do_not_make_room_without_end() {
        let (connections, guards) = full_of(2, &[A, A]).await;
        let more = std::iter::repeat_with(|| connections.admit(A));
        let more: Vec<_> = more.take(5).flatten().collect();
        assert_eq!(closing(&guards), [0, 1]);
        assert_eq!(more.len(), 2);
    }
}
