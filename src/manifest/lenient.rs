//! What Kubernetes' reader takes beyond YAML 1.2, for which the parser gets a text that
//! says the same in its own terms.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::compose::{Leniency, MAX_DEPTH, Stop, compose, narrow};
use super::error::{Fault, Problem};
use super::tree::{Node, Scalar, Shape, Tree};

/// Places that may be rewritten in one document.
const MAX_REWRITTEN: usize = 500;

/// Bytes that one document may be read again for that.
const MAX_READ_AGAIN: usize = 64 << 20;

/// More than any line is indented.
const INDENT: &str = match str::from_utf8(&[b' '; MAX_DEPTH as usize]) {
    Ok(spaces) => spaces,
    Err(_) => "",
};

/// A letter that stands for nothing else: of the private use area.
const LETTER: &str = "\u{e000}";

impl<'t> Tree<'t> {
    /// Reads the one document in `text`; `None` when there is nothing in it but
    /// comments and markers.
    ///
    /// # Errors
    /// Text that is not YAML, and YAML that Kubernetes would not take as an
    /// object: keys that are lists, numbers beyond numbers, aliases that multiply
    /// without end.
    pub fn parse(text: &'t str) -> Result<Option<Self>, Fault> {
        match compose(text) {
            Err(Stop::Lenient { at, kind }) => rewritten(text, Filler::new(text, at, kind)),
            Err(Stop::Fault(fault)) => Err(fault),
            Ok(tree) => Ok(tree),
        }
    }
}

/// What is put into the text at one place.
#[derive(Clone, Copy)]
struct Filler {
    /// Where, in bytes of the text as it was written.
    at: usize,
    kind: Leniency,
}

impl Filler {
    fn new(text: &str, at: usize, kind: Leniency) -> Self {
        let at = match kind {
            Leniency::Indentation => text[..at].rfind('\n').map_or(0, |newline| newline + 1),
            Leniency::Colon => at + 1,
        };
        Self { at, kind }
    }

    /// What is before the first letter of a quoted scalar's line means nothing, so more
    /// of it changes nothing. Behind a letter, a colon belongs to the word.
    const fn text(self) -> &'static str {
        match self.kind {
            Leniency::Indentation => INDENT,
            Leniency::Colon => LETTER,
        }
    }

    const fn len(self) -> usize {
        self.text().len()
    }

    /// The same for the lines of `text` after this one that surely belong to the same
    /// quoted scalar: as far as there is no quote of either kind.
    fn more(self, text: &str) -> impl Iterator<Item = Self> {
        let rest = match self.kind {
            Leniency::Indentation => &text[self.at..],
            Leniency::Colon => "",
        };
        let inside = &rest[..rest.find(['"', '\'']).unwrap_or_default()];
        let lines = inside.match_indices('\n');
        lines.take(MAX_REWRITTEN).map(move |(newline, _)| Self {
            at: self.at + newline + 1,
            kind: self.kind,
        })
    }

    /// That the reader does not take it so often, at the place.
    fn fault(self) -> Fault {
        let expected = match self.kind {
            Leniency::Indentation => "a line of this quoted text is indented too little",
            Leniency::Colon => "a word between brackets ends with a colon",
        };
        let expected = expected.to_owned();
        Fault::new(self.at, Problem::Syntax { expected })
    }
}

/// Reads `text` with fillers, the first where it is known to need one, and more as
/// the parser asks for them. The tree is the one that `text` stands for.
fn rewritten(text: &str, first: Filler) -> Result<Option<Tree<'_>>, Fault> {
    let mut fillers: Vec<Filler> = Vec::new();
    let mut next = first;
    let mut read_again = 0_usize;
    loop {
        let place = fillers.partition_point(|filler| filler.at < next.at);
        let twice = fillers.get(place).is_some_and(|it| it.at == next.at);
        if twice || fillers.len() >= MAX_REWRITTEN || read_again > MAX_READ_AGAIN {
            return Err(next.fault());
        }
        let following = fillers.get(place).map_or(text.len(), |filler| filler.at);
        let more = next.more(&text[..following]);
        fillers.splice(place..place, [next].into_iter().chain(more));
        let filled = filled(text, &fillers);
        read_again = read_again.saturating_add(filled.len());
        match compose(&filled) {
            Ok(tree) => return Ok(tree.map(|tree| moved(&tree, text, &fillers))),
            Err(Stop::Lenient { at, kind }) => {
                next = Filler::new(text, original(&fillers, at), kind);
            }
            Err(Stop::Fault(fault)) => {
                return Err(Fault::new(original(&fillers, fault.at), fault.problem));
            }
        }
    }
}

fn filled(text: &str, fillers: &[Filler]) -> String {
    let added: usize = fillers.iter().map(|filler| filler.len()).sum();
    let mut filled = String::with_capacity(text.len() + added);
    let mut done = 0;
    for filler in fillers {
        filled += &text[done..filler.at];
        filled += filler.text();
        done = filler.at;
    }
    filled += &text[done..];
    filled
}

/// Where a place of the filled text is in the text as it was written.
fn original(fillers: &[Filler], at: usize) -> usize {
    let mut added = 0;
    for filler in fillers {
        let start = filler.at + added;
        if at < start {
            break;
        }
        if at < start + filler.len() {
            return filler.at;
        }
        added += filler.len();
    }
    at - added
}

/// `tree`, with every place moved to where it is in `text`, and without what was put in.
fn moved<'t>(tree: &Tree<'_>, text: &'t str, fillers: &[Filler]) -> Tree<'t> {
    let place = |at: u32| narrow(original(fillers, at as usize));
    let nodes = tree.nodes.iter().map(|node| Node {
        shape: match &node.shape {
            Shape::Scalar(scalar) => Shape::Scalar(Scalar {
                text: Cow::Owned(without_letter(scalar, place(node.end), fillers).to_owned()),
                style: scalar.style,
                tag: scalar.tag,
            }),
            Shape::Sequence { flow } => Shape::Sequence { flow: *flow },
            Shape::Mapping { flow, overlaid } => Shape::Mapping {
                flow: *flow,
                overlaid: *overlaid,
            },
            Shape::Alias(target) => Shape::Alias(*target),
        },
        properties: place(node.properties),
        start: place(node.start),
        end: place(node.end),
        anchored: node.anchored,
        after: node.after,
    });
    Tree {
        text,
        nodes: nodes.collect(),
        repeated: tree.repeated.clone(),
        lines: OnceLock::new(),
    }
}

/// The scalar's text without the letter that was put behind its colon.
fn without_letter<'s>(scalar: &'s Scalar<'_>, end: u32, fillers: &[Filler]) -> &'s str {
    let put = fillers
        .binary_search_by_key(&(end as usize), |filler| filler.at)
        .is_ok_and(|at| fillers[at].kind == Leniency::Colon);
    let without = scalar.text.strip_suffix(LETTER).filter(|_| put);
    without.unwrap_or(&scalar.text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> serde_json::Value {
        let tree = Tree::parse(text).unwrap().unwrap();
        tree.value(tree.root())
    }

    /// What `kubectl` makes of each, with go-yaml's parser.
    #[test]
    fn a_colon_before_a_bracket_belongs_to_its_word() {
        for (text, expected) in [
            ("{a: b:}", json!({"a": "b:"})),
            ("{a: b:, c: d}", json!({"a": "b:", "c": "d"})),
            ("{a: b :, c: d}", json!({"a": "b :", "c": "d"})),
            ("{a:, b: c}", json!({"a:": null, "b": "c"})),
            ("[a:, {b:}, [c:]]", json!(["a:", {"b:": null}, ["c:"]])),
            ("{a: {b:}, c: d:}", json!({"a": {"b:": null}, "c": "d:"})),
            ("{\"a\":}", json!({"a": null})),
            (
                "{a: ['b:', \"c:\"], d: e}",
                json!({"a": ["b:", "c:"], "d": "e"}),
            ),
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
    fn a_document_is_not_rewritten_without_end() {
        let words = "a:, ".repeat(MAX_REWRITTEN + 1);
        let fault = Tree::parse(&format!("[{words}b]")).unwrap_err();
        assert_eq!(fault.at, 1 + 4 * MAX_REWRITTEN + 2, "{fault:?}");
        assert!(Tree::parse(&format!("[{}b]", "a:, ".repeat(9))).is_ok());
    }

    #[test]
    fn a_fault_after_a_rewritten_place_is_where_it_was_written() {
        let fault = Tree::parse("{a: b:, c: [d}").unwrap_err();
        assert_eq!(fault.at, 11, "{fault:?}");
    }
}
