//! Leaving out `managedFields` before a review is read.
//!
//! The API server writes into every object who set which of its fields. Nothing here
//! reads that, and it is often the larger part of an object: to find its end and copy
//! the rest takes a small part of the time that reading over it would.

use std::ops::RangeInclusive;

use memchr::{memchr_iter, memmem};

/// As the API server writes it, behind the other fields of the metadata. In a text the
/// quotation marks would be escaped.
const FIELD: &[u8] = br#","managedFields":["#;

/// The bytes of a review that is worth it. A shorter one is as soon read as copied, and of a
/// longer one the copy would count as memory.
const WORTH: RangeInclusive<usize> = 4 << 10..=64 << 10;

/// The review with each `managedFields` emptied, where it has any and that is worth it.
///
/// What stood in them is not checked to be JSON. Where a list stood among them, too little is
/// left out, and what comes back is no JSON, as its brackets do not match.
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
        let (before, list) = rest.split_at(start + FIELD.len());
        let after = list.get(end(list)?..)?;
        if copy.is_empty() {
            copy.reserve_exact(before.len() + after.len());
        }
        copy.extend_from_slice(before);
        rest = after;
    }
    if copy.is_empty() {
        return None;
    }
    copy.extend_from_slice(rest);
    Some(copy)
}

/// Where the first bracket stands that closes a list, and is not part of a text; `None` where
/// there is none, or where a backslash stands before anything but a quotation mark: only then
/// can the marks that end a text be counted.
fn end(text: &[u8]) -> Option<usize> {
    let (mut from, mut in_text) = (0, false);
    for end in memchr_iter(b']', text) {
        let part = &text[from..end];
        let mut marks = memchr_iter(b'"', part).count();
        for backslash in memchr_iter(b'\\', part) {
            if part.get(backslash + 1) != Some(&b'"') {
                return None;
            }
            marks -= 1;
        }
        in_text ^= marks % 2 == 1;
        if !in_text {
            return Some(end);
        }
        from = end;
    }
    None
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
                r#"{"a":{"b":1,"managedFields":[{"f:a":{"k:{\"n\":\"]\"}":{}}}]},"c":1}"#,
                Some(r#"{"a":{"b":1,"managedFields":[]},"c":1}"#),
            ),
            (
                r#"[{"a":1,"managedFields":[]},{"a":1,"managedFields":[1,2]}]"#,
                Some(r#"[{"a":1,"managedFields":[]},{"a":1,"managedFields":[]}]"#),
            ),
            (
                r#"{"a":1,"managedFields":[1,[2],3]}"#,
                Some(r#"{"a":1,"managedFields":[],3]}"#),
            ),
            (r#"{"a":1,"managedFields":["\\"]}"#, None),
            (r#"{"a":1,"managedFields":["\u005d"]}"#, None),
            (r#"{"a":",\"managedFields\":[1]}"}"#, None),
            (r#"{"a,\"managedFields":[1]}"#, None),
            (r#"{"a":1,"managedFields":{"a":1}}"#, None),
            (r#"{"a":1,"managedFields":["#, None),
            (r#"{"a":1,"managedFields":["]"#, None),
            (r#"{"a":1,"managedFields":["\]"#, None),
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
            let review = format!(r#"{{"a":1,"managedFields":["{}"]}}"#, "x".repeat(padding));
            assert_eq!(emptied(review.as_bytes()).is_some(), expected, "{padding}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let text = r#"[\[\]{}",:a-c]{0,20}|[\[\]{}"\\a-c\n]{0,20}"#;
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

    /// Objects in objects, as the API server writes who set which fields.
    fn any_fields() -> impl Strategy<Value = Value> {
        let text = r#"[\[\]{}",:a-c]{0,60}"#;
        let leaf = text.prop_map(Value::from);
        leaf.prop_recursive(6, 60, 8, move |inner| {
            prop::collection::vec((text, inner), 0..8)
                .prop_map(|fields| fields.into_iter().collect())
        })
    }

    proptest! {
        #[test]
        fn the_rest_is_as_it_was(fields in any_fields(), before in any_json(), after in any_json()) {
            let review = |fields: Value| {
                json!({"a": before, "managedFields": fields, "b": after}).to_string()
            };
            let copied = text(copied(review(json!([fields])).as_bytes()));
            prop_assert_eq!(copied, Some(review(json!([]))));
        }

        #[test]
        fn the_rest_is_as_it_was_or_no_json(
            fields in any_json(),
            before in any_json(),
            after in any_json(),
            end in any::<prop::sample::Index>(),
        ) {
            let review = |fields: Value| json!({"a": before, "managedFields": [fields], "b": after});
            let review = review(fields).to_string();
            let expected = json!({"a": before, "managedFields": [], "b": after});
            if let Some(copied) = copied(review.as_bytes())
                && let Ok(read) = serde_json::from_slice::<Value>(&copied)
            {
                prop_assert_eq!(read, expected);
            }
            // Cut off anywhere, there is nothing to panic about.
            copied(&review.as_bytes()[..end.index(review.len())]);
        }
    }
}
