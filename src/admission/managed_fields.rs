//! Leaving out `managedFields` before a review is read.
//!
//! The API server writes into every object who set which of its fields. Nothing here
//! reads that, and it is often the larger part of an object: to find its end and copy
//! the rest takes less than half of the time that reading over it would.

use std::ops::RangeInclusive;

use memchr::memmem;
use wide::u8x16;

/// As the API server writes it. In a text the quotation marks would be escaped.
const FIELD: &[u8] = br#""managedFields":["#;

/// The bytes of a review that is worth it. A shorter one is as soon read as copied (at
/// 1.5 KiB copying takes 6 % longer, at 9 KiB 10 % less), and of a longer one the copy would
/// count as memory.
const WORTH: RangeInclusive<usize> = 4 << 10..=64 << 10;

/// The review with each `managedFields` emptied, where it has any and that is worth it.
/// What stood in them is not checked to be JSON.
pub(super) fn emptied(review: &[u8]) -> Option<Vec<u8>> {
    WORTH
        .contains(&review.len())
        .then(|| copied(review))
        .flatten()
}

fn copied(review: &[u8]) -> Option<Vec<u8>> {
    let mut rest = review;
    let mut copy = Vec::new();
    while let Some(start) = memmem::find(rest, FIELD) {
        let (before, list) = rest.split_at(start + FIELD.len() - 1);
        let after = list.get(length(list)?..)?;
        if copy.is_empty() {
            copy.reserve_exact(before.len() + after.len() + 2);
        }
        copy.extend_from_slice(before);
        copy.extend_from_slice(b"[]");
        rest = after;
    }
    if copy.is_empty() {
        return None;
    }
    copy.extend_from_slice(rest);
    Some(copy)
}

/// How many bytes the JSON list or object takes with which `text` starts; `None` where it
/// does not end.
fn length(text: &[u8]) -> Option<usize> {
    let mut depth = 0;
    let mut in_text = false;
    let mut first_is_escaped = false;
    for (number, block) in text.chunks(Block::BYTES).enumerate() {
        let block = Block::of(block);
        let mut quotes = block.quotes;
        if first_is_escaped || block.backslashes != 0 {
            let escaped;
            (escaped, first_is_escaped) = after_backslashes(block.backslashes, first_is_escaped);
            quotes &= !escaped;
        }
        let mut outside = !odd(quotes);
        if in_text {
            outside = !outside;
        }
        in_text = outside >> (Block::BYTES - 1) == 0;
        let (mut opening, mut closing) = (block.opening & outside, block.closing & outside);
        while depth <= closing.count_ones() && closing != 0 {
            let end = closing.trailing_zeros();
            let before = opening & ((1 << end) - 1);
            depth = (depth + before.count_ones()).checked_sub(1)?;
            if depth == 0 {
                return Some(number * Block::BYTES + end as usize + 1);
            }
            opening &= !before;
            closing &= closing - 1;
        }
        depth = depth + opening.count_ones() - closing.count_ones();
    }
    None
}

/// Where in 64 bytes the marks stand: a bit for each byte, the first byte's the lowest.
#[derive(Default)]
struct Block {
    quotes: u64,
    backslashes: u64,
    opening: u64,
    closing: u64,
}

impl Block {
    const BYTES: usize = 64;
    const LANES: usize = 16;

    /// The marks of at most 64 bytes.
    fn of(bytes: &[u8]) -> Self {
        let mut padded = [b' '; Self::BYTES];
        let bytes: &[u8; Self::BYTES] = match bytes.try_into() {
            Ok(bytes) => bytes,
            Err(_) => {
                padded[..bytes.len()].copy_from_slice(bytes);
                &padded
            }
        };
        let mut block = Self::default();
        let (lanes, _) = bytes.as_chunks::<{ Self::LANES }>();
        for (number, lanes) in lanes.iter().enumerate() {
            let bytes = u8x16::new(*lanes);
            // This one bit is what tells `[` from `{`, and `]` from `}`.
            let brackets = bytes | u8x16::splat(0x20);
            let at = |bytes: u8x16, mark: u8| {
                u64::from(bytes.simd_eq(u8x16::splat(mark)).to_bitmask()) << (number * Self::LANES)
            };
            block.quotes |= at(bytes, b'"');
            block.backslashes |= at(bytes, b'\\');
            block.opening |= at(brackets, b'{');
            block.closing |= at(brackets, b'}');
        }
        block
    }
}

/// The bytes that a backslash before them escapes, and whether the first one of the next
/// block is such a byte.
fn after_backslashes(backslashes: u64, first_is_escaped: bool) -> (u64, bool) {
    let mut escaped = u64::from(first_is_escaped);
    let mut left = backslashes & !escaped;
    while left != 0 {
        let at = left.trailing_zeros();
        if at == u64::BITS - 1 {
            return (escaped, true);
        }
        escaped |= 0b10 << at;
        left &= !(0b11 << at);
    }
    (escaped, false)
}

/// The bits with an odd number of set bits up to them, themselves included.
const fn odd(mut bits: u64) -> u64 {
    let mut distance = 1;
    while distance < u64::BITS {
        bits ^= bits << distance;
        distance *= 2;
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn text(review: Option<Vec<u8>>) -> Option<String> {
        review.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn every_list_of_fields_is_emptied_and_nothing_else() {
        let cases = [
            (
                r#"{"a":{"managedFields":[{"f:a":{"k:{\"n\":\"]\"}":{}}}],"b":1}}"#,
                Some(r#"{"a":{"managedFields":[],"b":1}}"#),
            ),
            (
                r#"[{"managedFields":[]},{"managedFields":[1,[2]]}]"#,
                Some(r#"[{"managedFields":[]},{"managedFields":[]}]"#),
            ),
            (r#"{"a":"{\"managedFields\":[1]}"}"#, None),
            (r#"{"managedFields":{"a":1}}"#, None),
            (r#"{"managedFields":["#, None),
            (r#"{"managedFields":["]"#, None),
            ("{}", None),
            ("", None),
        ];
        for (review, expected) in cases {
            let copied = text(copied(review.as_bytes()));
            assert_eq!(copied.as_deref(), expected, "{review}");
        }
    }

    #[test]
    fn a_copy_is_made_where_it_is_worth_it() {
        for (padding, expected) in [(0, false), (4 << 10, true), (64 << 10, false)] {
            let review = format!(r#"{{"managedFields":["{}"]}}"#, "x".repeat(padding));
            assert_eq!(emptied(review.as_bytes()).is_some(), expected, "{padding}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let text = r#"[\[\]{}"\\a-c\n]{0,20}|a{50,80}|\\{55,70}"#;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 60, 8, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::vec((text, inner), 0..8)
                    .prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_rest_is_as_it_was(
            fields in any_json(),
            before in any_json(),
            after in any_json(),
            end in any::<prop::sample::Index>(),
        ) {
            let review = |fields: Value| json!({"a": before, "managedFields": [fields], "b": after});
            let review = review(fields).to_string();
            let expected = json!({"a": before, "managedFields": [], "b": after}).to_string();
            prop_assert_eq!(text(copied(review.as_bytes())), Some(expected));
            // Cut off anywhere, there is nothing to panic about.
            copied(&review.as_bytes()[..end.index(review.len())]);
        }
    }
}
