//! The bytes of a review, only read. This runs some forty times as many inputs in the same time as
//! [`super::review`], which also judges and answers them.

use jiff::Timestamp;
use webhook::admission::{Received, Submitted};

use super::review::both_ways;

/// For any bytes, the result is a sentence, or they are a review whose brackets match. The result
/// does not depend on the object's place in the JSON.
pub fn run(bytes: &[u8]) {
    match Received::read(bytes, Timestamp::UNIX_EPOCH) {
        Ok(received) => {
            assert!(brackets_match(bytes));
            let Some(submitted) = received.submitted() else {
                return;
            };
            assert!(!submitted.name.is_empty());
            // Writing and reading the review twice more takes several times as long, so only one in
            // eight is checked in this way; `review` checks all.
            if is_chosen(bytes)
                && let Some(ways) = both_ways(bytes)
            {
                for way in ways {
                    assert_eq!(self::submitted(&way).as_ref(), Some(&submitted));
                }
            }
        }
        Err(refusal) => {
            let sentence = refusal.to_string();
            assert!(sentence.ends_with('.'), "{sentence}");
        }
    }
}

fn is_chosen(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte)).is_multiple_of(8)
}

fn submitted(bytes: &[u8]) -> Option<Submitted> {
    Received::read(bytes, Timestamp::UNIX_EPOCH).ok()?.submitted()
}

/// Whether as many brackets are closed as are opened, outside of strings, and all strings end. A
/// backslash outside of a string is not JSON; a quotation mark after it does not count there
/// either.
fn brackets_match(json: &[u8]) -> bool {
    let (mut depth, mut in_text, mut is_escaped) = (0_i64, false, false);
    for byte in json {
        match byte {
            b'"' if !is_escaped => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth -= 1,
            _ => {}
        }
        is_escaped = !is_escaped && *byte == b'\\';
    }
    depth == 0 && !in_text
}
