//! How much of anything the server accepts.

use std::thread::available_parallelism;
use std::time::Duration;

use super::body::MAX_TIMEOUT;

/// The largest body that is read, in bytes.
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

/// Large reviews judged at once on a machine with many processors. They are rare, and each
/// takes memory besides its body.
const MOST_LARGE: usize = 4;

/// Bounds on time and memory. The defaults suit the API server, whose own
/// deadline for a webhook is 10 s unless configured otherwise.
///
/// What clients can make the server hold, at most:
///
/// ```text
/// requests, answers and
/// bodies up to 32 KiB        34 MiB  small_memory
/// larger bodies              43 MiB  large_memory
/// requests that wait         96 MiB  2,451 × 40 KiB of headers and received bytes: the other
///                                    621 of 3,072 have their share of small_memory
/// those over HTTP/1.1        12 MiB  512 connections × 24 KiB more
/// connections                29 MiB  512 × 57 KiB for TLS and HTTP
/// what is read of large ones 32 MiB  4 at once × 8 MiB
/// what is read of small ones 109 MiB as much as all bodies, and 32 KiB each of 1,024
/// lines for the log           8 MiB  that nobody reads
///                           363 MiB
/// ```
///
/// What is read of small ones is freed as soon as they are judged, unless they wait for the
/// API server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The largest body that is read, in bytes. Larger ones get a 413.
    pub body: usize,
    /// Bytes held by all requests that have no answer yet or whose answer has not been sent:
    /// 24 KiB for each, the first 32 KiB of its body, then its answer in place of that.
    /// Where they are used up, requests wait for a part of the time that their caller gives.
    /// Meanwhile bodies that have stalled are shed, and connections end whose clients do not
    /// read their answers.
    pub small_memory: usize,
    /// Bytes held by bodies above 32 KiB; at least [`body`](Self::body).
    pub large_memory: usize,
    /// Requests under way at once, those that wait included; more get a 503.
    pub requests: usize,
    /// Reviews judged at once; more wait for a part of the time that their
    /// caller gives, then they get a 503.
    pub in_flight: usize,
    /// The same for reviews above 256 KiB, which take a thread each.
    pub large_in_flight: usize,
    /// Connections open at once. Where there are as many, an idle one is closed for the next.
    pub connections: usize,
    /// From the TCP accept to the end of the TLS handshake.
    pub handshake: Duration,
    /// From the handshake to the end of the first request's headers and, over
    /// HTTP/1.1, from each answer to the end of the next headers.
    pub headers: Duration,
    /// How long an HTTP/2 connection may be without a request. Go's client, as
    /// in the API server, ends its own after 90 s (`IdleConnTimeout` of
    /// `net/http`), so it is rarely the server that does.
    pub idle: Duration,
    /// How long a connection is used, so that the API server spreads its connections over the
    /// replicas there are now: over HTTP/1.1 its next response is the last one, over HTTP/2 it
    /// ends when it is idle.
    pub age: Duration,
    /// How long a connection may take to close, besides the requests in flight.
    pub grace: Duration,
    /// The longest that a review may take, whatever its client says.
    pub timeout: Duration,
    /// From the end of the headers to the end of the body, where the caller
    /// does not wait less.
    pub body_read: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: MAX_BODY,
            small_memory: 34 * 1024 * 1024,
            large_memory: 43 * 1024 * 1024,
            requests: 3072,
            in_flight: 1024,
            large_in_flight: available_parallelism().map_or(1, |it| it.get().min(MOST_LARGE)),
            connections: 512,
            handshake: Duration::from_secs(10),
            headers: Duration::from_secs(15),
            idle: Duration::from_secs(120),
            age: Duration::from_secs(30 * 60),
            grace: Duration::from_secs(5),
            timeout: MAX_TIMEOUT,
            body_read: Duration::from_secs(10),
        }
    }
}
