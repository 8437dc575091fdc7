//! How much of anything the server accepts.

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

/// Bounds on time and memory. The defaults suit the API server, whose own
/// deadline for a webhook is 10 s unless configured otherwise.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The largest body that is read, in bytes. Larger ones get a 413.
    pub body: usize,
    /// Bytes that all bodies in flight may take together, those below 64 KiB
    /// not counted. At least one body of the largest size always fits.
    pub body_memory: usize,
    /// How long a large body may wait for its share of `body_memory`, and any
    /// request for a free slot, before it gets a 503.
    pub wait: Duration,
    /// Reviews in flight at once; more wait. Together with the 64 KiB that are
    /// not counted this bounds the memory of small bodies.
    pub in_flight: usize,
    /// Connections open at once; a further one is closed at once. Each may
    /// hold 256 KiB that were received and not yet read.
    pub connections: usize,
    /// From the TCP accept to the end of the TLS handshake.
    pub handshake: Duration,
    /// From the handshake, or from the end of the request before, to the end
    /// of the request's headers. An idle HTTP/1.1 connection ends with it.
    pub headers: Duration,
    /// From the end of the headers to the end of the body.
    pub body_read: Duration,
    /// How long a client may leave its receive window full.
    pub write_stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: MAX_BODY,
            body_memory: 128 * 1024 * 1024,
            wait: Duration::from_secs(5),
            in_flight: 1024,
            connections: 512,
            handshake: Duration::from_secs(10),
            headers: Duration::from_secs(15),
            body_read: Duration::from_secs(10),
            write_stall: Duration::from_secs(30),
        }
    }
}
