//! A review's bytes, only read: some forty times as many in the same time as
//! [`super::review`], which judges and answers them as well.

use jiff::Timestamp;
use multi_attach_guard::admission::Received;
use serde::de::IgnoredAny;

use super::review::{FIELDS, spaced};

/// Whatever the bytes are, they are a review, and JSON from end to end, or there is a
/// sentence. Only what stands in `managedFields` is not looked at, and nothing depends on it.
pub fn run(bytes: &[u8]) {
    match Received::read(bytes, Timestamp::UNIX_EPOCH) {
        Ok(received) => {
            let submitted = received.submitted();
            if let Some(submitted) = &submitted {
                assert!(!submitted.name.is_empty());
            }
            if let Err(error) = serde_json::from_slice::<IgnoredAny>(bytes) {
                let mut windows = bytes.windows(FIELDS.len());
                assert!(windows.any(|it| it == FIELDS.as_bytes()), "{error}");
            }
            if let Some(spaced) = spaced(bytes) {
                let other = Received::read(&spaced, Timestamp::UNIX_EPOCH);
                let other = other.expect("spaces make no difference");
                assert_eq!(other.submitted(), submitted);
            }
        }
        Err(refusal) => {
            let sentence = refusal.to_string();
            assert!(sentence.ends_with('.'), "{sentence}");
        }
    }
}
