//! Answers that the client has not taken yet.
//!
//! Over HTTP/2 a client says how much it is ready to take, which may be nothing. Until then an
//! answer is held, so it counts as what has arrived does: against the memory that all share,
//! and as a request that is under way. Where others need the memory, the connection ends.

use hyper::body::Bytes;
use tokio::time::Instant;

use super::budget::Share;
use super::connections::Asking;

/// The bytes of an answer, with what they hold until they have been sent.
struct Untaken {
    answer: Vec<u8>,
    _share: Share,
    _asking: Asking,
}

impl AsRef<[u8]> for Untaken {
    fn as_ref(&self) -> &[u8] {
        &self.answer
    }
}

/// The bytes of `answer`, which is there since `now`; they hold its share and its request
/// until they have been sent.
pub(super) fn until_taken(
    answer: Vec<u8>,
    share: Share,
    mut asking: Asking,
    now: Instant,
) -> Bytes {
    asking.answered(now);
    Bytes::from_owner(Untaken {
        answer,
        _share: share,
        _asking: asking,
    })
}
