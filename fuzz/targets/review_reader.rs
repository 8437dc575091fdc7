//! A review's bytes, only read: some forty times as many in the same time as
//! [`super::review`], which judges and answers them as well.

use jiff::Timestamp;
use multi_attach_guard::admission::{Received, Submitted};

use super::review::both_ways;

/// Whatever the bytes are, there is a sentence, or they are a review whose brackets match;
/// and it does not depend on which reader it is read by.
pub fn run(bytes: &[u8]) {
    match Received::read(bytes, Timestamp::UNIX_EPOCH) {
        Ok(received) => {
            if let Some(submitted) = received.submitted() {
                assert!(!submitted.name.is_empty());
            }
            assert!(brackets_match(bytes));
        }
        Err(refusal) => {
            let sentence = refusal.to_string();
            assert!(sentence.ends_with('.'), "{sentence}");
        }
    }
    if let Some(ways) = both_ways(bytes) {
        let [one, other] = ways.each_ref().map(|bytes| submitted(bytes));
        assert_eq!(one, other);
    }
}

fn submitted(bytes: &[u8]) -> Option<Submitted> {
    let received = Received::read(bytes, Timestamp::UNIX_EPOCH).ok()?;
    received.submitted()
}

/// Whether as many brackets are closed as are opened, outside of texts, and all texts end. A
/// backslash outside of them is no JSON, and is taken for one within.
fn brackets_match(json: &[u8]) -> bool {
    let (mut depth, mut in_text, mut is_escaped) = (0_i64, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth -= 1,
            _ => {}
        }
    }
    depth == 0 && !in_text
}
