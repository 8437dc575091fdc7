//! A connection: how long it may still stay open, and the requests in flight on it.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Extension, Request};
use axum::http::header::CONNECTION;
use axum::http::{Extensions, HeaderValue, Version};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::{Instant, sleep_until};

use super::body::MAX_TIMEOUT;
use super::limits::Limits;

/// The time for which an old connection must be idle before it is closed. Over HTTP/1.1 its next
/// response says that it is the last one.
const SETTLED: Duration = Duration::from_secs(1);

/// One connection, from its accept to its end.
pub(super) struct Connection {
    /// The address of the client.
    pub(super) client: IpAddr,
    limits: Limits,
    old: Instant,
    activity: Mutex<Activity>,
}

struct Activity {
    /// The number of requests whose response has not been sent yet.
    in_flight: usize,
    /// The time of the last progress.
    last: Instant,
    /// The time after which the connection is cut if there is no further progress.
    wait: Duration,
}

impl Activity {
    fn progress(&mut self, wait: Duration) {
        self.last = Instant::now();
        self.wait = wait;
    }
}

impl Connection {
    pub(super) fn new(client: IpAddr, limits: Limits) -> Self {
        let last = Instant::now();
        Self {
            client: client.to_canonical(),
            limits,
            old: last + limits.age,
            activity: Mutex::new(Activity { in_flight: 0, last, wait: limits.handshake }),
        }
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection is ready for its first request.
    pub(super) fn ready(&self) {
        self.activity().progress(self.limits.headers);
    }

    fn due(&self) -> Instant {
        let activity = self.activity();
        activity.last + activity.wait
    }

    /// Waits until the connection has to be cut.
    pub(super) async fn overdue(&self) {
        let mut due = self.due();
        while Instant::now() < due {
            sleep_until(due).await;
            due = self.due();
        }
    }

    /// The time since which nothing is in flight.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let activity = self.activity();
        (activity.in_flight == 0).then_some(activity.last)
    }
}

/// A request on a connection, until its response has been sent.
pub(super) struct InFlight {
    connection: Arc<Connection>,
    version: Version,
}

impl InFlight {
    pub(super) fn new(connection: Arc<Connection>, version: Version) -> Self {
        let mut activity = connection.activity();
        // Only a response that was read keeps a busy connection open for longer, not a request.
        if activity.in_flight == 0 {
            activity.progress(MAX_TIMEOUT);
        }
        activity.in_flight += 1;
        drop(activity);
        Self { connection, version }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Connection { limits, old, .. } = *self.connection;
        let mut activity = self.connection.activity();
        activity.in_flight -= 1;
        let wait = match self.version {
            _ if activity.in_flight > 0 => MAX_TIMEOUT,
            _ if Instant::now() >= old => SETTLED,
            Version::HTTP_2 => limits.idle,
            _ => limits.headers,
        };
        activity.progress(wait);
    }
}

/// A response that the client has not read yet, with everything that is held until it has been
/// sent.
///
/// Over HTTP/2 a client announces how much it is ready to read, which may be nothing.
struct PendingResponse {
    bytes: Bytes,
    _extensions: Extensions,
    _in_flight: InFlight,
}

impl AsRef<[u8]> for PendingResponse {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Middleware that counts a request as in flight on its connection until its response has been
/// sent. The extensions of the response, such as the memory it takes, are held for the same time.
pub(super) async fn in_flight(
    Extension(connection): Extension<Arc<Connection>>,
    request: Request,
    next: Next,
) -> Response {
    let version = request.version();
    let is_last = version == Version::HTTP_11 && Instant::now() >= connection.old;
    let in_flight = InFlight::new(connection, version);
    let (mut head, body) = next.run(request).await.into_parts();
    if is_last {
        head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    // Every response here is in memory already.
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let extensions = std::mem::take(&mut head.extensions);
    let pending = PendingResponse { bytes, _extensions: extensions, _in_flight: in_flight };
    Response::from_parts(head, Body::from(Bytes::from_owner(pending)))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn connection() -> Arc<Connection> {
        Arc::new(Connection::new(Ipv4Addr::LOCALHOST.into(), Limits::default()))
    }

    fn begin(connection: &Arc<Connection>, version: Version) -> InFlight {
        InFlight::new(Arc::clone(connection), version)
    }

    /// The time after which the connection is cut.
    async fn overdue_after(connection: &Connection) -> Duration {
        let started = Instant::now();
        connection.overdue().await;
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_cut_by_its_protocol() {
        let limits = Limits::default();
        let connection = connection();
        assert_eq!(overdue_after(&connection).await, limits.handshake);
        connection.ready();
        assert_eq!(overdue_after(&connection).await, limits.headers);
        drop(begin(&connection, Version::HTTP_11));
        assert_eq!(overdue_after(&connection).await, limits.headers);
        drop(begin(&connection, Version::HTTP_2));
        assert_eq!(overdue_after(&connection).await, limits.idle);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_in_flight_keeps_a_connection_open_for_half_a_minute() {
        let connection = connection();
        let _in_flight = begin(&connection, Version::HTTP_2);
        tokio::time::advance(MAX_TIMEOUT / 2).await;
        let answered = begin(&connection, Version::HTTP_2);
        assert_eq!(overdue_after(&connection).await, MAX_TIMEOUT / 2);
        drop(answered);
        assert_eq!(connection.idle_since(), None);
        assert_eq!(overdue_after(&connection).await, MAX_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_connection_ends_soon_when_nothing_is_in_flight() {
        let connection = connection();
        tokio::time::advance(Limits::default().age).await;
        drop(begin(&connection, Version::HTTP_2));
        assert_eq!(overdue_after(&connection).await, SETTLED);
    }
}
