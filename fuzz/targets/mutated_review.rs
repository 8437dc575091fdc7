//! Reviews that different readers may understand differently: duplicate fields, escapes, other
//! letter case, deeper nesting.

use std::ops::Range;

use serde_json::Value;

/// A generator of pseudorandom choices from a seed (splitmix64).
pub struct Lot(pub u64);

impl Lot {
    fn draw(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((drawn ^ (drawn >> 31)) % below.max(1) as u64) as usize
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.draw(texts.len())]
    }
}

/// A review with the places of its objects' fields.
pub struct Seed {
    text: String,
    fields: Vec<Member>,
}

#[derive(Clone)]
struct Member {
    key: Range<usize>,
    value: Range<usize>,
}

const VALUES: [&str; 24] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "-0",
    "3",
    "1.0",
    "1e2",
    "1e999",
    "9223372036854775808",
    r#""""#,
    r#""x""#,
    r#""25%""#,
    r#""\ud800""#,
    r#""\ud83d\ude00""#,
    "{}",
    "[]",
    "[null]",
    r#"[{}]"#,
    r#"{"claimName":"web-data"}"#,
    r#"{"type":"Recreate"}"#,
    r#"{"spec":{}}"#,
    r#"{"name":"data","persistentVolumeClaim":{"claimName":"web-data"}}"#,
];

const KEYS: [&str; 16] = [
    "spec",
    "metadata",
    "template",
    "replicas",
    "strategy",
    "type",
    "volumes",
    "claimName",
    "object",
    "oldObject",
    "kind",
    "operation",
    "deletionTimestamp",
    "labels",
    "annotations",
    "awsElasticBlockStore",
];

impl Seed {
    /// Reads a seed; `None` if the bytes are not JSON or have no fields.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Value>(bytes).ok()?;
        let text = String::from_utf8(bytes.to_vec()).ok()?;
        let fields = fields(text.as_bytes());
        (!fields.is_empty()).then_some(Self { text, fields })
    }

    /// The review with a few fields duplicated, escaped, in another letter case, with another value
    /// or nested deeper.
    pub fn mutated(&self, lot: &mut Lot) -> Vec<u8> {
        let mut edits: Vec<(Range<usize>, String)> =
            (0..=lot.draw(4)).map(|_| self.edit(lot)).collect();
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        let mut text = self.text.clone();
        let mut end = text.len();
        for (range, new) in edits {
            if range.end <= end {
                end = range.start;
                text.replace_range(range, &new);
            }
        }
        let mut bytes = text.into_bytes();
        match lot.draw(40) {
            0 => bytes.truncate(lot.draw(bytes.len())),
            1 => {
                let at = lot.draw(bytes.len());
                bytes[at] = b"{}[]\",:\\0x\xff"[lot.draw(11)];
            }
            _ => {}
        }
        bytes
    }

    fn edit(&self, lot: &mut Lot) -> (Range<usize>, String) {
        let text = |range: &Range<usize>| &self.text[range.clone()];
        let Member { key, value } = self.fields[lot.draw(self.fields.len())].clone();
        let other = self.fields[lot.draw(self.fields.len())].clone();
        let other_value = match lot.draw(3) {
            0 => text(&other.value),
            1 => text(&value),
            _ => lot.one_of(&VALUES),
        };
        let again = match lot.draw(5) {
            0 => in_another_case(text(&key), lot),
            1 => escaped(text(&key), lot),
            2 => format!("\"{}\"", lot.one_of(&KEYS)),
            _ => text(&key).to_owned(),
        };
        let after = value.end..value.end;
        match lot.draw(12) {
            0..4 => (after, format!(",{again}:{other_value}")),
            4 | 5 => (key.start..key.start, format!("{again}:{other_value},")),
            6 => (after, format!(",{}:{}", text(&other.key), text(&other.value))),
            7 => (key, again),
            8 | 9 => (value, other_value.to_owned()),
            10 => {
                let depth = [1, 1, 2, 200][lot.draw(4)];
                let inner = text(&value);
                let nested = match lot.draw(2) {
                    0 => format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth)),
                    _ => format!("{}{inner}{}", "{\"spec\":".repeat(depth), "}".repeat(depth)),
                };
                (value, nested)
            }
            _ => {
                let written = text(&value);
                let new = match written.strip_prefix('"') {
                    Some(_) => escaped(written, lot),
                    None => format!(" \n{written}\t"),
                };
                (value, new)
            }
        }
    }
}

/// The quoted text with one letter in the other case, or with another letter that folds to it.
fn in_another_case(quoted: &str, lot: &mut Lot) -> String {
    let at = lot.draw(quoted.len());
    let other = |letter: char| match (letter, lot.draw(4)) {
        ('s', 0) => '\u{17F}',
        ('k', 0) => '\u{212A}',
        (letter, _) if letter.is_ascii_lowercase() => letter.to_ascii_uppercase(),
        (letter, _) => letter.to_ascii_lowercase(),
    };
    replaced(quoted, at, other)
}

/// The quoted text with one letter as an escape.
fn escaped(quoted: &str, lot: &mut Lot) -> String {
    let at = 1 + lot.draw(quoted.len().saturating_sub(2));
    match quoted.as_bytes().get(at) {
        // Not within an escape, and not the closing quote.
        Some(byte) if byte.is_ascii_alphabetic() && !quoted.contains('\\') => {
            let escape = format!("\\u{byte:04x}");
            format!("{}{escape}{}", &quoted[..at], &quoted[at + 1..])
        }
        _ => quoted.to_owned(),
    }
}

fn replaced(text: &str, at: usize, mut other: impl FnMut(char) -> char) -> String {
    text.char_indices()
        .map(|(place, letter)| if place == at { other(letter) } else { letter })
        .collect()
}

/// The places of the fields of all objects in the JSON.
fn fields(json: &[u8]) -> Vec<Member> {
    let mut fields = Vec::new();
    let mut at = 0;
    while at < json.len() {
        if json[at] != b'"' {
            at += 1;
            continue;
        }
        let key = at..end_of(json, at);
        at = key.end;
        let space =
            |from: usize| json[from..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let colon = at + space(at);
        if json.get(colon) == Some(&b':') {
            let start = colon + 1 + space(colon + 1);
            fields.push(Member { key, value: start..end_of(json, start) });
            at = start;
        }
    }
    fields
}

/// The end of the value that begins at `start`.
fn end_of(json: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    loop {
        match json.get(at) {
            Some(b'"') => {
                at += 1;
                while json[at] != b'"' {
                    at += if json[at] == b'\\' { 2 } else { 1 };
                }
            }
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') => depth -= 1,
            Some(b'a'..=b'z' | b'0'..=b'9' | b'-' | b'+' | b'.' | b'E') => {
                let is_plain = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-+.".contains(byte);
                at += json[at..].iter().take_while(is_plain).count() - 1;
            }
            _ => {}
        }
        at += 1;
        if depth == 0 || at >= json.len() {
            return at;
        }
    }
}
