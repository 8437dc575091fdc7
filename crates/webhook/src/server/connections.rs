//! The open connections of a listener, and the requests in flight on each.
//!
//! At the limit, an idle connection is evicted for the next one: first one without a reviewed
//! request, then the one that has been idle longest.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Extension, Request};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Version};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use super::body::MAX_TIMEOUT;
use super::limits::Limits;
use super::memory::{Charge, MemoryLimit};
use super::metrics::{Held, Metrics};

/// The time after which a client that has read none of its responses is disconnected if memory is
/// short.
const UNREAD: Duration = Duration::from_secs(2);

/// The time for which an old connection must be idle before it is closed. Over HTTP/1.1 its next
/// response says that it is the last one.
const SETTLED: Duration = Duration::from_secs(1);

/// The connections of one listener.
pub(super) struct Connections {
    pub(super) limits: Limits,
    /// The memory that pending responses hold; `None` for the admin port.
    memory: Option<MemoryLimit>,
    /// `None` for the admin port, whose connections are not counted.
    metrics: Option<Metrics>,
    open: Mutex<Vec<Arc<Connection>>>,
}

/// One connection, from its accept to its end.
pub(super) struct Connection {
    old: Instant,
    /// The address of the client; `None` on the admin port.
    pub(super) client: Option<IpAddr>,
    activity: Mutex<Activity>,
    is_evicted: AtomicBool,
    /// Wakes the task of the connection.
    waker: AtomicWaker,
}

/// The activity on a connection.
struct Activity {
    /// The time at which a request last began, or the end of its response was sent.
    last: Instant,
    /// The number of requests whose response has not been sent yet.
    in_flight: usize,
    /// The number of those whose response is ready, and the time since which none of them was sent.
    unread: usize,
    unread_since: Instant,
    /// Whether any request was made.
    has_requests: bool,
    /// Whether a review was answered.
    has_reviewed: bool,
}

/// The way in which a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing more is read.
    Close,
    /// Nothing more is written either.
    Cut,
}

/// The place of a connection among those that are open, until this is dropped.
pub(super) struct ConnectionGuard {
    connections: Arc<Connections>,
    pub(super) connection: Arc<Connection>,
    _counted: Option<Held>,
}

impl Connections {
    pub(super) fn new(
        limits: Limits,
        memory: Option<MemoryLimit>,
        metrics: Option<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self { limits, memory, metrics, open: Mutex::default() })
    }

    /// A place for a connection, if one is free or can be freed.
    pub(super) fn admit(self: &Arc<Self>, client: Option<IpAddr>) -> Option<ConnectionGuard> {
        let mut open = self.open();
        if !self.make_room(&open) {
            if let Some(metrics) = &self.metrics {
                metrics.connections_refused.inc();
            }
            return None;
        }
        let connection = Arc::new(Connection::new(self.limits.age, client));
        open.push(Arc::clone(&connection));
        Some(ConnectionGuard {
            connections: Arc::clone(self),
            connection,
            _counted: self.metrics.as_ref().map(|metrics| Held::new(&metrics.connections)),
        })
    }

    fn make_room(&self, open: &[Arc<Connection>]) -> bool {
        let limit = self.limits.connections.max(1);
        // Evicted connections take a moment to close.
        if open.len() >= 2 * limit {
            return false;
        }
        let staying = open.iter().filter(|connection| !connection.is_evicted());
        if staying.clone().count() < limit {
            return true;
        }
        let Some((_, evicted)) = staying
            .filter_map(|connection| Some((connection.idle_since()?, connection)))
            .min_by_key(|(rank, _)| *rank)
        else {
            return false;
        };
        evicted.is_evicted.store(true, Ordering::Relaxed);
        evicted.waker.wake();
        self.displaced();
        true
    }

    /// Counts a connection that had to make room.
    fn displaced(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.connections_displaced.inc();
        }
    }

    fn open(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    fn new(age: Duration, client: Option<IpAddr>) -> Self {
        let now = Instant::now();
        Self {
            old: now + age,
            client,
            activity: Mutex::new(Activity {
                last: now,
                in_flight: 0,
                unread: 0,
                unread_since: now,
                has_requests: false,
                has_reviewed: false,
            }),
            is_evicted: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the connection must make room for another.
    pub(super) fn poll_evicted(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.waker.register(cx.waker());
        if self.is_evicted() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed)
    }

    /// The time since which nothing is in flight, preceded by whether a review was answered.
    fn idle_since(&self) -> Option<(bool, Instant)> {
        let activity = self.activity();
        (activity.in_flight == 0).then_some((activity.has_reviewed, activity.last))
    }

    /// Counts a request until its response has been sent.
    pub(super) fn begin(self: &Arc<Self>, version: Version) -> InFlight {
        let mut activity = self.activity();
        let now = Instant::now();
        activity.has_requests = true;
        activity.in_flight += 1;
        activity.last = now;
        InFlight {
            connection: Arc::clone(self),
            is_last: version == Version::HTTP_11 && now >= self.old,
            is_ready: false,
        }
    }
}

impl ConnectionGuard {
    /// The way in which the connection ends, if it must end now.
    pub(super) fn end(&self, idle: Duration) -> Option<End> {
        let limits = &self.connections.limits;
        let now = Instant::now();
        let activity = self.connection.activity();
        if activity.in_flight > 0 {
            let is_unread = activity.unread > 0 && now >= activity.unread_since + UNREAD;
            let memory = self.connections.memory.as_ref();
            let is_displaced = is_unread && memory.is_some_and(MemoryLimit::is_short);
            if is_displaced {
                self.connections.displaced();
            }
            let is_stuck = now >= activity.last + MAX_TIMEOUT;
            return (is_displaced || is_stuck).then_some(End::Cut);
        }
        let quiet = if activity.has_requests { idle } else { limits.headers };
        let settled = self.connection.old.max(activity.last + SETTLED);
        let due = settled.min(activity.last + quiet);
        if now >= due + limits.grace { Some(End::Cut) } else { (now >= due).then_some(End::Close) }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.connections.open().retain(|open| !Arc::ptr_eq(open, &self.connection));
    }
}

/// A request on a connection, until its response has been sent.
pub(super) struct InFlight {
    connection: Arc<Connection>,
    /// Whether the connection closes after it.
    is_last: bool,
    is_ready: bool,
}

impl InFlight {
    /// The response, which counts until it has been sent. It holds its [`Charge`] for the same
    /// time.
    pub(super) async fn hold(mut self, response: Response) -> Response {
        let (mut head, body) = response.into_parts();
        let charge: Option<Arc<Charge>> = head.extensions.remove();
        if self.is_last {
            head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        // Every response here is in memory already.
        let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
        let mut activity = self.connection.activity();
        activity.has_reviewed |= charge.is_some() && head.status.is_success();
        if activity.unread == 0 {
            activity.unread_since = Instant::now();
        }
        activity.unread += 1;
        drop(activity);
        self.is_ready = true;
        let pending = PendingResponse { bytes, _charge: charge, _in_flight: self };
        Response::from_parts(head, Body::from(Bytes::from_owner(pending)))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut activity = self.connection.activity();
        let now = Instant::now();
        if self.is_ready {
            activity.unread -= 1;
            activity.unread_since = now;
        }
        activity.in_flight -= 1;
        activity.last = now;
    }
}

/// A response that the client has not read yet, with the resources that it holds until it has been
/// sent.
///
/// Over HTTP/2 a client announces how much it is ready to read, which may be nothing.
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

/// Middleware that counts a request as in flight on its connection until its response has been
/// sent.
pub(super) async fn in_flight(
    Extension(connection): Extension<Arc<Connection>>,
    request: Request,
    next: Next,
) -> Response {
    let in_flight = connection.begin(request.version());
    in_flight.hold(next.run(request).await).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    /// Connections, each a moment younger than the one before it.
    async fn full_of(count: usize) -> (Arc<Connections>, Vec<ConnectionGuard>) {
        let limits = Limits { age: LONG, connections: count, ..Limits::default() };
        let connections = Connections::new(limits, None, None);
        let mut guards = Vec::new();
        for _ in 0..count {
            guards.push(connections.admit(None).unwrap());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        (connections, guards)
    }

    fn evicted(guards: &[ConnectionGuard]) -> Vec<usize> {
        (0..guards.len()).filter(|at| guards[*at].connection.is_evicted()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_was_idle_longest_makes_room() {
        let (connections, guards) = full_of(3).await;
        let _in_flight = guards[0].connection.begin(Version::HTTP_11);
        drop(guards[1].connection.begin(Version::HTTP_11));
        assert!(connections.admit(None).is_some());
        assert_eq!(evicted(&guards), [2]);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_without_a_reviewed_request_are_evicted_first() {
        let (connections, guards) = full_of(2).await;
        guards[0].connection.activity().has_reviewed = true;
        let younger = connections.admit(None).unwrap();
        assert_eq!(evicted(&guards), [1]);
        let _in_flight = younger.connection.begin(Version::HTTP_11);
        assert!(connections.admit(None).is_some());
        assert_eq!(evicted(&guards), [0, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_with_requests_in_flight_stay() {
        let (connections, guards) = full_of(2).await;
        let _in_flight = [0, 1].map(|at| guards[at].connection.begin(Version::HTTP_11));
        assert!(connections.admit(None).is_none());
        assert_eq!(evicted(&guards), [0_usize; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_are_closing_do_not_make_room_without_end() {
        let (connections, guards) = full_of(2).await;
        let more: Vec<_> =
            std::iter::repeat_with(|| connections.admit(None)).take(5).flatten().collect();
        assert_eq!(evicted(&guards), [0, 1]);
        assert_eq!(more.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_in_flight_keeps_a_connection_open_for_half_a_minute() {
        let (_connections, guards) = full_of(1).await;
        let _in_flight = guards[0].connection.begin(Version::HTTP_11);
        let moment = Duration::from_millis(1);
        tokio::time::advance(MAX_TIMEOUT - moment).await;
        assert_eq!(guards[0].end(LONG), None);
        tokio::time::advance(moment).await;
        assert_eq!(guards[0].end(LONG), Some(End::Cut));
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_connection_closes_when_nothing_is_in_flight() {
        let (_connections, guards) = full_of(1).await;
        tokio::time::advance(LONG).await;
        let in_flight = guards[0].connection.begin(Version::HTTP_11);
        assert_eq!(guards[0].end(LONG), None);
        drop(in_flight);
        assert_eq!(guards[0].end(LONG), None);
        tokio::time::advance(SETTLED).await;
        assert_eq!(guards[0].end(LONG), Some(End::Close));
    }
}
