//! Finding the end of a JSON value without reading it.

use wide::u8x16;

/// How many bytes are looked at in one step.
const LANES: usize = 16;

/// The end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed {
    /// The byte after its closing quotation mark.
    pub(super) end: usize,
    /// Whether no character in it is escaped.
    pub(super) plain: bool,
}

/// The end of the text whose first character stands at `start`; `None` where it has none, or
/// where a control character stands in it.
#[inline]
pub(super) fn after_text(json: &[u8], start: usize) -> Option<Closed> {
    let bytes = json.get(start..)?;
    // Most texts end within one step.
    if let Some(lanes) = bytes.first_chunk()
        && let Some(at) = first_mark(*lanes)
        && bytes[at] == b'"'
    {
        let end = start + at + 1;
        return Some(Closed { end, plain: true });
    }
    after_long_text(json, start)
}

#[inline(never)]
fn after_long_text(json: &[u8], start: usize) -> Option<Closed> {
    let mut at = start;
    let mut plain = true;
    loop {
        at += next_mark(json.get(at..)?)?;
        match json.get(at)? {
            b'"' => return Some(Closed { end: at + 1, plain }),
            b'\\' => {
                plain = false;
                at += 2;
            }
            _ => return None,
        }
    }
}

/// How far it is to the next quotation mark, backslash or control character.
fn next_mark(bytes: &[u8]) -> Option<usize> {
    let (steps, rest) = bytes.as_chunks();
    for (number, lanes) in steps.iter().enumerate() {
        if let Some(at) = first_mark(*lanes) {
            return Some(number * LANES + at);
        }
    }
    let is_mark = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let at = rest.iter().position(is_mark)?;
    Some(bytes.len() - rest.len() + at)
}

/// The first quotation mark, backslash or control character.
#[inline]
fn first_mark(bytes: [u8; LANES]) -> Option<usize> {
    let bytes = u8x16::new(bytes);
    let is = |mark: u8| bytes.simd_eq(u8x16::splat(mark));
    let is_control = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
    match (is(b'"') | is(b'\\') | is_control).to_bitmask() {
        0 => None,
        marks => Some(marks.trailing_zeros() as usize),
    }
}

/// The byte after the value that begins at `start`; `None` where none begins or it does not
/// end. Of lists and objects only quotation marks and brackets are looked at, and square
/// and curly ones are not told apart; what is neither of these nor a text ends with its
/// letters and digits.
pub(super) fn after_value(json: &[u8], start: usize) -> Option<usize> {
    match json.get(start)? {
        b'"' => after_text(json, start + 1).map(|it| it.end),
        b'{' | b'[' => Some(start + length(&json[start..])?),
        b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
            let ends =
                |byte: &u8| !matches!(byte, b'+' | b'-' | b'.') && !byte.is_ascii_alphanumeric();
            let length = json[start..].iter().position(ends);
            Some(length.map_or(json.len(), |it| start + it))
        }
        _ => None,
    }
}

/// How many bytes the list or object takes with which `json` starts.
fn length(json: &[u8]) -> Option<usize> {
    let mut depth = 0_u32;
    let mut in_text = false;
    let mut first_is_escaped = false;
    for (number, bytes) in json.chunks(Block::BYTES).enumerate() {
        let Block {
            mut quotes,
            backslashes,
            opening,
            closing,
        } = Block::of(bytes);
        if first_is_escaped || backslashes != 0 {
            let escaped;
            (escaped, first_is_escaped) = after_backslashes(backslashes, first_is_escaped);
            quotes &= !escaped;
        }
        let mut outside = !odd(quotes);
        if in_text {
            outside = !outside;
        }
        in_text = outside >> (u64::BITS - 1) == 0;
        let closed = (closing & outside).count_ones();
        if depth > closed {
            // It does not end in this block, in whatever order they stand.
            depth = depth - closed + (opening & outside).count_ones();
            continue;
        }
        let mut brackets = (opening | closing) & outside;
        while brackets != 0 {
            let first = brackets & brackets.wrapping_neg();
            depth = match closing & first {
                0 => depth + 1,
                _ => depth - 1,
            };
            if depth == 0 {
                return Some(number * Block::BYTES + first.trailing_zeros() as usize + 1);
            }
            brackets ^= first;
        }
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

    /// The marks of at most 64 bytes.
    #[inline]
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
        let (steps, _) = bytes.as_chunks::<LANES>();
        for (number, lanes) in steps.iter().enumerate() {
            let bytes = u8x16::new(*lanes);
            // This one bit is what tells `[` from `{`, and `]` from `}`.
            let brackets = bytes | u8x16::splat(0x20);
            let at = |bytes: u8x16, mark: u8| {
                u64::from(bytes.simd_eq(u8x16::splat(mark)).to_bitmask()) << (number * LANES)
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
const fn after_backslashes(backslashes: u64, first_is_escaped: bool) -> (u64, bool) {
    const ODD_PLACES: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let first = first_is_escaped as u64;
    // Subtracting a run of backslashes from a number in which every other bit is set borrows
    // along the run, so that of it every other bit is left, from its first one on: those
    // that escape, and what the last of them escapes if that is no backslash.
    let backslashes = backslashes & !first;
    let marked = ((backslashes << 1) | ODD_PLACES).wrapping_sub(backslashes) ^ ODD_PLACES;
    let escaped = (marked ^ backslashes) | first;
    (escaped, (marked & backslashes) >> (u64::BITS - 1) == 1)
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

/// Documents to try the readers of JSON with.
#[cfg(test)]
pub(super) mod samples {
    use proptest::prelude::*;
    use serde_json::Value;

    /// Documents with many marks, and texts that end about where a block does.
    pub(in super::super) fn any_json() -> impl Strategy<Value = Value> {
        let text = r#"[\[\]{}"\\a-c\n]{0,20}|[a-cé]{0,20}|a{50,80}|\\{55,70}"#;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
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
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::samples::any_json;
    use super::*;

    #[test]
    fn a_text_ends_with_its_quotation_mark() {
        let closed = |end, plain| Some(Closed { end, plain });
        let long = format!("{}\"", "é".repeat(40));
        let escaped = format!("{}\\\"\"", "a".repeat(15));
        let spaced = format!("{}\"", " \u{7f}".repeat(10));
        let controls = ["\0", "\t", "\u{1f}"].map(|it| format!("a{it}{}\"", "b".repeat(20)));
        let cases = [
            ("\"", closed(1, true)),
            ("a\",\"", closed(2, true)),
            (r#"\"","#, closed(3, false)),
            (r#"\\""#, closed(3, false)),
            (&long, closed(81, true)),
            (&escaped, closed(18, false)),
            (&spaced, closed(21, true)),
            (&controls[0], None),
            (&controls[1], None),
            (&controls[2], None),
            ("a", None),
            ("\\", None),
            ("\\\"", None),
            ("\n\"", None),
            ("\u{1f}\"", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(after_text(text.as_bytes(), 0), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_value_ends_where_it_ends(
            value in any_json(),
            is_spaced in any::<bool>(),
            behind in "[,} \n][a-c\"\\[{]{0,70}|",
            cut in any::<Index>(),
        ) {
            let text = match is_spaced {
                true => format!("{value:#}"),
                false => value.to_string(),
            };
            let whole = format!("{text}{behind}");
            prop_assert_eq!(after_value(whole.as_bytes(), 0), Some(text.len()), "{}", whole);
            // Cut off anywhere, there is nothing to panic about.
            let part = &text.as_bytes()[..cut.index(text.len())];
            if matches!(text.as_bytes()[0], b'{' | b'[' | b'"') {
                prop_assert_eq!(after_value(part, 0), None);
            }
        }
    }
}
