//! How much of anything the server accepts.

use std::thread::available_parallelism;
use std::time::Duration;

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
/// takes memory beside its body.
const MOST_LARGE: usize = 4;

/// Bounds on time and memory. The defaults suit the API server, whose own
/// deadline for a webhook is 10 s unless configured otherwise.
///
/// What strangers can make the server hold, at most:
///
/// ```text
/// requests and answers       96 MiB  body_memory
/// one more of the largest    37 MiB  the last resort, see Budget
/// received and not yet read   1 MiB  16 bodies that wait × 64 KiB
/// HTTP/1.1 headers           32 MiB  512 connections × 64 KiB
/// connections                29 MiB  512 × 57 KiB for TLS and HTTP
/// what is read of large ones 32 MiB  4 at once × 8 MiB
/// what is read of small ones 128 MiB  as much as their bodies, and 32 KiB each of 1,024
/// lines for the log           8 MiB  which nobody takes
///                           363 MiB
/// ```
///
/// What is read of small ones is gone as soon as they are judged, but where they wait for the
/// API server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The largest body that is read, in bytes. Larger ones get a 413.
    pub body: usize,
    /// Bytes of all requests whose answer has not been sent: of their bodies, then of their
    /// answers, and 24 KiB for each. Where they are used up, the bodies that have stalled give
    /// way, and connections end whose clients take nothing.
    pub body_memory: usize,
    /// Reviews judged at once; more wait for a part of the time that their
    /// caller gives, and are refused at once where that cannot be enough.
    pub in_flight: usize,
    /// The same for reviews above 256 KiB, which take a thread each.
    pub large_in_flight: usize,
    /// Connections open at once. Where they are all taken, the address that
    /// has most of them loses a quiet one to a newcomer.
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
    /// How long a connection is used at most, so that the API server spreads
    /// its connections over the replicas there are now.
    pub age: Duration,
    /// How long a connection that is told to end may take to do so, beside the
    /// requests that are under way.
    pub goodbye: Duration,
    /// From the end of the headers to the end of the body, where the caller
    /// does not wait less.
    pub body_read: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: MAX_BODY,
            body_memory: 96 * 1024 * 1024,
            in_flight: 1024,
            large_in_flight: available_parallelism().map_or(1, |it| it.get().min(MOST_LARGE)),
            connections: 512,
            handshake: Duration::from_secs(10),
            headers: Duration::from_secs(15),
            idle: Duration::from_secs(120),
            age: Duration::from_secs(30 * 60),
            goodbye: Duration::from_secs(5),
            body_read: Duration::from_secs(10),
        }
    }
}
