//! A review's bytes, only read: many more of them in the same time than [`super::review`],
//! which judges what it read as well.

use jiff::Timestamp;
use multi_attach_guard::admission::Received;

/// Whatever the bytes are, they are a review or they are not.
pub fn run(bytes: &[u8]) {
    if let Ok(received) = Received::read(bytes, Timestamp::UNIX_EPOCH) {
        let _ = received.submitted();
    }
}
