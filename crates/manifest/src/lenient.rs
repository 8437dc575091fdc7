//! YAML that Kubernetes' reader accepts beyond YAML 1.2. The parser gets a text with the same
//! meaning that it accepts.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::builder::{compose, narrow};
use super::error::{Fault, Problem};
use super::tree::{Node, Scalar, Shape, Tree};

/// The most times that one document is parsed again. Each time, one more place is rewritten.
const MOST_TIMES: usize = 500;

/// Bytes that may be parsed again in total: twice the size of the largest file.
const MOST_BYTES: usize = 128 << 20;

/// A letter of the private use area, which no manifest uses. Before it, a colon belongs to the word
/// and a hyphen starts one.
const LETTER: &str = "\u{e000}";

impl<'t> Tree<'t> {
    /// Parses the one document in `text`; `None` if it has only comments and markers.
    ///
    /// # Errors
    /// The text is not YAML, or it is YAML that Kubernetes would not accept as an object: keys that
    /// are lists, infinite numbers, aliases that multiply.
    pub fn parse(text: &'t str) -> Result<Option<Self>, Fault> {
        match compose(text) {
            Err(Fault { at, problem: Problem::Lenient }) => rewritten(text, at),
            parsed => parsed,
        }
    }
}

/// A letter that is inserted.
struct Letter {
    /// Its place, in bytes of the text as it was written.
    at: usize,
    /// Its end in the text that is parsed.
    end: usize,
}

/// Parses `text` with a letter behind the byte `at`, and behind each further byte at which the
/// parser stops. The positions in the tree are those in `text`.
fn rewritten(text: &str, mut at: usize) -> Result<Option<Tree<'_>>, Fault> {
    let mut letters: Vec<Letter> = Vec::new();
    let mut bytes_left = MOST_BYTES;
    for _ in 0..MOST_TIMES {
        let Err(place) = letters.binary_search_by_key(&(at + 1), |letter| letter.at) else {
            break;
        };
        letters.insert(place, Letter { at: at + 1, end: 0 });
        let Some(left) = bytes_left.checked_sub(text.len() + letters.len() * LETTER.len()) else {
            break;
        };
        bytes_left = left;
        let filled = filled(text, &mut letters);
        match compose(&filled) {
            Ok(tree) => return Ok(tree.map(|tree| moved(&tree, text, &letters))),
            Err(fault) => {
                at = original(&letters, fault.at);
                if !matches!(fault.problem, Problem::Lenient) {
                    return Err(Fault::new(at, fault.problem));
                }
            }
        }
    }
    Err(Fault::new(at, Problem::Lenient))
}

/// Inserts the letters into `text` and sets the end of each.
fn filled(text: &str, letters: &mut [Letter]) -> String {
    let mut filled = String::with_capacity(text.len() + letters.len() * LETTER.len());
    let mut done = 0;
    for letter in letters {
        filled += &text[done..letter.at];
        filled += LETTER;
        done = letter.at;
        letter.end = filled.len();
    }
    filled += &text[done..];
    filled
}

/// The position in the original text of a position in the filled text. A position inside a letter
/// is that of the letter.
fn original(letters: &[Letter], at: usize) -> usize {
    let ended = letters.partition_point(|letter| letter.end <= at);
    let behind = at - ended * LETTER.len();
    letters.get(ended).map_or(behind, |next| behind.min(next.at))
}

/// `tree` with the positions of `text` and without the letters.
fn moved<'t>(tree: &Tree<'_>, text: &'t str, letters: &[Letter]) -> Tree<'t> {
    let place = |at: u32| narrow(original(letters, at as usize));
    let nodes = tree.nodes.iter().map(|node| Node {
        shape: match node.shape {
            Shape::Scalar(ref scalar) => Shape::Scalar(Scalar {
                text: Cow::Owned(without_letter(scalar, place(node.end), letters).to_owned()),
                style: scalar.style,
                tag: scalar.tag,
            }),
            Shape::Sequence => Shape::Sequence,
            Shape::Mapping => Shape::Mapping,
            Shape::Alias(target) => Shape::Alias(target),
        },
        properties: place(node.properties),
        start: place(node.start),
        end: place(node.end),
        anchored: node.anchored,
        flow: node.flow,
        overlaid: node.overlaid,
        after: node.after,
    });
    Tree { text, nodes: nodes.collect(), lines: OnceLock::new() }
}

/// The text of the scalar without the letter that was inserted after it.
fn without_letter<'s>(scalar: &'s Scalar<'_>, end: u32, letters: &[Letter]) -> &'s str {
    let is_inserted = letters.binary_search_by_key(&(end as usize), |letter| letter.at).is_ok();
    scalar.text.strip_suffix(LETTER).filter(|_| is_inserted).unwrap_or(&scalar.text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> serde_json::Value {
        let tree = Tree::parse(text).unwrap().unwrap();
        tree.value(tree.root())
    }

    /// The expected values are the ones that `kubectl` reads with go-yaml's parser.
    #[test]
    fn a_colon_or_hyphen_before_a_bracket_is_of_a_word() {
        for (text, expected) in [
            ("{a: b:}", json!({"a": "b:"})),
            ("{a: b:, c: d}", json!({"a": "b:", "c": "d"})),
            ("{a: b :, c: d}", json!({"a": "b :", "c": "d"})),
            ("{a:, b: c}", json!({"a:": null, "b": "c"})),
            ("[a:, {b:}, [c:]]", json!(["a:", {"b:": null}, ["c:"]])),
            ("{a: {b:}, c: d:}", json!({"a": {"b:": null}, "c": "d:"})),
            ("{\"a\":}", json!({"a": null})),
            ("[m::, {b: n:::}]", json!(["m::", {"b": "n:::"}])),
            ("[-, {a: -, b: -}]", json!(["-", {"a": "-", "b": "-"}])),
            ("{a: ['b:', \"c:\"], d: e}", json!({"a": ["b:", "c:"], "d": "e"})),
            ("a: \"{b:}\"", json!({"a": "{b:}"})),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn places_are_those_of_the_text_as_it_was_written() {
        let text = "{a: [b:, c:], d: \"e\nf\", g: h}";
        let tree = Tree::parse(text).unwrap().unwrap();
        let ids = 0..u32::try_from(tree.nodes.len()).unwrap();
        let words: Vec<&str> = ids
            .map(|id| tree.node(id))
            .filter(|node| matches!(node.shape, Shape::Scalar(_)))
            .map(|node| &text[node.start as usize..node.end as usize])
            .collect();
        assert_eq!(words, ["a", "b:", "c:", "d", "\"e\nf\"", "g", "h"]);
    }

    #[test]
    fn quoted_text_is_indented_as_one_likes() {
        for (text, expected) in [
            ("a:\n  b: 'c\nd'", json!({"a": {"b": "c d"}})),
            ("a:\n  b: 'it''s\nd\n\n  e \"f'", json!({"a": {"b": "it's d\ne \"f"}})),
            ("a:\n  b: \"c\\\"\nd\\\n   e\"", json!({"a": {"b": "c\" de"}})),
            (
                "a: # don't\n  b: !!str &c # isn't\n   'd\ne'\n  f: *c",
                json!({"a": {"b": "d e", "f": "d e"}}),
            ),
            ("a:\n  - 'b\nc'\n  - \"d\ne\"", json!({"a": ["b c", "d e"]})),
            ("a:\n  b: 'c\r\nd'", json!({"a": {"b": "c d"}})),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn quoted_text_without_an_end_is_named_where_it_begins() {
        for text in ["a:\n  b: 'c\nd''\n", "a:\n  b: \"c\nd\\\"\n"] {
            let fault = Tree::parse(text).unwrap_err();
            assert_eq!(fault.at, 8, "{fault:?}");
            let message = fault.problem.to_string();
            assert!(message.contains("unclosed quote"), "{message}");
        }
    }

    #[test]
    fn a_document_is_not_rewritten_without_end() {
        let words = "a:, ".repeat(MOST_TIMES + 1);
        let fault = Tree::parse(&format!("[{words}b]")).unwrap_err();
        assert_eq!(fault.at, 1 + 4 * MOST_TIMES + 1, "{fault:?}");
        assert!(Tree::parse(&format!("[{}b]", "a:, ".repeat(9))).is_ok());
    }

    #[test]
    fn a_fault_after_a_rewritten_place_is_where_it_was_written() {
        let fault = Tree::parse("{a: b:, c: [d}").unwrap_err();
        assert_eq!(fault.at, 11, "{fault:?}");
    }
}
