//! The limits on everything that the server accepts.

use std::time::Duration;

use super::body::MAX_TIMEOUT;

/// The largest body that is read, in bytes. Larger ones get a 413.
///
/// The API server takes requests of 3 MiB. The review it then sends holds the
/// object twice on UPDATE (`object` and `oldObject`), and Go's JSON encoder
/// writes each `<`, `>` and `&` as six bytes (`\u003c`), so one 1.4 MB
/// Deployment was seen to become 17,045,426 bytes. In the worst case:
///
/// ```text
/// 3 MiB × 2 objects × 6 bytes  = 36 MiB
/// the review around them       <  1 MiB  (user info, options, managed fields)
///                              = 37 MiB  = 38,797,312 bytes
/// ```
pub(super) const MAX_BODY: usize = 37 * 1024 * 1024;

/// Bounds on time and memory. The defaults suit the API server, whose own
/// deadline for a webhook is 10 s unless configured otherwise.
///
/// The most memory that clients can make the server hold:
///
/// ```text
/// requests, answers and
/// bodies up to 32 KiB        34 MiB  small_memory
/// larger bodies              43 MiB  large_memory
/// requests that wait         96 MiB  2,451 × 40 KiB of headers and received bytes: the other
///                                    621 of 3,072 have their share of small_memory
/// those over HTTP/1.1        12 MiB  512 connections × 24 KiB more
/// connections                29 MiB  512 × 57 KiB for TLS and HTTP
/// large reviews, parsed      32 MiB  4 at once × 8 MiB
/// small reviews, parsed     109 MiB  as much as all bodies, and 32 KiB each of 1,024
/// unread lines of the log     8 MiB
///                           363 MiB
/// ```
///
/// A small review's parsed objects are freed as soon as it is judged, unless it waits for the API
/// server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The bytes held by all requests that have no answer yet or whose answer has not been sent: 24
    /// KiB for each, the first 32 KiB of its body, then its answer in place of that. If they are
    /// used up, requests wait for a part of their caller's timeout. Meanwhile bodies that have
    /// stalled are shed.
    pub small_memory: usize,
    /// The bytes held by bodies above 32 KiB; at least 37 MiB, the size of the largest body.
    pub large_memory: usize,
    /// The number of requests under way at once, including those that wait; more get a 503.
    pub requests: usize,
    /// The number of reviews judged at once. More wait for a part of their caller's timeout, then
    /// they get a 503.
    pub in_flight: usize,
    /// The number of connections open at once. At this number, an idle one is closed for the next.
    pub connections: usize,
    /// The time from the TCP accept to the end of the TLS handshake.
    pub handshake: Duration,
    /// The time from the handshake to the end of the first request's headers and, over HTTP/1.1,
    /// from each answer to the end of the next headers.
    pub headers: Duration,
    /// The time for which an HTTP/2 connection may be without a request. Go's client, which the API
    /// server uses, ends its own after 90 s (`IdleConnTimeout` of `net/http`), so the server rarely
    /// has to.
    pub idle: Duration,
    /// The time for which a connection is used, so that the API server spreads its connections over
    /// the current replicas: over HTTP/1.1 its next response is the last one, over HTTP/2 it ends
    /// when it is idle.
    pub age: Duration,
    /// The longest time that a review may take, whatever its client says.
    pub timeout: Duration,
    /// The time from the end of the headers to the end of the body, unless the caller waits less.
    pub body_read: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            small_memory: 34 * 1024 * 1024,
            large_memory: 43 * 1024 * 1024,
            requests: 3072,
            in_flight: 1024,
            connections: 512,
            handshake: Duration::from_secs(10),
            headers: Duration::from_secs(15),
            idle: Duration::from_secs(120),
            age: Duration::from_secs(30 * 60),
            timeout: MAX_TIMEOUT,
            body_read: Duration::from_secs(10),
        }
    }
}
