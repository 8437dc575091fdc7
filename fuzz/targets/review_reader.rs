//! A review's bytes, only read: some forty times as many in the same time as
//! [`super::review`], which judges and answers them as well.

use jiff::Timestamp;
use multi_attach_guard::admission::Received;
use serde::de::IgnoredAny;

/// Whatever the bytes are, they are a review, and JSON from end to end, or there is a
/// sentence.
pub fn run(bytes: &[u8]) {
    match Received::read(bytes, Timestamp::UNIX_EPOCH) {
        Ok(received) => {
            serde_json::from_slice::<IgnoredAny>(bytes).expect("a review is JSON");
            if let Some(submitted) = received.submitted() {
                assert!(!submitted.name.is_empty());
            }
        }
        Err(refusal) => {
            let sentence = refusal.to_string();
            assert!(sentence.ends_with('.'), "{sentence}");
        }
    }
}
